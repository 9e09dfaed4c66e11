/* What tests of code objects need of the library beyond its interface. With all of its objects it makes the library that they
 * load. */
#include "codeobjects_hooks.h"

#include <string.h>

#include "base/integers.h"
#include "base/memory.h"
#include "device/backend.h"
#include "device/tensor_jobs.h"
#include "seams/wrong_thresholds.h"
#include "support/pretend/pretend.h"

__attribute__((visibility("default"))) void codeobjects_screen(ww_device *device, bool always, int32_t capacity);
__attribute__((visibility("default"))) void codeobjects_planes(ww_device *device, bool used);
__attribute__((visibility("default"))) void codeobjects_mfma(ww_device *device, bool used);
__attribute__((visibility("default"))) void codeobjects_lower(ww_device *device, uint32_t steps);
__attribute__((visibility("default"))) void codeobjects_indices_64(ww_device *device, bool always);
__attribute__((visibility("default"))) int32_t codeobjects_units(ww_device *device, int32_t units);
__attribute__((visibility("default"))) void codeobjects_gemv_splits(ww_device *device, int32_t splits);
__attribute__((visibility("default"))) void codeobjects_gemv_one(ww_device *device, bool used);
__attribute__((visibility("default"))) ww_status codeobjects_attend(ww_device *device, const codeobjects_step *step);
__attribute__((visibility("default"))) void codeobjects_quant_bf16(ww_device *device, bool always);

/* Screens even the smallest collection, with room for this many kept rows in the lists (0: the usual number). */
void codeobjects_screen(ww_device *device, bool always, int32_t capacity)
{
    pretend_screen(device, always);
    device->tuning.screen_list_capacity = capacity;
    device->tuning.planes = TUNING_NEVER;
}

/* Whether one query reads high planes of codes. */
void codeobjects_planes(ww_device *device, bool used)
{
    device->tuning.planes = used ? TUNING_ALWAYS : TUNING_NEVER;
}

/* Whether chips with MFMA screen by their own kernel, or as the others do. */
void codeobjects_mfma(ww_device *device, bool used)
{
    pretend_mfma(device, used);
}

/* Improves the thresholds of samples by this many steps of a float, and does not repeat the affected queries: to count what a
 * search of more rows would do. */
void codeobjects_lower(ww_device *device, uint32_t steps)
{
    (void)device;
    thresholds_lowered = steps;
    keep_unproven = steps > 0;
}

/* Places of elements are calculated with 64 bits, as for tensors that are too large for a test. */
void codeobjects_indices_64(ww_device *device, bool always)
{
    pretend_large_tensors(device, always);
}

/* Makes the device have this many compute units: work is divided into as many parts and lists as on a card. Returns the old
 * number. */
int32_t codeobjects_units(ww_device *device, int32_t units)
{
    const int32_t before = device->info.compute_units;
    device->info.compute_units = units;
    return before;
}

/* This many thread blocks share 16 rows of a product with few columns; 0: enough to fill the device. */
void codeobjects_gemv_splits(ww_device *device, int32_t splits)
{
    pretend_gemv_splits(device, splits);
}

/* Chooses whether a product quantizes its single column itself, or another kernel does, as with experts. */
void codeobjects_gemv_one(ww_device *device, bool used)
{
    pretend_gemv_one(device, used);
}

/* ---- a step of a session ------------------------------------------------------------------------------------------------- */

enum { Q, K, V, COSINES, SINES, OUT, PAGES, NUMBERS, BUFFERS };

/* The memory of a step; `numbers`: addresses of pages, the length, sequences, all 0, and positions. */
typedef struct step_memory {
    buffer all[BUFFERS];
    int64_t pages;
} step_memory;

static ww_status send(ww_device *device, buffer *to, const void *from, size_t bytes)
{
    const ww_status status = device->backend->tensors->alloc(device, bytes, to);
    return status == WW_OK ? device->backend->tensors->write(device, to, from) : status;
}

static ww_status send_numbers(ww_device *device, const codeobjects_step *step, step_memory *m)
{
    const int64_t page_bytes = attention_layer_bytes(step->type, step->kv_heads, step->head_size);
    const size_t bytes = (size_t)m->pages * sizeof(uint64_t) + (size_t)(2 + 2 * step->keys) * sizeof(int32_t);
    char *host = memory_alloc_zeroed(1, bytes);
    if (host == NULL)
        return memory_failed("a step's positions", bytes);
    int32_t *length = (int32_t *)(void *)(host + (size_t)m->pages * sizeof(uint64_t));
    for (int64_t i = 0; i < m->pages; i++)
        ((uint64_t *)(void *)host)[i] = (uint64_t)(uintptr_t)((char *)m->all[PAGES].data + i * page_bytes);
    *length = step->keys;
    for (int32_t i = 0; i < step->keys; i++)
        length[2 + step->keys + i] = i;
    const ww_status status = send(device, &m->all[NUMBERS], host, bytes);
    memory_free(host);
    return status;
}

static ww_status send_step(ww_device *device, const codeobjects_step *step, step_memory *m)
{
    const size_t key_floats = (size_t)step->keys * (size_t)(step->kv_heads * step->head_size);
    const size_t query_floats = (size_t)step->tokens * (size_t)(step->heads * step->head_size);
    const size_t rope_floats = (size_t)step->keys * (size_t)step->half;
    const struct {
        const void *from;
        size_t floats;
    } given[] = {[Q] = {step->q, query_floats},        [K] = {step->k, key_floats},
                 [V] = {step->v, key_floats},          [COSINES] = {step->cosines, rope_floats},
                 [SINES] = {step->sines, rope_floats}, [OUT] = {step->q, query_floats}};
    m->pages = divide_up_i64(step->keys, ATTENTION_CHUNK);
    memset(step->cache, 0, step->cache_bytes);
    ww_status status = send(device, &m->all[PAGES], step->cache, step->cache_bytes);
    for (int32_t i = 0; status == WW_OK && i < PAGES; i++)
        status = send(device, &m->all[i], given[i].from, given[i].floats * sizeof(float));
    return status == WW_OK ? send_numbers(device, step, m) : status;
}

/* Tokens `first` .. `first` + `count`. */
static attention_store_job store_of(const codeobjects_step *step, const step_memory *m, int32_t first, int32_t count)
{
    const int64_t row = (int64_t)step->kv_heads * step->head_size;
    const int32_t *length = (const int32_t *)((const uint64_t *)m->all[NUMBERS].data + m->pages);
    const attention_batch batch = {.tokens = count,
                                   .sequences = length + 2,
                                   .positions = length + 2 + step->keys + first,
                                   .pages = m->all[NUMBERS].data,
                                   .pages_stride = m->pages,
                                   .lengths = length,
                                   .layer = {.type = step->type, .kv_heads = step->kv_heads, .head_size = step->head_size}};
    return (attention_store_job){.batch = batch,
                                 .heads = step->heads,
                                 .q_stride = (int64_t)step->heads * step->head_size,
                                 .k = (const float *)m->all[K].data + first * row,
                                 .v = (const float *)m->all[V].data + first * row,
                                 .k_stride = row,
                                 .v_stride = row,
                                 .rope = step->rope,
                                 .half = step->half,
                                 .cosines = m->all[COSINES].data,
                                 .sines = m->all[SINES].data,
                                 .rope_positions = step->keys};
}

/* What sessions of a model do: attention of a step's tokens, whose keys and values are rotated and put into the cache on the
 * way, and queries rotated. */
ww_status codeobjects_attend(ww_device *device, const codeobjects_step *step)
{
    const int32_t before = step->keys - step->tokens;
    step_memory m = {0};
    ww_status status = send_step(device, step, &m);
    const attention_store_job past = store_of(step, &m, 0, before);
    attention_store_job store = store_of(step, &m, before, step->tokens);
    store.q = m.all[Q].data;
    const attention_job attend = {.batch = store.batch,
                                  .store = &store,
                                  .heads = step->heads,
                                  .q = store.q,
                                  .q_stride = store.q_stride,
                                  .mask = {.causal = true},
                                  .scale = 0.125f,
                                  .keys_max = step->keys,
                                  .runs = step->tokens > 1,
                                  .out = m.all[OUT].data};
    if (status == WW_OK && before > 0)
        status = device->backend->tensors->attention_store(device, &past);
    if (status == WW_OK)
        status = device->backend->tensors->attention(device, &attend);
    if (status == WW_OK)
        status = device->backend->tensors->read(device, step->out, &m.all[OUT]);
    if (status == WW_OK)
        status = device->backend->tensors->read(device, step->cache, &m.all[PAGES]);
    for (int32_t i = 0; i < BUFFERS; i++)
        device->backend->tensors->release(device, &m.all[i]);
    return status;
}

/* Fast products of quantized matrices use bf16, even if integers are faster. */
void codeobjects_quant_bf16(ww_device *device, bool always)
{
    device->tuning.quant_bf16 = always ? TUNING_ALWAYS : TUNING_AUTO;
}
