/* Loads tensors of a GGUF file to a device. Several threads each read a piece and copy it, so that the disk's cache, the
 *processor and the copy engine work at the same time. A piece has whole rows that fit in a processor's cache. The caller's
 *thread loads small tensors.
 *
 * While a piece is in memory, its weights are checked to be finite: those of a block are finite if its factors are.
 */
#include "gguf/load.h"

#include <pthread.h>
#include <string.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/system/threads.h"
#include "base/text.h"
#include "gguf/gguf.h"
#include "quant/matrix.h"

enum {
    /* Approximately, because pieces have whole rows; small enough that staging wakes no other threads. */
    PIECE_BYTES = 1000 << 10,
    WORKERS_MAX = 6 /* each reads about 5 GB/s */
};

/* A tensor and its place in a matrix. */
typedef struct part {
    int64_t tensor;
    ww_quant *matrix;
    size_t offset; /* bytes */
    bool finite;   /* all weights so far were finite */
} part;

typedef struct loader loader;

typedef struct worker {
    loader *loader;
    unsigned char *bytes;
    device_stream *stream;
    pthread_t thread;
} worker;

struct loader {
    const ww_gguf *gguf;
    ww_device *device;
    part *parts;
    int64_t count;
    int64_t total; /* bytes of all parts */
    size_t room;   /* bytes of the largest piece */
    worker workers[WORKERS_MAX];
    int32_t worker_count;
    pthread_mutex_t lock, order; /* order: pieces are converted to the device's layout one at a time, if it has its own */
    pthread_cond_t changed;
    int64_t part, offset; /* the next piece to read */
    int64_t done;         /* bytes whose copy has been queued */
    int32_t working;
    bool stop;
    ww_status status; /* of the first failure */
    char message[1024];
};

typedef struct piece {
    part *part;
    int64_t offset; /* in the tensor */
    size_t size;
} piece;

static int64_t piece_bytes(const part *p)
{
    return max_i64(1, PIECE_BYTES / p->matrix->row_bytes) * p->matrix->row_bytes;
}

/* Takes the next piece. Returns false if there is none, or loading has ended. Called with the lock. */
static bool take_piece(loader *l, piece *out)
{
    while (l->part < l->count && l->offset == l->gguf->tensors[l->parts[l->part].tensor].bytes) {
        l->part++;
        l->offset = 0;
    }
    if (l->stop || l->part == l->count)
        return false;
    part *p = &l->parts[l->part];
    const int64_t left = l->gguf->tensors[p->tensor].bytes - l->offset;
    *out = (piece){p, l->offset, (size_t)min_i64(left, piece_bytes(p))};
    l->offset += (int64_t)out->size;
    return true;
}

/* Brings a piece of a mapped file into memory, and checks it there. */
static ww_status look_at_piece(const loader *l, const piece *p, bool *finite)
{
    const gguf_tensor *t = &l->gguf->tensors[p->part->tensor];
    const gguf_part *file = &l->gguf->parts[t->file];
    const ww_status status = file_map_load(file->map, &file->source, t->offset + p->offset, p->size);
    if (status == WW_OK)
        *finite = gguf_finite(p->part->matrix->type, file->map->bytes + t->offset + p->offset, p->size);
    return status;
}

/* Reads a piece and queues its copy. */
static ww_status move_piece(loader *l, const worker *w, const piece *p, bool *finite)
{
    if (p->part->matrix->memory->map)
        return look_at_piece(l, p, finite);
    ww_status status = ww_gguf_read(l->gguf, p->part->tensor, p->offset, w->bytes, p->size);
    if (status != WW_OK)
        return status;
    *finite = gguf_finite(p->part->matrix->type, w->bytes, p->size);
    const bool ordered = l->device->backend->quants->arrange != NULL;
    if (ordered)
        pthread_mutex_lock(&l->order);
    status = quant_fill(p->part->matrix, w->stream, p->part->offset + (size_t)p->offset, (host_bytes){w->bytes, p->size});
    if (ordered)
        pthread_mutex_unlock(&l->order);
    return status;
}

/* Called with the lock. */
static void end_with(loader *l, ww_status status)
{
    l->stop = true;
    if (l->status != WW_OK)
        return;
    l->status = status;
    text_copy(l->message, sizeof l->message, ww_error_message());
}

static void *work(void *context)
{
    const worker *w = context;
    loader *l = w->loader;
    piece p;
    pthread_mutex_lock(&l->lock);
    while (take_piece(l, &p)) {
        bool finite = false;
        pthread_mutex_unlock(&l->lock);
        const ww_status status = move_piece(l, w, &p, &finite);
        pthread_mutex_lock(&l->lock);
        p.part->finite &= finite;
        l->done += (int64_t)p.size;
        if (status != WW_OK)
            end_with(l, status);
        pthread_cond_signal(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
    const ww_status status = l->device->backend->stream_synchronize(l->device, w->stream);
    pthread_mutex_lock(&l->lock);
    if (status != WW_OK)
        end_with(l, status);
    l->working--;
    pthread_cond_signal(&l->changed);
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static ww_status refuse_to_go_on(const loader *l, int64_t done)
{
    return ww_fail(WW_CANCELLED, "loading was cancelled after %lld of %lld bytes", (long long)done, (long long)l->total);
}

/* Reports the progress until all workers have ended. */
static void watch(loader *l, ww_progress progress, void *user)
{
    int64_t told = 0;
    pthread_mutex_lock(&l->lock);
    while (l->working > 0 || told != l->done) {
        while (l->working > 0 && told == l->done)
            pthread_cond_wait(&l->changed, &l->lock);
        const bool further = told != l->done;
        told = l->done;
        if (l->stop || !further)
            continue;
        pthread_mutex_unlock(&l->lock);
        const bool stop = progress_tell(progress, user, told, l->total) != 0;
        pthread_mutex_lock(&l->lock);
        if (stop)
            end_with(l, refuse_to_go_on(l, told));
    }
    pthread_mutex_unlock(&l->lock);
}

/* Runs the workers; if there is work for only one, the caller's thread does it. */
static ww_status run(loader *l, ww_progress progress, void *user)
{
    int32_t started = 0;
    ww_status status = WW_OK;
    l->working = l->worker_count;
    if (l->worker_count == 1) {
        work(&l->workers[0]);
    } else {
        while (started < l->worker_count &&
               thread_start(&l->workers[started].thread, "ww-gguf", work, &l->workers[started]) == 0)
            started++;
        if (started < l->worker_count) {
            status = ww_fail(WW_OUT_OF_MEMORY, "cannot start the threads that read the file: %d were asked for",
                             (int)l->worker_count);
            pthread_mutex_lock(&l->lock);
            end_with(l, status);
            l->working -= l->worker_count - started;
            pthread_mutex_unlock(&l->lock);
        }
    }
    watch(l, progress, user);
    for (int32_t i = 0; i < started; i++)
        pthread_join(l->workers[i].thread, NULL);
    return l->status != WW_OK ? ww_fail(l->status, "%s", l->message) : WW_OK;
}

static void free_workers(loader *l)
{
    for (int32_t i = 0; i < l->worker_count; i++) {
        l->device->backend->stream_destroy(l->device, l->workers[i].stream);
        memory_free(l->workers[i].bytes);
    }
}

static ww_status make_workers(loader *l)
{
    const int64_t wanted = min_i64(WORKERS_MAX, (l->total + PIECE_BYTES - 1) / PIECE_BYTES);
    ww_status status = WW_OK;
    while (status == WW_OK && l->worker_count < wanted) {
        worker *w = &l->workers[l->worker_count++];
        w->loader = l;
        w->bytes = memory_alloc(l->room);
        status =
            w->bytes ? l->device->backend->stream_create(l->device, &w->stream) : memory_failed("reading a GGUF file", l->room);
    }
    return status;
}

/* Fills the matrices of all parts. */
static ww_status fill(loader *l, ww_progress progress, void *user)
{
    for (int64_t i = 0; i < l->count; i++) {
        l->parts[i].finite = true;
        l->total += l->gguf->tensors[l->parts[i].tensor].bytes;
        l->room = (size_t)max_i64((int64_t)l->room, piece_bytes(&l->parts[i]));
    }
    if (l->total == 0)
        return WW_OK;
    pthread_mutex_init(&l->lock, NULL);
    pthread_mutex_init(&l->order, NULL);
    pthread_cond_init(&l->changed, NULL);
    ww_status status = make_workers(l);
    if (status == WW_OK)
        status = run(l, progress, user);
    free_workers(l);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->order);
    pthread_mutex_destroy(&l->lock);
    return status;
}

/* ---- calls --------------------------------------------------------------------------------------------------------------- */

static ww_status check_index(const ww_gguf *gguf, const char *call, int64_t index)
{
    if (index < 0 || index >= gguf->tensor_count)
        return ww_fail(WW_OUT_OF_RANGE, "%s: index %lld is out of range; there are %lld", call, (long long)index,
                       (long long)gguf->tensor_count);
    const gguf_tensor *t = &gguf->tensors[index];
    if (!quant_type_known(t->type) && !ww_gguf_type_name(t->type))
        return ww_fail(WW_UNSUPPORTED, "tensor '%s' has type %d, which this version does not know; its bytes can be read",
                       t->name, (int)t->type);
    if (!quant_type_known(t->type))
        return ww_fail(WW_UNSUPPORTED, "tensor '%s' has type %s, which a quantized matrix cannot have", t->name,
                       ww_gguf_type_name(t->type));
    return WW_OK;
}

static int64_t rows_of(const gguf_tensor *t)
{
    return t->shape[1] * t->shape[2] * t->shape[3];
}

/* The arguments that all of these calls have. */
typedef struct request {
    const ww_gguf *gguf;
    ww_device *device;
    ww_progress progress;
    void *user;
} request;

/* Can the rows of these tensors be used where the file has them? The CPU's layout of f32, f16 and bf16 is the file's, and the
 * tensors of one matrix must follow each other without a gap. */
static bool can_map(const request *r, const int64_t *indices, int64_t count)
{
    const gguf_tensor *first = &r->gguf->tensors[indices[0]], *before = NULL;
    const bool plain = first->type == WW_QUANT_F32 || first->type == WW_QUANT_F16 || first->type == WW_QUANT_BF16;
    if (!plain || !r->device->backend->on_host || !r->gguf->parts[first->file].map ||
        first->offset % (int64_t)sizeof(float) != 0)
        return false;
    for (int64_t i = 0; i < count; i++) {
        const gguf_tensor *t = &r->gguf->tensors[indices[i]];
        if (before && (t->file != before->file || t->offset != before->offset + before->bytes))
            return false;
        before = t;
    }
    return true;
}

/* Makes a matrix for the rows of tensors, which is a view of their file if possible and not filled yet otherwise. */
static ww_status make_matrix(const request *r, const int64_t *indices, int64_t count, ww_quant **out)
{
    const gguf_tensor *first = &r->gguf->tensors[indices[0]];
    ww_quant shape = {.type = (ww_quant_type)first->type, .cols = first->shape[0]};
    for (int64_t i = 0; i < count; i++)
        shape.rows += rows_of(&r->gguf->tensors[indices[i]]);
    if (!can_map(r, indices, count))
        return quant_make(r->device, shape.type, shape.rows, shape.cols, out);
    const ww_status status = ww_quant_row_bytes(shape.type, shape.cols, &shape.row_bytes);
    return status == WW_OK ? quant_make_mapped(r->device, &shape, r->gguf->parts[first->file].map, first->offset, out) : status;
}

/* Makes one matrix of several consecutive tensors, which are checked. */
static ww_status load_one(const request *r, const int64_t *indices, int64_t count, ww_quant **matrix)
{
    ww_quant *made = NULL;
    part *parts = memory_alloc_zeroed((size_t)count, sizeof *parts);
    if (!parts)
        return memory_failed("loading of a GGUF file", (size_t)count * sizeof *parts);
    loader l = {.gguf = r->gguf, .device = r->device, .parts = parts, .count = count};
    ww_status status = make_matrix(r, indices, count, &made);
    size_t offset = 0;
    for (int64_t i = 0; i < count; i++) {
        parts[i] = (part){.tensor = indices[i], .matrix = made, .offset = offset};
        offset += (size_t)r->gguf->tensors[indices[i]].bytes;
    }
    if (status == WW_OK)
        status = fill(&l, r->progress, r->user);
    bool finite = true;
    for (int64_t i = 0; i < count; i++)
        finite &= parts[i].finite;
    memory_free(parts);
    if (status != WW_OK) {
        ww_quant_destroy(made);
        return status;
    }
    made->finite = finite;
    *matrix = made;
    return WW_OK;
}

ww_status ww_gguf_load(const ww_gguf *gguf, int64_t index, ww_device *device, ww_progress progress, void *user,
                       ww_quant **matrix)
{
    FLOAT_GUARD();
    if (!gguf || !device || !matrix)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_load: %s is NULL", !gguf ? "gguf" : device ? "matrix" : "device");
    const ww_status status = check_index(gguf, "ww_gguf_load", index);
    const request r = {gguf, device, progress, user};
    return status == WW_OK ? load_one(&r, &index, 1, matrix) : status;
}

ww_status ww_gguf_load_joined(const ww_gguf *gguf, const int64_t *indices, int64_t count, ww_device *device,
                              ww_progress progress, void *user, ww_quant **matrix)
{
    FLOAT_GUARD();
    static const char call[] = "ww_gguf_load_joined";
    if (!gguf || !indices || !device || !matrix)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", call,
                       !gguf      ? "gguf"
                       : !indices ? "indices"
                       : device   ? "matrix"
                                  : "device");
    if (count < 1)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: count is %lld; it must be at least 1", call, (long long)count);
    for (int64_t i = 0; i < count; i++) {
        const ww_status status = check_index(gguf, call, indices[i]);
        if (status != WW_OK)
            return status;
        const gguf_tensor *t = &gguf->tensors[indices[i]], *first = &gguf->tensors[indices[0]];
        if (t->type != first->type || t->shape[0] != first->shape[0])
            return ww_fail(WW_DIMENSION_MISMATCH,
                           "%s: tensor '%s' is %s of %lld columns, '%s' %s of %lld; tensors of one matrix must be alike", call,
                           t->name, ww_gguf_type_name(t->type), (long long)t->shape[0], first->name,
                           ww_gguf_type_name(first->type), (long long)first->shape[0]);
    }
    const request r = {gguf, device, progress, user};
    return load_one(&r, indices, count, matrix);
}

/* Makes a matrix for each tensor that can be one. */
static ww_status make_all(const ww_gguf *gguf, ww_device *device, part *parts, ww_quant **matrices, int64_t *count)
{
    ww_status status = WW_OK;
    for (int64_t i = 0; status == WW_OK && i < gguf->tensor_count; i++) {
        const gguf_tensor *t = &gguf->tensors[i];
        if (!quant_type_known(t->type))
            continue;
        status = quant_make(device, (ww_quant_type)t->type, rows_of(t), t->shape[0], &matrices[i]);
        if (status == WW_OK)
            parts[(*count)++] = (part){.tensor = i, .matrix = matrices[i]};
    }
    return status;
}

ww_status ww_gguf_load_all(const ww_gguf *gguf, ww_device *device, ww_progress progress, void *user, ww_quant **matrices)
{
    FLOAT_GUARD();
    if (!gguf || !device || !matrices)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_gguf_load_all: %s is NULL", !gguf ? "gguf" : device ? "matrices" : "device");
    const int64_t count = gguf->tensor_count;
    for (int64_t i = 0; i < count; i++)
        matrices[i] = NULL;
    part *parts = memory_alloc_zeroed((size_t)count, sizeof *parts);
    if (!parts)
        return memory_failed("loading of a GGUF file", (size_t)count * sizeof *parts);
    loader l = {.gguf = gguf, .device = device, .parts = parts};
    ww_status status = make_all(gguf, device, parts, matrices, &l.count);
    if (status == WW_OK)
        status = fill(&l, progress, user);
    for (int64_t i = 0; status == WW_OK && i < l.count; i++)
        parts[i].matrix->finite = parts[i].finite;
    for (int64_t i = 0; status != WW_OK && i < count; i++) {
        ww_quant_destroy(matrices[i]);
        matrices[i] = NULL;
    }
    memory_free(parts);
    return status;
}
