/* Attention by itself: a step of decoding behind a context, recorded where the device records, and a prompt, for the shapes of
 * some models; beside the floor of each: reading the cache for a step, fused multiply-adds for a prompt.
 *
 *     build/attention [DEVICE [CONTEXT [PROMPT [HEADS]]]]    cpu, 2048, 512 if nothing is said; HEADS of a thread block
 *
 * A step is all layers of the model, one token: keys and values stored, then attention. Tokens a second are of that alone.
 */
#include <stdbool.h>
#include <string.h>

#include <warpwave.h>

#include "device/tensor_jobs.h"
#include "measure.h"

typedef struct shape {
    const char *name;
    int32_t layers, heads, kv_heads, head_size;
} shape;

static const shape shapes[] = {
    {"135M (9/3 x 64, 30 layers)", 30, 9, 3, 64},
    {"1B   (32/8 x 64, 16 layers)", 16, 32, 8, 64},
    {"8B   (32/8 x 128, 32 layers)", 32, 32, 8, 128},
};

typedef struct scene {
    ww_device *device;
    const tensor_backend *tensors;
    const shape *model;
    int32_t length; /* of the one sequence */
    int64_t tokens; /* of a step */
    int32_t type;
    int64_t page_bytes, layer_bytes;
    buffer pages, table, numbers, floats;
} scene;

static buffer memory(const scene *s, size_t bytes)
{
    buffer made;
    check(s->tensors->alloc(s->device, bytes, &made), "memory");
    check(s->tensors->zero(s->device, &made), "zeroing");
    return made;
}

/* The last `tokens` positions of a sequence. */
static scene make_scene(ww_device *device, const shape *model, int32_t type, int32_t length, int64_t tokens)
{
    scene s = {.device = device,
               .tensors = device->backend->tensors,
               .model = model,
               .length = length,
               .tokens = tokens,
               .type = type};
    const int32_t pages = (length + ATTENTION_CHUNK - 1) / ATTENTION_CHUNK;
    s.layer_bytes = attention_layer_bytes(type, model->kv_heads, model->head_size);
    s.page_bytes = s.layer_bytes * model->layers;
    s.pages = memory(&s, (size_t)(s.page_bytes * pages));
    s.table = memory(&s, sizeof(uint64_t) * (size_t)pages);
    s.numbers = memory(&s, sizeof(int32_t) * (size_t)(2 * tokens + 1));
    s.floats = memory(&s, sizeof(float) * (size_t)(tokens * (2 * model->heads + 2 * model->kv_heads) * model->head_size));
    uint64_t *table = malloc(sizeof *table * (size_t)pages);
    int32_t *numbers = calloc((size_t)(2 * tokens + 1), sizeof *numbers);
    for (int32_t i = 0; i < pages; i++)
        table[i] = (uint64_t)(uintptr_t)((char *)s.pages.data + i * s.page_bytes);
    for (int64_t i = 0; i < tokens; i++)
        numbers[tokens + i] = (int32_t)(length - tokens + i);
    numbers[2 * tokens] = length;
    check(s.tensors->write(device, &s.table, table), "the table");
    check(s.tensors->write(device, &s.numbers, numbers), "the numbers");
    free(table);
    free(numbers);
    return s;
}

static void free_scene(scene *s)
{
    s->tensors->release(s->device, &s->pages);
    s->tensors->release(s->device, &s->table);
    s->tensors->release(s->device, &s->numbers);
    s->tensors->release(s->device, &s->floats);
}

static void run_layer(const scene *s, int32_t layer)
{
    const shape *m = s->model;
    const int64_t q_row = (int64_t)m->heads * m->head_size, k_row = (int64_t)m->kv_heads * m->head_size;
    const int32_t *numbers = s->numbers.data;
    float *q = s->floats.data, *out = q + s->tokens * q_row, *k = out + s->tokens * q_row;
    const attention_batch batch = {
        .tokens = s->tokens,
        .sequences = numbers,
        .positions = numbers + s->tokens,
        .lengths = numbers + 2 * s->tokens,
        .pages = s->table.data,
        .pages_stride = (s->length + ATTENTION_CHUNK - 1) / ATTENTION_CHUNK,
        .layer = {.type = s->type, .kv_heads = m->kv_heads, .head_size = m->head_size, .offset = s->layer_bytes * layer}};
    const attention_store_job store = {
        .batch = batch, .heads = m->heads, .k = k, .v = k + s->tokens * k_row, .k_stride = k_row, .v_stride = k_row};
    const attention_job attend = {.batch = batch,
                                  .store = &store,
                                  .heads = m->heads,
                                  .q = q,
                                  .q_stride = q_row,
                                  .mask = {.causal = 1},
                                  .scale = 0.125f,
                                  .keys_max = s->length,
                                  .runs = s->tokens > 1,
                                  .out = out};
    check(s->tensors->attention(s->device, &attend), "attention");
}

static void run_step(const scene *s)
{
    for (int32_t layer = 0; layer < s->model->layers; layer++)
        run_layer(s, layer);
}

/* The median of some runs of a step, waiting for each; if `recording` is not NULL, it is replayed. */
static double measure(const scene *s, const tensor_recording *recording)
{
    enum { RUNS = 5 };
    double seconds[RUNS];
    for (int32_t i = -1; i < RUNS; i++) {
        const double begin = seconds_now();
        if (recording)
            check(s->tensors->replay(s->device, recording), "replaying");
        else
            run_step(s);
        check(s->tensors->synchronize(s->device), "waiting");
        if (i >= 0)
            seconds[i] = seconds_now() - begin;
    }
    return median_of(seconds, RUNS);
}

static void decode(ww_device *device, const shape *model, int32_t type, int32_t context)
{
    scene s = make_scene(device, model, type, context, 1);
    tensor_recording *recording = NULL;
    const double direct = measure(&s, NULL);
    if (s.tensors->record_begin) {
        check(s.tensors->record_begin(device), "recording");
        run_step(&s);
        check(s.tensors->record_end(device, true, &recording), "recording");
    }
    const double replayed = recording ? measure(&s, recording) : direct;
    const double read_bytes = (double)s.layer_bytes * model->layers * context / ATTENTION_CHUNK;
    printf("%-30s step behind %6d: %9.1f us, replayed %9.1f us, %9.0f tokens/s, cache read at %7.1f GB/s\n", model->name,
           context, direct * 1e6, replayed * 1e6, 1.0 / replayed, read_bytes / replayed * 1e-9);
    if (recording)
        s.tensors->recording_release(device, recording);
    free_scene(&s);
}

static void prompt(ww_device *device, const shape *model, int32_t type, int32_t tokens)
{
    scene s = make_scene(device, model, type, tokens, tokens);
    const double seconds = measure(&s, NULL);
    const double fma = (double)tokens * (tokens + 1) * model->heads * model->head_size * model->layers; /* half of n^2, twice */
    printf("%-30s prompt of %8d: %9.2f ms, %9.0f tokens/s, %8.2f G fma/s\n", model->name, tokens, seconds * 1e3,
           tokens / seconds, fma / seconds * 1e-9);
    free_scene(&s);
}

int main(int argc, char **argv)
{
    static const char *const types[] = {"f16", "f32", "q8_0"};
    ww_device *device = NULL;
    check(ww_device_open(argc > 1 ? argv[1] : "cpu", &device), "opening the device");
    const int32_t context = argc > 2 ? atoi(argv[2]) : 2048, tokens = argc > 3 ? atoi(argv[3]) : 512;
    if (argc > 4) /* few make blocks take several heads of a query */
        device->info.compute_units = atoi(argv[4]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("%s\n", device->info.name);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int32_t type = ATTENTION_F16; type <= ATTENTION_Q8_0; type++) {
            printf("%-4s ", types[type]);
            decode(device, &shapes[i], type, context);
        }
        printf("%-4s ", types[ATTENTION_F16]);
        prompt(device, &shapes[i], ATTENTION_F16, tokens);
    }
    ww_device_close(device);
    return 0;
}
