/* Building, dropping and describing an index. */
#include "vectors/ivf/ivf.h"

#include <math.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "arithmetic/philox.h"
#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/structs.h"

enum {
    SAMPLE_ROWS = 256,      /* rows per list for the sample of k-means, by default */
    LIST_ROWS_DEFAULT = 16, /* minimum average size of a list, if the caller does not choose the number of lists */
    ITERATIONS_DEFAULT = 10,
    ITERATIONS_MAX = 1000,
    LIST_CAPACITY_FIRST = 16,
    ROWS_TOGETHER = 1024, /* sample rows that a thread divides by their lengths at a time */
};

STRUCT_INIT(ww_ivf_config, {0})
STRUCT_INIT(ww_ivf_info, {0})

void ivf_destroy(ivf *index)
{
    if (!index)
        return;
    ivf_forget(index);
    for (int64_t i = 0; index->lists && i < index->nlist; i++)
        ivf_list_free(&index->lists[i]);
    store_destroy(&index->store);
    memory_free(index->calibration.rules);
    memory_free(index->lists);
    memory_free(index->centroids);
    memory_free(index);
}

void ivf_list_free(ivf_list *list)
{
    memory_free(list->rows);
    list->rows = NULL;
}

ww_status ivf_list_reserve(ivf_list *list, int64_t more)
{
    if (list->capacity - list->count >= more)
        return WW_OK;
    const int64_t capacity = max_i64(max_i64(list->count + more, list->count + list->count / 4), LIST_CAPACITY_FIRST);
    uint32_t *rows = memory_resize(list->rows, (size_t)capacity * sizeof *rows);
    if (!rows)
        return memory_failed("a list of an index", (size_t)capacity * sizeof *rows);
    list->rows = rows;
    list->capacity = capacity;
    return WW_OK;
}

void ivf_list_append(const ivf *index, ivf_list *list, uint32_t row, const ivf_place *place)
{
    const bool l2 = index->assigned == CANON_L2;
    const bool first = list->count == 0;
    const bool farther = l2 ? place->score > list->farthest : place->score < list->farthest;
    const bool nearer = l2 ? place->score < list->nearest : place->score > list->nearest;
    if (first || farther)
        list->farthest = place->score;
    if (first || nearer)
        list->nearest = place->score;
    list->unbounded = list->unbounded || place->unbounded;
    list->rows[list->count++] = row;
}

/* ---- building ------------------------------------------------------------------------------------------------------------ */

typedef struct build {
    ww_collection *collection;
    ww_ivf_config config; /* with all defaults filled in */
    ivf *index;
    int64_t *numbers; /* the live rows in ascending order, followed by those of the sample */
    float *sample;
    buffer sample_here; /* the sample on the device, or empty */
    ivf_place *places;  /* one per live row */
    ivf_progress progress;
} build;

/* Takes each number with the probability (numbers still wanted) / (numbers left). */
void ivf_choose(uint64_t seed, const int64_t *from, int64_t count, int64_t wanted, int64_t *to)
{
    int64_t taken = 0;
    for (int64_t i = 0; i < count && taken < wanted; i++) {
        const uint64_t word = philox(seed, (uint64_t)i).word[0];
        if (word * (uint64_t)(count - i) >> 32 < (uint64_t)(wanted - taken)) /* count < 2^32 */
            to[taken++] = from ? from[i] : i;
    }
}

/* Checks the config and fills in the defaults. */
static ww_status check_config(const ww_collection *c, ww_ivf_config *config)
{
    const int64_t rows = c->store.rows_live;
    if (rows == 0)
        return ww_fail(WW_INVALID_ARGUMENT, "collection '%s' has no rows that an index could be built from", c->name);
    if (config->nlist == 0)
        config->nlist = max_i64(min_i64((int64_t)(4.0 * sqrt((double)rows)), rows / LIST_ROWS_DEFAULT), 1);
    if (config->nlist < 0 || config->nlist > WW_IVF_LISTS_MAX || config->nlist > rows)
        return ww_fail(WW_OUT_OF_RANGE, "ww_collection_build_ivf: nlist is %lld; it must be 1 to %lld, the rows or %d",
                       (long long)config->nlist, (long long)min_i64(rows, WW_IVF_LISTS_MAX), WW_IVF_LISTS_MAX);
    if (config->sample_rows < 0)
        return ww_fail(WW_OUT_OF_RANGE, "ww_collection_build_ivf: sample_rows is %lld; it must not be negative",
                       (long long)config->sample_rows);
    if (config->sample_rows == 0)
        config->sample_rows = config->nlist * SAMPLE_ROWS;
    config->sample_rows = min_i64(max_i64(config->sample_rows, config->nlist), rows);
    if (config->iterations < 0 || config->iterations > ITERATIONS_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "ww_collection_build_ivf: iterations is %d; it must be 0 to %d", config->iterations,
                       ITERATIONS_MAX);
    if (config->iterations == 0)
        config->iterations = ITERATIONS_DEFAULT;
    return WW_OK;
}

static ww_status take_memory(build *b)
{
    const ww_collection *c = b->collection;
    const int64_t rows = c->store.rows_live, nlist = b->config.nlist, sample = b->config.sample_rows;
    b->index = memory_alloc_zeroed(1, sizeof *b->index);
    b->numbers = memory_alloc((size_t)(rows + sample) * sizeof *b->numbers);
    b->sample = memory_alloc((size_t)sample * (size_t)c->dim * sizeof *b->sample);
    b->places = memory_alloc((size_t)rows * sizeof *b->places);
    if (b->index) {
        *b->index = (ivf){.dim = c->dim,
                          .metric = (int32_t)c->metric,
                          .assigned = c->metric == WW_COSINE ? CANON_COSINE : CANON_L2,
                          .nlist = nlist};
        b->index->centroids = memory_alloc((size_t)nlist * (size_t)c->dim * sizeof *b->index->centroids);
        b->index->lists = memory_alloc_zeroed((size_t)nlist, sizeof *b->index->lists);
    }
    if (b->index && b->numbers && b->sample && b->places && b->index->centroids && b->index->lists)
        return WW_OK;
    return memory_failed("building an index", (size_t)(sample * c->dim) * sizeof *b->sample +
                                                  (size_t)rows * (sizeof *b->places + sizeof *b->numbers));
}

typedef struct unit_job {
    const ivf *index;
    float *vectors;
    int64_t count;
} unit_job;

static void make_some_unit(void *context, int64_t item, int32_t worker)
{
    (void)worker;
    const unit_job *job = context;
    const int64_t first = item * ROWS_TOGETHER;
    ivf_make_unit(job->index, job->vectors + first * job->index->dim, min_i64(ROWS_TOGETHER, job->count - first));
}

static void make_unit(const build *b)
{
    pool *threads = b->collection->device->backend->threads(b->collection->device);
    unit_job job = {b->index, b->sample, b->config.sample_rows};
    const int64_t items = divide_up_i64(job.count, ROWS_TOGETHER);
    if (threads)
        (void)pool_run(threads, items, make_some_unit, NULL, &job);
    else
        pool_run_here(items, make_some_unit, &job);
}

/* Reads the sample, also to the device if it can use it there and has memory. `chosen` are the numbers of its rows. */
static ww_status read_sample(build *b, const int64_t *chosen)
{
    const ww_collection *c = b->collection;
    const backend *api = c->device->backend;
    const int64_t count = b->config.sample_rows;
    const size_t bytes = (size_t)count * (size_t)c->dim * sizeof *b->sample;
    ww_status status = api->rows_read_here ? api->buffer_create(c->device, bytes, &b->sample_here) : WW_OUT_OF_MEMORY;
    if (status == WW_OUT_OF_MEMORY) {
        status = ivf_read_rows(c, chosen, count, b->sample);
        if (status == WW_OK)
            make_unit(b);
        return status;
    }
    if (status == WW_OK)
        status = ivf_read_rows_here(c, chosen, count, b->sample_here.data);
    if (status == WW_OK)
        status = api->copy_out(c->device, c->stream, b->sample, (buffer_range){&b->sample_here, 0, bytes});
    if (status != WW_OK || b->index->assigned != CANON_COSINE)
        return status;
    make_unit(b);
    return api->copy_in(c->device, c->stream, (buffer_range){&b->sample_here, 0, bytes}, b->sample);
}

static ww_status train(build *b)
{
    ww_collection *c = b->collection;
    const int64_t rows = c->store.rows_live, count = b->config.sample_rows;
    int64_t *chosen = b->numbers + rows, live = 0;
    for (int64_t row = store_next(&c->store, -1); row >= 0; row = store_next(&c->store, row))
        b->numbers[live++] = row;
    ivf_choose(b->config.seed, b->numbers, rows, count, chosen);
    ww_status status = read_sample(b, chosen);
    if (status == WW_OK)
        status = c->device->backend->stream_synchronize(c->device, c->stream);
    const kmeans_job job = {.sample = b->sample,
                            .sample_here = b->sample_here.data,
                            .count = count,
                            .iterations = b->config.iterations,
                            .seed = b->config.seed,
                            .threads = c->device->backend->threads(c->device),
                            .progress = &b->progress};
    if (status == WW_OK)
        status = kmeans_train(b->index, c, &job);
    c->device->backend->buffer_destroy(c->device, &b->sample_here);
    return status;
}

/* Finds the lists of all live rows, and the loss. */
static ww_status assign(build *b)
{
    const ww_collection *c = b->collection;
    const int64_t rows = c->store.rows_live, piece = min_i64(ivf_piece_rows(c->dim), rows);
    double loss = 0.0;
    ivf_reader reader;
    ww_status status = ivf_reader_create(&reader, c, b->index, piece);
    for (int64_t first = 0; status == WW_OK && first < rows; first += piece) {
        const int64_t count = min_i64(piece, rows - first);
        status = ivf_find_places(&reader, b->numbers + first, count, b->places + first);
        for (int64_t i = 0; status == WW_OK && i < count; i++) {
            const double score = (double)b->places[first + i].score;
            loss += b->index->assigned == CANON_L2 ? score * score : 1.0 - score;
        }
        if (status == WW_OK)
            status = ivf_progress_add(&b->progress, count);
    }
    ivf_reader_free(&reader);
    b->index->loss = loss / (double)rows;
    return status;
}

static ww_status make_lists(build *b)
{
    ivf *index = b->index;
    const int64_t rows = b->collection->store.rows_live;
    ww_status status = WW_OK;
    for (int64_t i = 0; i < rows; i++)
        index->lists[b->places[i].list].capacity++; /* the rows are counted first */
    for (int64_t l = 0; status == WW_OK && l < index->nlist; l++) {
        const int64_t count = index->lists[l].capacity;
        index->lists[l].capacity = 0;
        if (count > 0)
            status = ivf_list_reserve(&index->lists[l], count);
    }
    for (int64_t i = 0; status == WW_OK && i < rows; i++)
        ivf_list_append(index, &index->lists[b->places[i].list], (uint32_t)b->numbers[i], &b->places[i]);
    index->rows = index->rows_trained = rows;
    ivf_changed(index);
    return status;
}

static void free_build(build *b)
{
    ivf_destroy(b->index);
    memory_free(b->places);
    memory_free(b->sample);
    memory_free(b->numbers);
}

static ww_status build_index(build *b)
{
    ww_collection *c = b->collection;
    ww_status status = check_config(c, &b->config);
    if (status != WW_OK)
        return status;
    b->progress = (ivf_progress){.told = b->config.progress, .user = b->config.progress_user};
    b->progress.total = b->config.sample_rows * b->config.iterations + c->store.rows_live;
    status = ivf_progress_add(&b->progress, 0);
    if (status == WW_OK)
        status = take_memory(b);
    if (status == WW_OK)
        status = train(b);
    if (status == WW_OK)
        status = assign(b);
    if (status == WW_OK)
        status = make_lists(b);
    if (status == WW_OK)
        status = ivf_split_large(b->index, c);
    return status;
}

ww_status ivf_build(ww_collection *c, const ww_ivf_config *config, ivf **index)
{
    build b = {.collection = c, .config = *config};
    const ww_status status = build_index(&b);
    if (status == WW_OK) {
        *index = b.index;
        b.index = NULL;
    }
    free_build(&b);
    return status;
}

/* ---- the calls ----------------------------------------------------------------------------------------------------------- */

ww_status ivf_not_found(const ww_collection *c, const char *function)
{
    return ww_fail(WW_NOT_FOUND, "%s: collection '%s' has no index; build one first", function, c->name);
}

ww_status memory_build_ivf(ww_collection *c, const ww_ivf_config *config)
{
    ivf *index = NULL;
    collection_lock_write(c);
    const ww_status status = ivf_build(c, config, &index);
    if (status == WW_OK) {
        ivf_destroy(c->index);
        c->index = index;
    }
    collection_unlock(c);
    return status;
}

ww_status ww_collection_build_ivf(ww_collection *collection, const ww_ivf_config *config)
{
    FLOAT_GUARD();
    static const char function[] = "ww_collection_build_ivf";
    ww_ivf_config checked = {0};
    ww_status status = collection_check(collection, function);
    if (status == WW_OK && config)
        status = struct_read(&checked, sizeof checked, config, function, "ww_ivf_config");
    return status == WW_OK ? collection->operations->build_ivf(collection, &checked) : status;
}

ww_status memory_drop_ivf(ww_collection *c)
{
    collection_lock_write(c);
    const ww_status status = c->index ? WW_OK : ivf_not_found(c, "ww_collection_drop_ivf");
    ivf_destroy(c->index);
    c->index = NULL;
    collection_unlock(c);
    return status;
}

ww_status ww_collection_drop_ivf(ww_collection *collection)
{
    FLOAT_GUARD();
    const ww_status status = collection_check(collection, "ww_collection_drop_ivf");
    return status == WW_OK ? collection->operations->drop_ivf(collection) : status;
}

static ww_ivf_info info_of(const ww_collection *c)
{
    const ivf *index = c->index;
    ww_ivf_info info = {.nlist = index->nlist,
                        .rows = index->rows,
                        .rows_mean = (double)index->rows / (double)index->nlist,
                        .loss = index->loss,
                        .rows_trained = index->rows_trained,
                        .rows_added = index->rows_added,
                        .lists_split = index->lists_split,
                        .calibration_queries = index->calibration.queries,
                        .calibration_k = index->calibration.k,
                        .calibration_time = index->calibration.time};
    if (index->calibration.k > 0) {
        info.calibration_rows_added = index->rows_added - index->calibration.rows_added;
        info.calibration_rows_removed = index->calibration.rows_live + info.calibration_rows_added - c->store.rows_live;
    }
    info.bytes = index->nlist * (int64_t)(sizeof *index->lists + (size_t)index->dim * sizeof *index->centroids);
    for (int64_t i = 0; i < index->nlist; i++) {
        info.rows_largest = max_i64(info.rows_largest, index->lists[i].count);
        info.bytes += index->lists[i].capacity * (int64_t)sizeof *index->lists[i].rows;
    }
    if (index->held)
        info.bytes += index->store.device->backend->lists_bytes(index->held);
    for (int64_t s = 0; s < index->store.segment_count; s++) {
        const segment *part = &index->store.segments[s];
        info.bytes += (int64_t)(part->rows.bytes + part->norms.bytes + part->live.bytes + part->codes.bytes +
                                part->scales.bytes + part->residuals.bytes);
    }
    return info;
}

ww_status memory_describe_ivf(ww_collection *c, ww_ivf_info *info)
{
    ww_status status = WW_OK;
    collection_lock_read(c);
    if (c->index)
        *info = info_of(c);
    else
        status = ivf_not_found(c, "ww_collection_describe_ivf");
    collection_unlock(c);
    return status;
}

ww_status ww_collection_describe_ivf(ww_collection *collection, ww_ivf_info *info)
{
    FLOAT_GUARD();
    static const char function[] = "ww_collection_describe_ivf";
    ww_ivf_info found = {0};
    ww_status status = collection_check(collection, function);
    if (status == WW_OK && !info)
        status = fail_null(function, "info");
    if (status == WW_OK)
        status = collection->operations->describe_ivf(collection, &found);
    return status == WW_OK ? struct_write(info, &found, sizeof found, function, "ww_ivf_info") : status;
}
