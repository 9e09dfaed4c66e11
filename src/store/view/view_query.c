/* Searching a view, and fetching ids, payloads and vectors of hits from the file. */
#include <math.h>
#include <string.h>

#include "arithmetic/row_values.h"
#include "base/cancel.h"
#include "base/checksum.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/status.h"
#include "store/multi/multi.h"
#include "store/sparse/sparse.h"
#include "store/texts/texts.h"
#include "store/view/view_state.h"
#include "vectors/internal/mirror.h"
#include "vectors/query/results.h"

enum { ID_BYTES_GUESSED = 24 };

/* Fails if the caller has cancelled the call; looks once for some rows. */
static ww_status view_look(int64_t row)
{
    enum { ROWS_BETWEEN_LOOKS = 64 };
    if (row % ROWS_BETWEEN_LOOKS != 0 || !cancel_asked())
        return WW_OK;
    return ww_fail(WW_CANCELLED, "the call was cancelled");
}

/* ---- what belongs to hits ------------------------------------------------------------------------------------------------ */

static ww_status missing(const view *v, const char *what, int64_t number)
{
    return ww_fail(WW_CORRUPT_FILE, "collection '%s': %s %lld has no counterpart: its tables were changed by other means",
                   v->name, what, (long long)number);
}

/* Are id and payload of the statement's current row as they were written? */
static ww_status verify_entry(const view *v, sqlite3_stmt *s, int64_t handle)
{
    const char *id = (const char *)sqlite3_column_text(s, 1), *payload = (const char *)sqlite3_column_text(s, 2);
    if (!v->has_checksums)
        return WW_OK;
    const checksum_parts parts = {id ? id : "", (size_t)sqlite3_column_bytes(s, 1), payload, (size_t)sqlite3_column_bytes(s, 2),
                                  (uint64_t)sqlite3_column_int64(s, 4)};
    const uint64_t found = checksum_entry(&parts) ^ checksum_mark(handle, sqlite3_column_int64(s, 0));
    return found == (uint64_t)sqlite3_column_int64(s, 3) ? WW_OK : row_damaged(v->name, "the row with handle", handle);
}

/* Copies the text of a hit; it may have none. */
static ww_status fetch_words(view *v, ww_results *results, int64_t hit, uint64_t checksum)
{
    sqlite3_stmt *s = v->statements[READ_TEXT];
    ww_status status = WW_OK;
    sqlite3_bind_int64(s, 1, results->handles[hit]);
    const int code = sqlite3_step(s);
    const char *text = code == SQLITE_ROW ? (const char *)sqlite3_column_text(s, 0) : NULL;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        status = sqlite_failed(v->db, code, v->name);
    else if (v->has_checksums && checksum_text(text) != checksum)
        status = row_damaged(v->name, "the text of the row with handle", results->handles[hit]);
    else if (text)
        status = results_put(results, &results->texts[hit], text, strlen(text));
    sqlite3_reset(s);
    return status;
}

/* Copies id, payload and, with `words`, text of a hit, whose handle is known. */
static ww_status fetch_entry(view *v, ww_results *results, int64_t hit, bool words)
{
    sqlite3_stmt *s = v->statements[READ_ENTRY];
    const int64_t handle = results->handles[hit];
    sqlite3_bind_int64(s, 1, handle);
    const int code = sqlite3_step(s);
    ww_status status = code == SQLITE_ROW    ? verify_entry(v, s, handle)
                       : code == SQLITE_DONE ? missing(v, "the vector of handle", handle)
                                             : sqlite_failed(v->db, code, v->name);
    if (status == WW_OK && results->ids) {
        const char *id = (const char *)sqlite3_column_text(s, 1);
        status = id ? results_put(results, &results->ids[hit], id, (size_t)sqlite3_column_bytes(s, 1))
                    : missing(v, "the id of handle", handle);
    }
    const char *payload = status == WW_OK && results->payloads ? (const char *)sqlite3_column_text(s, 2) : NULL;
    if (payload)
        status = results_put(results, &results->payloads[hit], payload, (size_t)sqlite3_column_bytes(s, 2));
    if (status == WW_OK && words)
        status = fetch_words(v, results, hit, v->has_checksums ? (uint64_t)sqlite3_column_int64(s, 4) : 0);
    sqlite3_reset(s);
    return status;
}

static ww_status fetch_vector(view *v, ww_results *results, int64_t hit)
{
    sqlite3_stmt *s = v->statements[READ_VECTOR];
    const int64_t bytes = record_vector_bytes(&v->record), place = results->rows[hit];
    sqlite3_bind_int64(s, 1, place);
    const int code = sqlite3_step(s);
    const void *vector = code == SQLITE_ROW ? sqlite3_column_blob(s, 1) : NULL;
    ww_status status = WW_OK;
    if (!vector || sqlite3_column_bytes(s, 1) != bytes)
        status = code == SQLITE_ROW || code == SQLITE_DONE ? missing(v, "the row of place", place)
                                                           : sqlite_failed(v->db, code, v->name);
    else if (v->has_checksums &&
             !checksum_agrees(vector, (size_t)bytes, sqlite3_column_int64(s, 0), place, sqlite3_column_int64(s, 2)))
        status = row_damaged(v->name, "the vector at place", place);
    else
        row_widen((int32_t)v->record.type, vector, v->record.dim, results->vectors + hit * v->record.dim);
    sqlite3_reset(s);
    return status;
}

/* Copies the sparse vectors of all hits. */
static ww_status fetch_sparse(view *v, ww_results *results)
{
    const sparse_tables tables = {v->db, v->schema, v->record.name};
    sqlite3_stmt *read = NULL;
    sparse_buffer space = {0};
    bool exist = false;
    ww_status status = sparse_exist(&tables, &exist);
    v->index_reads += exist; /* its statement is prepared each time */
    for (int64_t i = 0; status == WW_OK && exist && i < results_hits(results); i++) {
        sparse_row row;
        status = view_look(i);
        if (status != WW_OK || results->rows[i] < 0)
            continue;
        status = sparse_read(&tables, &read, results->rows[i], &space, &row);
        if (status == WW_OK)
            status = results_put_sparse(results, i, &row.vector);
    }
    sqlite3_finalize(read);
    memory_free(space.words);
    return status;
}

/* Copies the multivectors of all hits. */
static ww_status fetch_multi(view *v, ww_results *results)
{
    const multi_table table = {v->db, v->schema, v->record.name};
    sqlite3_stmt *read = NULL;
    multi_space space = {0};
    bool exist = false;
    ww_status status = multi_table_exists(&table, &exist);
    for (int64_t i = 0; status == WW_OK && exist && i < results_hits(results); i++) {
        multi_row row;
        status = view_look(i);
        if (status != WW_OK || results->rows[i] < 0)
            continue;
        status = multi_read(&table, &read, results->rows[i], &space, &row);
        if (status == WW_OK)
            status = results_put_multi(results, i, &row.vector);
    }
    sqlite3_finalize(read);
    memory_free(space.numbers);
    return status;
}

/* The results already have handles, and places as rows. */
static ww_status fetch(view *v, ww_results *results, uint32_t what)
{
    const bool texts = (what & (WW_FETCH_IDS | WW_FETCH_PAYLOADS)) != 0;
    const int64_t hits = results->starts[results->query_count];
    bool words = false;
    ww_status status = results_prepare(results, what, v->record.dim, texts ? (size_t)hits * ID_BYTES_GUESSED : 0);
    if (status == WW_OK && results->texts)
        status = texts_exist(&(text_tables){v->db, v->schema, v->record.name}, &words);
    if (status == WW_OK && words)
        status = view_ready(v, READ_TEXT);
    if (status == WW_OK && (texts || words))
        status = view_ready(v, READ_ENTRY);
    if (status == WW_OK && results->vectors)
        status = view_ready(v, READ_VECTOR);
    for (int64_t i = 0; status == WW_OK && i < hits; i++) {
        status = view_look(i);
        if (status != WW_OK || results->rows[i] < 0)
            continue;
        if (texts || words)
            status = fetch_entry(v, results, i, words);
        if (status == WW_OK && results->vectors)
            status = fetch_vector(v, results, i);
    }
    if (status == WW_OK && results->sparse)
        status = fetch_sparse(v, results);
    return status == WW_OK && results->multi ? fetch_multi(v, results) : status;
}

/* ---- masks --------------------------------------------------------------------------------------------------------------- */

/* Was the kept mask made for this list? */
static bool mask_is_kept(const view *v, const mirror *m, const view_places *only, int64_t rows)
{
    return only->number != 0 && v->kept_mask && v->kept_number == only->number && v->kept_of == m &&
           v->kept_sequence == v->record.sequence && v->kept_rows == rows;
}

static bool admits(const ww_query *query, int64_t place)
{
    return !query->mask || (place >= 0 && place < query->mask_rows && query->mask[place / 64] >> (place % 64) & 1);
}

/* Makes `mask` (memory_free()): the bits of the rows of `m` that the query's mask and the list admit. */
static ww_status mask_make(const mirror *m, const ww_query *query, const view_places *only, int64_t rows, uint64_t **mask)
{
    const size_t words = (size_t)divide_up_i64(rows, 64) + 1;
    uint64_t *made = memory_alloc_zeroed(words, sizeof *made);
    if (!made)
        return memory_failed("a mask", words * sizeof *made);
    if (!only)
        mirror_mask(m, query->mask, query->mask_rows, made);
    for (int64_t i = 0; only && i < only->count; i++) {
        const int64_t row = admits(query, only->places[i]) ? mirror_row(m, only->places[i]) : -1;
        if (row >= 0)
            made[row / 64] |= UINT64_C(1) << (row % 64);
    }
    *mask = made;
    return WW_OK;
}

ww_status view_admit(const view *v, const ww_query *query, const view_places *only, uint64_t **admitted)
{
    const int64_t places = v->record.next_place;
    const size_t words = (size_t)divide_up_i64(places, 64) + 1;
    *admitted = NULL;
    if (!only && !query->mask)
        return WW_OK;
    uint64_t *made = memory_alloc_zeroed(words, sizeof *made);
    if (!made)
        return memory_failed("a mask", words * sizeof *made);
    const int64_t count = only ? only->count : min_i64(places, query->mask_rows);
    for (int64_t i = 0; i < count; i++) {
        const int64_t place = only ? only->places[i] : i;
        if (place >= 0 && place < places && admits(query, place))
            made[place / 64] |= UINT64_C(1) << (place % 64);
    }
    *admitted = made;
    return WW_OK;
}

static void mask_keep(view *v, const mirror *m, const view_places *only, int64_t rows, uint64_t *mask)
{
    memory_free(v->kept_mask);
    v->kept_mask = mask;
    v->kept_number = only->number;
    v->kept_of = m;
    v->kept_sequence = v->record.sequence;
    v->kept_rows = rows;
}

/* ---- searching ----------------------------------------------------------------------------------------------------------- */

/* Runs the query with a mask over the mirror's rows instead of over places; NULL admits all rows. Fetches nothing: ids and
 * payloads are in the file. */
static ww_status search_masked(mirror *m, const ww_query *query, const uint64_t *mask, ww_results **results)
{
    ww_query masked = *query;
    masked.mask = mask;
    masked.mask_rows = mask ? mirror_state_of(m).rows : 0;
    masked.fetch = 0;
    masked.match = NULL;
    masked.filter = NULL; /* its rows have no payloads; the mask says what the filter admits */
    return mirror_query(m, &masked, results);
}

ww_status view_search_mirror(const view_search *s, mirror *m, const uint64_t *removed, ww_results **results)
{
    const int64_t rows = mirror_state_of(m).rows;
    const bool may_keep = s->only && s->only->number != 0 && !removed && !s->query->mask;
    if (!s->query->mask && !s->only)
        return search_masked(m, s->query, removed, results);
    if (may_keep && mask_is_kept(s->v, m, s->only, rows))
        return search_masked(m, s->query, s->v->kept_mask, results);
    uint64_t *mask = NULL;
    ww_status status = mask_make(m, s->query, s->only, rows, &mask);
    if (status != WW_OK)
        return status;
    for (int64_t i = 0; removed && i < divide_up_i64(rows, 64); i++)
        mask[i] &= removed[i];
    status = search_masked(m, s->query, mask, results);
    if (status == WW_OK && may_keep)
        mask_keep(s->v, m, s->only, rows, mask);
    else
        memory_free(mask);
    return status;
}

/* Does score a of the first part come before score b of the second? On a tie it does: all places of the first are smaller. */
static bool is_better(ww_metric metric, float a, float b)
{
    return metric == WW_L2 ? a <= b : a >= b;
}

ww_status view_merge(const view_search *s, ww_results *const parts[2], ww_results **results)
{
    const bool range = s->query->mode == WW_QUERY_RANGE;
    const int64_t queries = s->query->query_count, hits_max = range ? s->query->limit : s->query->k;
    ww_results *made = NULL;
    ww_status status = results_create(queries, parts[0]->starts[queries] + parts[1]->starts[queries], &made);
    if (status == WW_OK && range)
        status = results_totals(made);
    if (status == WW_OK && parts[0]->proven)
        status = results_proven(made);
    int64_t hits = 0;
    for (int64_t q = 0; status == WW_OK && q < queries; q++) {
        int64_t at[2] = {parts[0]->starts[q], parts[1]->starts[q]};
        const int64_t end[2] = {parts[0]->starts[q + 1], parts[1]->starts[q + 1]};
        for (int64_t n = 0; n < hits_max && (at[0] < end[0] || at[1] < end[1]); n++, hits++) {
            const bool first = at[1] == end[1] || (at[0] < end[0] && is_better(s->v->record.metric, parts[0]->scores[at[0]],
                                                                               parts[1]->scores[at[1]]));
            const ww_results *from = parts[first ? 0 : 1];
            const int64_t hit = at[first ? 0 : 1]++;
            /* The overlay is searched exactly: only a hit of the mirror may be unproven. */
            if (made->proven && parts[0]->proven && made->proven[q] == n &&
                (!first || hit - parts[0]->starts[q] < parts[0]->proven[q]))
                made->proven[q]++;
            made->rows[hits] = from->rows[hit];
            made->handles[hits] = from->handles[hit];
            made->scores[hits] = from->scores[hit];
        }
        made->starts[q + 1] = hits;
        if (range)
            made->totals[q] = ww_results_total(parts[0], q) + ww_results_total(parts[1], q);
    }
    *results = made;
    return status;
}

/* Finds the hits with their places, handles and scores. */
static ww_status find(const view_search *s, ww_results **results)
{
    view *v = s->v;
    if (v->streaming)
        return view_stream(s, results);
    if (!v->overlaid)
        return view_search_mirror(s, v->active, NULL, results);
    ww_results *parts[2] = {NULL, NULL};
    ww_query quiet = *s->query; /* statistics and progress come from the mirror, the larger part */
    quiet.stats = NULL;
    quiet.progress = NULL;
    quiet.nprobe = 0; /* the overlay has no index */
    quiet.recall = 0.0f;
    ww_status status = view_search_mirror(s, v->active, v->overlay_mask, &parts[0]);
    if (status == WW_OK)
        status = view_search_mirror(&(view_search){v, &quiet, s->only}, v->overlay, NULL, &parts[1]);
    if (status == WW_OK)
        status = view_merge(s, parts, results);
    ww_results_destroy(parts[0]);
    ww_results_destroy(parts[1]);
    return status;
}

/* Fetches what the caller wants to know of the hits, and returns the results. */
ww_status view_finish(view *v, ww_status status, uint32_t what, ww_results *made, ww_results **results)
{
    if (status == WW_OK)
        status = fetch(v, made, what);
    if (status == WW_OK)
        *results = made;
    else
        ww_results_destroy(made);
    return status;
}

ww_status view_query(view *v, const ww_query *query, const view_places *only, ww_results **results)
{
    ww_results *made = NULL;
    ww_status status = query->nprobe > 0 || query->recall > 0.0f ? view_check_index(v) : WW_OK;
    if (status == WW_OK)
        status = find(&(view_search){v, query, only}, &made);
    return view_finish(v, status, query->fetch, made, results);
}

ww_status view_ranked(view *v, const ww_query *query, const view_places *only, int64_t first, ww_results **results)
{
    ww_query best = *query;
    ww_results *ranked = NULL, *made = NULL;
    best.mode = WW_QUERY_RANGE;
    best.bound = v->record.metric == WW_L2 ? INFINITY : -INFINITY;
    best.limit = min_i64(first + query->limit, WW_ROWS_MAX);
    ww_status status = find(&(view_search){v, &best, only}, &ranked);
    const int64_t found = status == WW_OK ? max_i64(0, ranked->starts[1] - first) : 0;
    if (status == WW_OK)
        status = results_create(1, found, &made);
    for (int64_t i = 0; status == WW_OK && i < found; i++) {
        made->rows[i] = ranked->rows[first + i];
        made->handles[i] = ranked->handles[first + i];
        made->scores[i] = ranked->scores[first + i];
    }
    if (status == WW_OK)
        made->starts[1] = found;
    ww_results_destroy(ranked);
    return view_finish(v, status, query->fetch, made, results);
}

/* ---- looking up ---------------------------------------------------------------------------------------------------------- */

/* Finds place and handle of entry `i` of the list; both -1 if it does not exist. */
static ww_status look_up(view *v, const view_list *list, int64_t i, int64_t *place, int64_t *handle)
{
    static const view_statement by[] = {[VIEW_BY_PLACE] = FIND_PLACE, [VIEW_BY_HANDLE] = READ_ENTRY, [VIEW_BY_ID] = FIND_BY_ID};
    sqlite3_stmt *s = v->statements[by[list->by]];
    if (list->by == VIEW_BY_ID)
        sqlite3_bind_text(s, 1, list->ids[i], -1, SQLITE_STATIC);
    else
        sqlite3_bind_int64(s, 1, list->numbers[i]);
    const int code = sqlite3_step(s);
    *place = *handle = -1;
    if (code == SQLITE_ROW) {
        *handle = list->by == VIEW_BY_HANDLE ? list->numbers[i] : sqlite3_column_int64(s, 0);
        *place = list->by == VIEW_BY_PLACE ? list->numbers[i] : sqlite3_column_int64(s, list->by == VIEW_BY_ID ? 1 : 0);
    }
    sqlite3_reset(s);
    return code == SQLITE_ROW || code == SQLITE_DONE ? WW_OK : sqlite_failed(v->db, code, v->name);
}

static ww_status list_entries(view *v, const view_list *list, ww_results *results)
{
    static const view_statement needed[] = {
        [VIEW_BY_PLACE] = FIND_PLACE, [VIEW_BY_HANDLE] = READ_ENTRY, [VIEW_BY_ID] = FIND_BY_ID};
    ww_status status = view_ready(v, needed[list->by]);
    for (int64_t i = 0; status == WW_OK && i < list->count; i++) {
        status = view_look(i);
        if (status == WW_OK)
            status = look_up(v, list, i, &results->rows[i], &results->handles[i]);
        results->scores[i] = 0.0f;
    }
    results->starts[1] = list->count;
    return status;
}

static ww_status all_entries(view *v, const view_list *list, int64_t count, ww_results *results)
{
    ww_status status = view_ready(v, LIST_PLACES);
    if (status != WW_OK)
        return status;
    sqlite3_stmt *s = v->statements[LIST_PLACES];
    int64_t found = 0;
    int code = SQLITE_DONE;
    sqlite3_bind_int64(s, 1, list->after);
    while (found < count && (code = sqlite3_step(s)) == SQLITE_ROW) {
        results->rows[found] = sqlite3_column_int64(s, 0);
        results->handles[found] = sqlite3_column_int64(s, 1);
        results->scores[found++] = 0.0f;
    }
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        status = sqlite_failed(v->db, code, v->name);
    sqlite3_reset(s);
    results->starts[1] = found;
    return status;
}

ww_status view_get(view *v, const view_list *list, ww_results **results)
{
    ww_results *made = NULL;
    const int64_t count = list->by == VIEW_ALL ? min_i64(list->count, v->record.live) : list->count;
    ww_status status = results_create(1, count, &made);
    if (status == WW_OK)
        status = list->by == VIEW_ALL ? all_entries(v, list, count, made) : list_entries(v, list, made);
    return view_finish(v, status, list->fetch, made, results);
}
