/* Searching the rows in the file, for a collection that does not fit into the memory that its store may use.
 *
 * Rows are read in order of place, in pieces (view_load.c). Each piece is a small collection on the device, is searched exactly
 * while the next one is read, and is freed; its hits are merged with the best so far. A row's score does not depend on other
 * rows, so the answer has the same bits as that of the whole collection in memory.
 */
#include <math.h>

#include "base/integers.h"
#include "base/memory.h"
#include "base/structs.h"
#include "store/view/view_state.h"
#include "vectors/query/results.h"

typedef struct stream {
    view_search search; /* of each piece */
    ww_query query;
    ww_collection_config config;
    ww_search_stats piece, total;
    ww_results *best; /* NULL before the first piece */
} stream;

static void stats_add(stream *s)
{
    s->total.rows_screened += s->piece.rows_screened;
    s->total.rows_kept += s->piece.rows_kept;
    s->total.rows_scored += s->piece.rows_scored;
    s->total.fallback_queries += s->piece.fallback_queries;
    s->total.certificate = fminf(s->total.certificate, s->piece.certificate);
    s->total.repeated_queries += s->piece.repeated_queries;
}

/* Merges the hits of the next piece with the best so far, and frees both. */
static ww_status keep_best(stream *s, ww_results *found)
{
    ww_results *const parts[] = {s->best, found};
    ww_results *merged = NULL;
    ww_status status = WW_OK;
    if (!s->best) {
        s->best = found;
        return WW_OK;
    }
    status = view_merge(&s->search, parts, &merged);
    ww_results_destroy(s->best);
    ww_results_destroy(found);
    s->best = merged;
    return status;
}

static ww_status search_piece(void *context, const mirror_rows *rows)
{
    stream *s = context;
    mirror *m = NULL;
    ww_results *found = NULL;
    ww_status status = mirror_create(s->search.v->device, &s->config, &m);
    if (status == WW_OK)
        status = mirror_reserve(m, rows->count);
    if (status == WW_OK)
        status = mirror_append(m, rows);
    if (status == WW_OK)
        status = view_search_mirror(&s->search, m, NULL, &found);
    mirror_release(m);
    if (status != WW_OK)
        return status;
    stats_add(s);
    return keep_best(s, found);
}

ww_status view_stream(const view_search *asked, ww_results **results)
{
    view *v = asked->v;
    stream s = {.search = *asked,
                .query = *asked->query,
                .config = view_mirror_config(v),
                .piece = ww_search_stats_default(),
                .total = ww_search_stats_default()};
    uint64_t *admitted = NULL;
    int64_t count = 0;
    ww_status status = view_admit(v, asked->query, asked->only, &admitted);
    s.config.screen = WW_SCREEN_NONE; /* codes are for rows that are searched more than once */
    s.search.query = &s.query;
    s.search.only = NULL;
    s.query.mask = admitted;
    s.query.mask_rows = admitted ? v->record.next_place : 0;
    s.query.stats = &s.piece;
    s.query.progress = NULL;
    s.total.certificate = INFINITY;
    if (status == WW_OK)
        status = view_read(v, &(view_reading){0, v->record.live, search_piece, &s, asked->query}, &count);
    if (status == WW_OK)
        status = view_check_count(v, count);
    if (status == WW_OK && asked->query->stats)
        status = struct_write(asked->query->stats, &s.total, sizeof s.total, "search", "ww_search_stats");
    memory_free(admitted);
    if (status == WW_OK)
        *results = s.best;
    else
        ww_results_destroy(s.best);
    return status;
}
