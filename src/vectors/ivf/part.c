/* A collection's part of an index over ranks (vectors/internal/part.h). */
#include "vectors/internal/part.h"

#include <string.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/tables/hash.h"
#include "vectors/query/search.h"

/* ---- building ------------------------------------------------------------------------------------------------------------ */

static ww_status draw_rows(const ww_collection *c, const part_draw *draw, const int64_t *chosen, part_rows *drawn)
{
    int64_t number = draw->first, next = 0;
    for (int64_t row = store_next(&c->store, -1); row >= 0; row = store_next(&c->store, row), number++) {
        while (next < draw->wanted && chosen[next] < number)
            next++;
        if (next < draw->wanted && chosen[next] == number)
            drawn->rows[drawn->count++] = row;
    }
    const size_t floats = (size_t)drawn->count * (size_t)c->dim;
    drawn->vectors = memory_alloc(floats * sizeof *drawn->vectors);
    if (!drawn->vectors)
        return memory_failed("a sample of rows", floats * sizeof *drawn->vectors);
    return drawn->count > 0 ? ivf_read_rows(c, drawn->rows, drawn->count, drawn->vectors) : WW_OK;
}

ww_status part_draw_rows(ww_collection *c, const part_draw *draw, part_rows *drawn)
{
    FLOAT_GUARD();
    if (c->operations->build_ivf != memory_build_ivf)
        return ww_fail(
            WW_UNSUPPORTED,
            "collection '%s' is in a store, whose lists every writer of the file changes by itself; an index over ranks "
            "needs shards in memory",
            c->name);
    int64_t *chosen = memory_alloc((size_t)draw->wanted * sizeof *chosen);
    drawn->rows = memory_alloc((size_t)draw->wanted * sizeof *drawn->rows);
    ww_status status = chosen && drawn->rows ? WW_OK : memory_failed("a sample of rows", (size_t)draw->wanted * 16);
    if (status == WW_OK) {
        ivf_choose(draw->seed, NULL, draw->total, draw->wanted, chosen);
        collection_lock_read(c);
        status = draw_rows(c, draw, chosen, drawn);
        collection_unlock(c);
    }
    memory_free(chosen);
    return status;
}

ww_status part_train(ww_collection *c, const ww_ivf_config *config, float *sample, float *centroids)
{
    FLOAT_GUARD();
    ivf index = {.dim = c->dim,
                 .metric = (int32_t)c->metric,
                 .assigned = c->metric == WW_COSINE ? CANON_COSINE : CANON_L2,
                 .nlist = config->nlist,
                 .centroids = centroids};
    ivf_progress progress = {
        .told = config->progress, .user = config->progress_user, .total = config->sample_rows * config->iterations};
    const kmeans_job job = {.sample = sample,
                            .count = config->sample_rows,
                            .iterations = config->iterations,
                            .seed = config->seed,
                            .threads = c->device->backend->threads(c->device),
                            .progress = &progress};
    ivf_make_unit(&index, sample, config->sample_rows);
    collection_lock_read(c);
    const ww_status status = kmeans_train(&index, c, &job);
    collection_unlock(c);
    store_destroy(&index.store);
    return status;
}

/* Rows without lists, which are processed in pieces. */
typedef struct assigning {
    int64_t piece;
    float *vectors;
    int64_t *rows, *places; /* the rows, and their positions among all */
    uint32_t *lists;
} assigning;

static ww_status assign_some(const ww_collection *c, ww_collection *outline, const assigning *a, int64_t count)
{
    const ww_status status = ivf_read_rows(c, a->rows, count, a->vectors);
    return status == WW_OK ? outline_assign(outline, a->vectors, count, a->lists) : status;
}

static ww_status assign_rows(const ww_collection *c, ww_collection *outline, const part_rows *all, const assigning *a)
{
    ww_status status = WW_OK;
    for (int64_t at = 0; status == WW_OK && at < all->count;) {
        int64_t some = 0;
        for (; at < all->count && some < a->piece; at++)
            if (all->lists[at] == PART_NO_LIST) {
                a->rows[some] = all->rows[at];
                a->places[some++] = at;
            }
        if (some > 0)
            status = assign_some(c, outline, a, some);
        for (int64_t i = 0; status == WW_OK && i < some; i++)
            all->lists[a->places[i]] = a->lists[i];
    }
    return status;
}

ww_status part_assign(ww_collection *c, ww_collection *outline, const part_rows *rows)
{
    FLOAT_GUARD();
    assigning a = {.piece = min_i64(ivf_piece_rows(c->dim), max_i64(rows->count, 1))};
    const size_t row_bytes = (size_t)c->dim * sizeof *a.vectors + 2 * sizeof *a.rows + sizeof *a.lists;
    a.rows = memory_alloc((size_t)a.piece * row_bytes);
    if (!a.rows)
        return memory_failed("rows of an index", (size_t)a.piece * row_bytes);
    a.places = a.rows + a.piece;
    a.vectors = (float *)(a.places + a.piece);
    a.lists = (uint32_t *)(a.vectors + a.piece * c->dim);
    collection_lock_read(c);
    const ww_status status = assign_rows(c, outline, rows, &a);
    collection_unlock(c);
    memory_free(a.rows);
    return status;
}

static ww_status rows_reserve(part_rows *rows, int64_t count)
{
    rows->rows = memory_alloc((size_t)count * sizeof *rows->rows);
    rows->lists = memory_alloc((size_t)count * sizeof *rows->lists);
    return rows->rows && rows->lists
               ? WW_OK
               : memory_failed("rows of an index", (size_t)count * (sizeof *rows->rows + sizeof *rows->lists));
}

ww_status part_live_rows(ww_collection *c, part_rows *all)
{
    collection_lock_read(c);
    const ww_status status = rows_reserve(all, c->store.rows_live);
    for (int64_t row = store_next(&c->store, -1); status == WW_OK && row >= 0; row = store_next(&c->store, row)) {
        all->lists[all->count] = PART_NO_LIST;
        all->rows[all->count++] = row;
    }
    collection_unlock(c);
    return status;
}

ww_status part_vectors(ww_collection *c, const int64_t *rows, int64_t count, float *vectors)
{
    FLOAT_GUARD();
    collection_lock_read(c);
    const ww_status status = count > 0 ? ivf_read_rows(c, rows, count, vectors) : WW_OK;
    collection_unlock(c);
    return status;
}

ww_status part_make(ww_collection *c, const ivf_update *update, uint64_t part, ivf **made)
{
    FLOAT_GUARD();
    collection_lock_write(c);
    ivf *const old = c->index;
    c->index = NULL;
    const ww_status status = ivf_apply(c, update);
    *made = c->index;
    c->index = old;
    collection_unlock(c);
    if (status == WW_OK && *made) {
        (*made)->part = part;
        (*made)->rows_settled = (*made)->rows_added;
    }
    return status;
}

void part_take(ww_collection *c, ivf *made)
{
    collection_lock_write(c);
    ivf_destroy(c->index);
    c->index = made;
    collection_unlock(c);
}

uint64_t part_of(ww_collection *c)
{
    collection_lock_read(c);
    const ivf *index = c->index;
    uint64_t hash = index ? index->part : 0;
    for (int32_t h = 0; hash != 0 && h < index->calibration.k; h++) {
        uint64_t factor;
        memcpy(&factor, &index->calibration.rules[h].factor, sizeof factor);
        hash = fnv_word(fnv_word(hash, factor), (uint64_t)index->calibration.rules[h].nprobe);
    }
    collection_unlock(c);
    return hash;
}

/* Returns the list of each row. Called with the lock. */
static uint32_t *row_lists(const ww_collection *c)
{
    const size_t bytes = (size_t)c->store.rows_count * sizeof(uint32_t);
    uint32_t *lists = memory_alloc(bytes);
    if (lists)
        memset(lists, 0xff, bytes); /* PART_NO_LIST */
    for (int64_t l = 0; lists && c->index && l < c->index->nlist; l++)
        for (int64_t i = 0; i < c->index->lists[l].count; i++)
            lists[c->index->lists[l].rows[i]] = (uint32_t)l;
    return lists;
}

static ww_status copy_rows(const ww_collection *c, part_rows *all)
{
    uint32_t *lists = row_lists(c);
    if (!lists)
        return memory_failed("the lists of rows", (size_t)c->store.rows_count * sizeof *lists);
    const ww_status status = rows_reserve(all, c->index->rows);
    for (int64_t row = 0; status == WW_OK && row < c->store.rows_count; row++)
        if (lists[row] != PART_NO_LIST) {
            all->lists[all->count] = lists[row];
            all->rows[all->count++] = row;
        }
    memory_free(lists);
    return status;
}

static ww_status copy_numbers(const ivf *index, float **centroids, ivf_update *numbers)
{
    const size_t floats = (size_t)(index->nlist * index->dim) * sizeof(float);
    const size_t rules = (size_t)index->calibration.k * sizeof *index->calibration.rules;
    *numbers = (ivf_update){.nlist = index->nlist,
                            .loss = index->loss,
                            .rows_trained = index->rows_trained,
                            .rows_added = index->rows_added,
                            .lists_split = index->lists_split,
                            .calibration = index->calibration};
    *centroids = memory_alloc(floats);
    numbers->calibration.rules = memory_alloc(rules);
    if (!*centroids || !numbers->calibration.rules)
        return memory_failed("the lists of an index", floats + rules);
    memcpy(*centroids, index->centroids, floats);
    if (rules > 0)
        memcpy(numbers->calibration.rules, index->calibration.rules, rules);
    return WW_OK;
}

ww_status part_copy(ww_collection *c, part_rows *all, float **centroids, ivf_update *numbers)
{
    collection_lock_read(c);
    ww_status status = WW_OK;
    if (c->index) {
        status = copy_rows(c, all);
        if (status == WW_OK)
            status = copy_numbers(c->index, centroids, numbers);
    } else {
        status = ivf_not_found(c, "an index over ranks");
    }
    collection_unlock(c);
    return status;
}

/* ---- searching ----------------------------------------------------------------------------------------------------------- */

static ww_status check_index(const ww_collection *c, const ww_query *query)
{
    if (!c->index || c->index->part == 0)
        return ww_fail(WW_INVALID_ARGUMENT, "collection '%s' has no part of an index over ranks; build one first", c->name);
    if (query && query->recall > 0.0f && query->recall < 1.0f && c->index->calibration.k == 0)
        return ww_fail(WW_INVALID_ARGUMENT,
                       "collection '%s': recall is %g, but its index is not calibrated; calibrate it first", c->name,
                       (double)query->recall);
    return WW_OK;
}

ww_status part_count(const ww_collection *c, const search_job *job, const ww_query *query, part_counts *counts)
{
    const ww_status status = check_index(c, query);
    if (status != WW_OK)
        return status;
    const ivf *index = c->index;
    const size_t nlist = (size_t)index->nlist;
    *counts = (part_counts){.nlist = index->nlist,
                            .rule = query ? ivf_rule_of(index, query) : (ivf_rule){0},
                            .masked = job->mask != NULL,
                            .rows = index->rows,
                            .fresh = index->rows_added - index->rows_settled,
                            .trained = index->rows_trained,
                            .admitted = memory_alloc(nlist * sizeof *counts->admitted),
                            .records = memory_alloc(nlist * sizeof *counts->records)};
    if (!counts->admitted || !counts->records)
        return memory_failed("the lists of an index", nlist * (sizeof *counts->admitted + sizeof *counts->records));
    counts->all = ivf_count_admitted(c, job, counts->admitted);
    for (size_t l = 0; l < nlist; l++)
        counts->records[l] = ivf_list_record(&index->lists[l]);
    return WW_OK;
}

ww_status part_count_all(ww_collection *c, part_counts *counts)
{
    collection_lock_read(c);
    const ww_status status = part_count(c, &(search_job){0}, NULL, counts);
    collection_unlock(c);
    return status;
}

bool part_has_large(const part_counts *counts)
{
    bool large = false;
    for (int64_t l = 0; l < counts->nlist; l++)
        large = large || ivf_is_large(counts->records[l].rows, counts->records[l].equal_rows, counts->nlist, counts->rows);
    return large;
}

void part_settle(ww_collection *c)
{
    collection_lock_write(c);
    if (c->index)
        c->index->rows_settled = c->index->rows_added;
    collection_unlock(c);
}

bool part_reads_all(ww_collection *c, const part_counts *counts)
{
    return ivf_reads_all(&(ivf){.nlist = counts->nlist, .dim = c->dim}, counts->rule, counts->masked, counts->all,
                         counts->rows);
}

ww_status part_prove(ww_collection *c, const ivf_hits *hits, const part_counts *counts, int64_t wanted, int64_t *proven)
{
    FLOAT_GUARD();
    const ivf_whole whole = {wanted, counts->admitted};
    ivf_list *lists = memory_alloc((size_t)counts->nlist * sizeof *lists);
    if (!lists)
        return memory_failed("the lists of an index", (size_t)counts->nlist * sizeof *lists);
    for (int64_t l = 0; l < counts->nlist; l++)
        lists[l] = ivf_list_of(&counts->records[l]);
    collection_lock_read(c);
    ww_status status = WW_OK;
    if (c->index && c->index->nlist == counts->nlist) {
        ivf all = {.dim = c->index->dim,
                   .metric = c->index->metric,
                   .assigned = c->index->assigned,
                   .nlist = counts->nlist,
                   .centroids = c->index->centroids,
                   .store = c->index->store,
                   .lists = lists};
        status = ivf_prove(&all, hits, counts->rule, &whole, proven);
    } else {
        *proven = 0; /* the index was changed after it was counted */
    }
    collection_unlock(c);
    memory_free(lists);
    return status;
}

/* ---- calibrating --------------------------------------------------------------------------------------------------------- */

ww_status part_row_lists(ww_collection *c, uint32_t **lists)
{
    collection_lock_read(c);
    *lists = row_lists(c);
    const size_t bytes = (size_t)c->store.rows_count * sizeof **lists;
    collection_unlock(c);
    return *lists ? WW_OK : memory_failed("the lists of rows", bytes);
}

ww_status part_learn(ww_collection *c, const ww_calibrate_config *config, const uint32_t *lists, ivf_calibration *learnt)
{
    FLOAT_GUARD();
    collection_lock_read(c);
    const ww_status status =
        c->index ? ivf_calibrate_by_lists(c, config, lists, learnt) : ivf_not_found(c, "ww_cluster_calibrate");
    collection_unlock(c);
    return status;
}

void part_keep(ww_collection *c, ivf_calibration *learnt)
{
    collection_lock_write(c);
    if (c->index) {
        ivf_rule *const old = c->index->calibration.rules;
        c->index->calibration = *learnt;
        learnt->rules = old;
    }
    collection_unlock(c);
    memory_free(learnt->rules);
    *learnt = (ivf_calibration){0};
}
