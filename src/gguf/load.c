/* Tensors of a GGUF file to a device: a thread reads the next piece from the disk while the last is on its way.
 *
 * Two pieces of memory take turns. The reader fills the one that is free; the caller copies the one that is full. Either waits
 * for the other, and a failure of either ends both.
 */
#include <pthread.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "base/system/threads.h"
#include "base/text.h"
#include "gguf/gguf.h"
#include "quant/matrix.h"

enum { PIECE_BYTES = 8 << 20, PIECES = 2 };

typedef struct piece {
    unsigned char *bytes;
    int64_t tensor;
    int64_t offset; /* in the tensor */
    size_t size;
} piece;

typedef struct loader {
    const ww_gguf *gguf;
    ww_quant **matrices; /* of tensors first.. ; NULL where one is not loaded */
    int64_t first, count;
    piece pieces[PIECES];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t filled, used; /* pieces so far */
    bool reading, stop;
    ww_status status; /* the reader's */
    char message[1024];
} loader;

/* Waits for a free piece; false when loading ended. */
static bool wait_free(loader *l)
{
    pthread_mutex_lock(&l->lock);
    while (!l->stop && l->filled - l->used == PIECES)
        pthread_cond_wait(&l->changed, &l->lock);
    const bool go_on = !l->stop;
    pthread_mutex_unlock(&l->lock);
    return go_on;
}

static void change(loader *l, int64_t *counter)
{
    pthread_mutex_lock(&l->lock);
    ++*counter;
    pthread_cond_signal(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

static ww_status read_tensor(loader *l, int64_t tensor)
{
    const int64_t bytes = l->gguf->tensors[tensor].bytes;
    for (int64_t done = 0; done < bytes; done += PIECE_BYTES) {
        if (!wait_free(l))
            return WW_OK;
        piece *p = &l->pieces[l->filled % PIECES]; /* only this thread changes `filled` */
        p->tensor = tensor;
        p->offset = done;
        p->size = (size_t)(bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES);
        const ww_status status = ww_gguf_read(l->gguf, tensor, done, p->bytes, p->size);
        if (status != WW_OK)
            return status;
        change(l, &l->filled);
    }
    return WW_OK;
}

static void *read_all(void *context)
{
    loader *l = context;
    ww_status status = WW_OK;
    for (int64_t i = 0; status == WW_OK && i < l->count; i++)
        if (l->matrices[i])
            status = read_tensor(l, l->first + i);
    pthread_mutex_lock(&l->lock);
    l->reading = false;
    l->status = status;
    if (status != WW_OK)
        text_copy(l->message, sizeof l->message, ww_error_message());
    pthread_cond_signal(&l->changed);
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* Waits for a full piece; NULL when there will be none. */
static const piece *wait_full(loader *l)
{
    pthread_mutex_lock(&l->lock);
    while (l->filled == l->used && l->reading)
        pthread_cond_wait(&l->changed, &l->lock);
    const piece *p = l->filled > l->used ? &l->pieces[l->used % PIECES] : NULL;
    pthread_mutex_unlock(&l->lock);
    return p;
}

static ww_status copy_all(loader *l, int64_t total, ww_progress progress, void *user)
{
    ww_status status = WW_OK;
    int64_t done = 0;
    for (const piece *p; status == WW_OK && (p = wait_full(l));) {
        status = quant_fill(l->matrices[p->tensor - l->first], (size_t)p->offset, p->bytes, p->size);
        done += (int64_t)p->size;
        if (status == WW_OK && progress_tell(progress, user, done, total))
            status = ww_fail(WW_CANCELLED, "loading was cancelled after %lld of %lld bytes", (long long)done, (long long)total);
        change(l, &l->used);
    }
    return status;
}

static ww_status run(loader *l, int64_t total, ww_progress progress, void *user)
{
    pthread_t reader;
    l->reading = true;
    if (thread_start(&reader, "ww-gguf", read_all, l) != 0)
        return ww_fail(WW_OUT_OF_MEMORY, "cannot start the thread that reads the file: one was asked for");
    const ww_status status = copy_all(l, total, progress, user);
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_signal(&l->changed);
    pthread_mutex_unlock(&l->lock);
    pthread_join(reader, NULL);
    return status == WW_OK && l->status != WW_OK ? ww_fail(l->status, "%s", l->message) : status;
}

/* Makes the matrices of tensors first..first+count-1 and fills them; all or none. */
static ww_status load(loader *l, ww_device *device, ww_progress progress, void *user)
{
    ww_status status = WW_OK;
    int64_t total = 0;
    for (int64_t i = 0; status == WW_OK && i < l->count; i++) {
        const gguf_tensor *t = &l->gguf->tensors[l->first + i];
        l->matrices[i] = NULL;
        if (!quant_type_known(t->type))
            continue;
        total += t->bytes;
        status =
            quant_make(device, (ww_quant_type)t->type, t->shape[1] * t->shape[2] * t->shape[3], t->shape[0], &l->matrices[i]);
    }
    for (int i = 0; status == WW_OK && i < PIECES; i++) {
        l->pieces[i].bytes = memory_alloc(PIECE_BYTES);
        if (!l->pieces[i].bytes)
            status = memory_failed("reading a GGUF file", PIECE_BYTES);
    }
    if (status == WW_OK && total > 0) {
        pthread_mutex_init(&l->lock, NULL);
        pthread_cond_init(&l->changed, NULL);
        status = run(l, total, progress, user);
        pthread_cond_destroy(&l->changed);
        pthread_mutex_destroy(&l->lock);
    }
    for (int i = 0; i < PIECES; i++)
        memory_free(l->pieces[i].bytes);
    for (int64_t i = 0; status != WW_OK && i < l->count; i++) {
        ww_quant_destroy(l->matrices[i]);
        l->matrices[i] = NULL;
    }
    return status;
}

ww_status ww_gguf_load(const ww_gguf *gguf, int64_t index, ww_device *device, ww_progress progress, void *user,
                       ww_quant **matrix)
{
    FLOAT_GUARD();
    if (!gguf || !device || !matrix)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_load: %s is NULL", !gguf ? "gguf" : device ? "matrix" : "device");
    if (index < 0 || index >= gguf->tensor_count)
        return ww_fail(WW_OUT_OF_RANGE, "ww_gguf_load: index %lld is out of range; there are %lld", (long long)index,
                       (long long)gguf->tensor_count);
    const gguf_tensor *t = &gguf->tensors[index];
    if (!quant_type_known(t->type) && !ww_gguf_type_name(t->type))
        return ww_fail(WW_UNSUPPORTED, "tensor '%s' has type %d, which this version does not know; its bytes can be read",
                       t->name, (int)t->type);
    if (!quant_type_known(t->type))
        return ww_fail(WW_UNSUPPORTED, "tensor '%s' has type %s, which a quantized matrix cannot have", t->name,
                       ww_gguf_type_name(t->type));
    ww_quant *made = NULL;
    loader l = {.gguf = gguf, .matrices = &made, .first = index, .count = 1};
    const ww_status status = load(&l, device, progress, user);
    if (status == WW_OK)
        *matrix = made;
    return status;
}

ww_status ww_gguf_load_all(const ww_gguf *gguf, ww_device *device, ww_progress progress, void *user, ww_quant **matrices)
{
    FLOAT_GUARD();
    if (!gguf || !device || !matrices)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_load_all: %s is NULL", !gguf ? "gguf" : device ? "matrices" : "device");
    for (int64_t i = 0; i < gguf->tensor_count; i++)
        matrices[i] = NULL;
    loader l = {.gguf = gguf, .matrices = matrices, .count = gguf->tensor_count};
    return load(&l, device, progress, user);
}
