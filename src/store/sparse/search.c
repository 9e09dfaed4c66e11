/* Searching by sparse vectors. The heads of the query's blocks are read first, then the data of those blocks that the bounds
 * let through. Pending rows are scored one by one. All of it is read in the view's transaction. */
#include <string.h>

#include "base/array.h"
#include "base/cancel.h"
#include "base/integers.h"
#include "base/memory.h"
#include "store/sparse/sparse.h"
#include "store/view/view_state.h"
#include "vectors/query/results.h"

/* A query with more terms keeps one block in memory, and reads a block again in each window that it reaches to. */
enum { BLOCKS_KEPT_MAX = 4096 };

/* A pending row: one that the index lacks, or one that was removed and that the index still has. */
typedef struct pending_row {
    int64_t place;
    bool removed;
    int64_t start, count; /* of its vector in `words` */
} pending_row;

typedef struct searching {
    view *v;
    const ww_query *query;
    sparse_tables t;
    uint64_t *admitted; /* bits of places; NULL: all */
    sqlite3_stmt *read_heads, *read_data;
    sparse_buffer space;
    pending_row *pending;
    uint32_t *words;
    int64_t pending_count, pending_room, word_count, word_room;
    int64_t rows; /* live, with a sparse vector */
    int64_t rows_scored;
    /* of one query: */
    sparse_head *heads; /* of all terms, one after the other */
    sparse_block *blocks;
    int64_t head_count, head_room, block_room;
    int64_t *starts; /* of each term in `heads` */
    sparse_term *terms;
    float *weights;
    uint32_t **data; /* of each term, or of all: the block that was read last */
    int64_t term_count;
} searching;

/* ---- what is pending ----------------------------------------------------------------------------------------------------- */

static ww_status keep_pending(searching *s, int64_t place, bool removed, const ww_sparse_vector *v)
{
    ww_status status = array_reserve(&s->pending, &s->pending_room, s->pending_count + 1, sizeof *s->pending, "pending rows");
    if (status == WW_OK)
        status = array_reserve(&s->words, &s->word_room, s->word_count + 2 * v->count, sizeof *s->words, "pending rows");
    if (status != WW_OK)
        return status;
    s->pending[s->pending_count++] = (pending_row){place, removed, s->word_count, v->count};
    memcpy(s->words + s->word_count, v->indices, (size_t)v->count * sizeof *s->words);
    memcpy(s->words + s->word_count + v->count, v->values, (size_t)v->count * sizeof *s->words);
    s->word_count += 2 * v->count;
    return WW_OK;
}

static ww_sparse_vector pending_vector(const searching *s, const pending_row *row)
{
    const uint32_t *indices = s->words + row->start;
    return (ww_sparse_vector){row->count, indices, (const float *)(const void *)(indices + row->count)};
}

static ww_status read_pending(searching *s)
{
    sqlite3_stmt *found = NULL;
    int code = SQLITE_DONE;
    ww_status status = schema_statement(
        s->t.db, &found,
        "SELECT p.place, p.vector IS NOT NULL, coalesce(p.handle, s.handle), coalesce(p.vector, s.vector), "
        "coalesce(p.checksum, "
        "s.checksum) FROM \"%w\".\"%w_sparse_pending\" AS p LEFT JOIN \"%w\".\"%w_sparse\" AS s ON s.place = p.place",
        s->t.schema, s->t.name, s->t.schema, s->t.name);
    while (status == WW_OK && (code = sqlite3_step(found)) == SQLITE_ROW) {
        ww_sparse_vector v;
        const int64_t place = sqlite3_column_int64(found, 0);
        const bool removed = sqlite3_column_int(found, 1);
        status = sparse_column(&s->t, (sparse_cell){found, 2, place}, &s->space, &v);
        if (status == WW_OK && (place < 0 || place >= WW_ROWS_MAX))
            status = row_damaged(s->t.name, "the sparse vector at place", place);
        if (status == WW_OK)
            status = keep_pending(s, place, removed, &v);
        s->rows += removed ? -1 : 1;
    }
    if (status == WW_OK && code != SQLITE_DONE)
        status = sqlite_failed(s->t.db, code, s->t.name);
    sqlite3_finalize(found);
    return status;
}

/* Takes removed rows, which the index still has, out of what the query admits. */
static ww_status hide_removed(searching *s)
{
    const int64_t places = s->v->record.next_place;
    const size_t words = (size_t)divide_up_i64(places, 64) + 1;
    for (int64_t i = 0; i < s->pending_count; i++) {
        const int64_t place = s->pending[i].place;
        if (!s->pending[i].removed || place >= places)
            continue;
        if (!s->admitted) {
            s->admitted = memory_alloc(words * sizeof *s->admitted);
            if (!s->admitted)
                return memory_failed("a mask", words * sizeof *s->admitted);
            memset(s->admitted, 0xff, words * sizeof *s->admitted);
        }
        s->admitted[place / 64] &= ~(UINT64_C(1) << (place % 64));
    }
    return WW_OK;
}

/* ---- the index ----------------------------------------------------------------------------------------------------------- */

/* Reads the heads of an index's blocks; `with` gets the number of its entries. */
static ww_status read_heads(searching *s, uint32_t index, int64_t *with)
{
    const int64_t begin = s->head_count;
    int code = SQLITE_DONE;
    ww_status status =
        s->read_heads ? WW_OK
                      : schema_statement(s->t.db, &s->read_heads,
                                         "SELECT " SPARSE_HEAD_COLUMNS " FROM \"%w\".\"%w_sparse_blocks\" WHERE key BETWEEN "
                                         "?1 AND ?2 ORDER BY key",
                                         s->t.schema, s->t.name);
    *with = 0;
    if (status != WW_OK)
        return status;
    sqlite3_bind_int64(s->read_heads, 1, sparse_key(index, 0));
    sqlite3_bind_int64(s->read_heads, 2, sparse_key(index, INT32_MAX));
    while (status == WW_OK && (code = sqlite3_step(s->read_heads)) == SQLITE_ROW) {
        status = array_reserve(&s->heads, &s->head_room, s->head_count + 1, sizeof *s->heads, "blocks of sparse vectors");
        if (status == WW_OK)
            status =
                array_reserve(&s->blocks, &s->block_room, s->head_count + 1, sizeof *s->blocks, "blocks of sparse vectors");
        if (status == WW_OK)
            status = sparse_head_column(&s->t, s->read_heads, s->head_count > begin ? &s->heads[s->head_count - 1] : NULL,
                                        &s->heads[s->head_count]);
        if (status == WW_OK) {
            s->blocks[s->head_count] = s->heads[s->head_count].block;
            *with += s->heads[s->head_count++].block.count;
        }
    }
    if (status == WW_OK && code != SQLITE_DONE)
        status = sqlite_failed(s->t.db, code, s->t.name);
    sqlite3_reset(s->read_heads);
    return status;
}

/* The engine's reader of blocks. */
static ww_status load(void *user, int64_t term, int64_t block, sparse_entries *entries)
{
    searching *s = user;
    const sparse_head *head = &s->heads[s->starts[term] + block];
    uint32_t **data = &s->data[s->term_count > BLOCKS_KEPT_MAX ? 0 : term];
    ww_status status =
        s->read_data ? WW_OK
                     : schema_statement(s->t.db, &s->read_data, "SELECT data FROM \"%w\".\"%w_sparse_blocks\" WHERE key = ?1",
                                        s->t.schema, s->t.name);
    if (status == WW_OK && !*data) {
        *data = memory_alloc(sizeof **data * 2 * SPARSE_BLOCK);
        if (!*data)
            status = memory_failed("a block of sparse vectors", sizeof **data * 2 * SPARSE_BLOCK);
    }
    if (status != WW_OK)
        return status;
    sqlite3_bind_int64(s->read_data, 1, head->key);
    const int code = sqlite3_step(s->read_data);
    status = code == SQLITE_ROW || code == SQLITE_DONE ? sparse_data_column(&s->t, s->read_data, 0, head, *data)
                                                       : sqlite_failed(s->t.db, code, s->t.name);
    sqlite3_reset(s->read_data);
    *entries = sparse_entries_of(head, *data);
    return status;
}

/* How many more rows have an index than the blocks say. */
static int64_t pending_with(const searching *s, uint32_t index)
{
    int64_t with = 0;
    for (int64_t i = 0; i < s->pending_count; i++) {
        const ww_sparse_vector v = pending_vector(s, &s->pending[i]);
        int64_t low = 0, high = v.count;
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (v.indices[middle] < index)
                low = middle + 1;
            else
                high = middle;
        }
        if (low < v.count && v.indices[low] == index)
            with += s->pending[i].removed ? -1 : 1;
    }
    return with;
}

/* Makes the terms of a query, with their weights. */
static ww_status make_terms(searching *s, const ww_sparse_vector *v, int64_t number)
{
    const size_t count = (size_t)v->count + 1;
    ww_status status = WW_OK;
    s->starts = memory_alloc(count * sizeof *s->starts);
    s->terms = memory_alloc(count * sizeof *s->terms);
    s->weights = memory_alloc(count * sizeof *s->weights);
    s->data = memory_alloc_zeroed(count, sizeof *s->data);
    s->term_count = v->count;
    s->head_count = 0;
    if (!s->starts || !s->terms || !s->weights || !s->data)
        return memory_failed("a sparse search", count * sizeof *s->terms);
    for (int64_t i = 0; status == WW_OK && i < v->count; i++) {
        int64_t with = 0;
        s->starts[i] = s->head_count;
        status = read_heads(s, v->indices[i], &with);
        s->weights[i] = v->values[i];
        if (status == WW_OK && s->query->sparse->modifier == WW_SPARSE_IDF)
            s->weights[i] = sparse_idf(v->values[i], s->rows, with + pending_with(s, v->indices[i]));
        s->terms[i] = (sparse_term){.weight = s->weights[i], .block_count = s->head_count - s->starts[i]};
        if (status == WW_OK && cancel_asked())
            status = ww_fail(WW_CANCELLED, "the search was cancelled");
    }
    for (int64_t i = 0; status == WW_OK && i < v->count; i++)
        s->terms[i].blocks = s->blocks + s->starts[i];
    return status == WW_OK ? sparse_check_weights(number, s->weights, v->count) : status;
}

static void free_terms(searching *s)
{
    for (int64_t i = 0; s->data && i < s->term_count; i++)
        memory_free(s->data[i]);
    memory_free(s->data);
    memory_free(s->starts);
    memory_free(s->terms);
    memory_free(s->weights);
    s->data = NULL;
    s->starts = NULL;
    s->terms = NULL;
    s->weights = NULL;
}

static ww_status search_one(searching *s, int64_t number, key_list *list)
{
    const ww_sparse_vector *v = &s->query->sparse->vectors[number];
    ww_status status = make_terms(s, v, number);
    sparse_search search = {.terms = s->terms,
                            .term_count = s->term_count,
                            .load = load,
                            .user = s,
                            .single = s->term_count > BLOCKS_KEPT_MAX,
                            .admitted = s->admitted,
                            .admitted_rows = s->v->record.next_place,
                            .range = s->query->mode == WW_QUERY_RANGE,
                            .bound = s->query->bound,
                            .limit = sparse_limit(s->query)};
    const ww_sparse_vector weighted = {v->count, v->indices, s->weights};
    for (int64_t i = 0; status == WW_OK && i < s->pending_count; i++) {
        const ww_sparse_vector row = pending_vector(s, &s->pending[i]);
        float score = 0.0f;
        if (!s->pending[i].removed && sparse_score(&weighted, &row, &score) > 0)
            status = sparse_offer(&search, list, (uint32_t)s->pending[i].place, score);
    }
    if (status == WW_OK && (search.range || search.limit > 0))
        status = sparse_search_run(&search, list);
    s->rows_scored += search.rows_scored;
    free_terms(s);
    return status;
}

/* ---- the whole ----------------------------------------------------------------------------------------------------------- */

/* The rows of the results are places; gives them their handles. */
static ww_status find_handles(const searching *s, ww_results *results)
{
    sqlite3_stmt *found = NULL;
    ww_status status =
        schema_statement(s->t.db, &found, "SELECT handle FROM \"%w\".\"%w_sparse\" WHERE place = ?1", s->t.schema, s->t.name);
    for (int64_t i = 0; status == WW_OK && i < results_hits(results); i++) {
        sqlite3_bind_int64(found, 1, results->rows[i]);
        const int code = sqlite3_step(found);
        if (code == SQLITE_ROW)
            results->handles[i] = sqlite3_column_int64(found, 0);
        else
            status = code == SQLITE_DONE ? row_damaged(s->t.name, "the sparse vector at place", results->rows[i])
                                         : sqlite_failed(s->t.db, code, s->t.name);
        sqlite3_reset(found);
    }
    sqlite3_finalize(found);
    return status;
}

static ww_status find(searching *s, const view_places *only, key_list *lists)
{
    bool exist = false;
    ww_status status = sparse_exist(&s->t, &exist);
    if (status != WW_OK || !exist)
        return status; /* no row has a sparse vector, so no row is found */
    status = view_admit(s->v, s->query, only, &s->admitted);
    if (status == WW_OK)
        status = sparse_rows_indexed(&s->t, &s->rows);
    if (status == WW_OK)
        status = read_pending(s);
    if (status == WW_OK)
        status = hide_removed(s);
    for (int64_t q = 0; status == WW_OK && q < s->query->query_count; q++)
        status = search_one(s, q, &lists[q]);
    return status;
}

ww_status view_sparse(view *v, const ww_query *query, const view_places *only, ww_results **results)
{
    v->index_reads++; /* its statements are prepared each time */
    searching s = {.v = v, .query = query, .t = {v->db, v->schema, v->record.name}};
    ww_results *made = NULL;
    key_list *lists = NULL;
    ww_status status = sparse_lists_create(query->query_count, &lists);
    if (status == WW_OK)
        status = find(&s, only, lists);
    if (status == WW_OK)
        status = sparse_results(query, lists, &made);
    if (status == WW_OK)
        sparse_tell_stats(query, s.rows_scored);
    if (status == WW_OK && results_hits(made) > 0)
        status = find_handles(&s, made);
    sqlite3_finalize(s.read_heads);
    sqlite3_finalize(s.read_data);
    sparse_lists_free(lists, query->query_count);
    memory_free(s.admitted);
    memory_free(s.pending);
    memory_free(s.words);
    memory_free(s.heads);
    memory_free(s.blocks);
    memory_free(s.space.words);
    return view_finish(v, status, query->fetch, made, results);
}
