/* Searching by words, alone or together with vectors. FTS5 searches the words and the mirror the vectors, both in the view's
 * transaction; the hits are fused into one list. */
#include <math.h>

#include <warpwave/ranking.h>

#include "base/integers.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/structs.h"
#include "store/texts/texts.h"
#include "store/view/view_state.h"
#include "vectors/query/results.h"

enum { CANDIDATES_DEFAULT = 100 };

typedef struct matching {
    view *v;
    const ww_query *query;
    text_tables tables;
    uint64_t *admitted; /* bits of places, by the query's mask and the list; NULL: all */
    int64_t limit;      /* of each part */
} matching;

/* In a collection without texts words find nothing. If it has rows, and is not a part of one that has texts, the search fails
 * with that reason. */
static ww_status texts_ready(const matching *m, bool *exist)
{
    const ww_word_counts *counts = m->query->match->counts;
    const ww_status status = texts_exist(&m->tables, exist);
    if (status != WW_OK || *exist || m->v->record.live == 0 || (counts && counts->texts > 0))
        return status;
    return ww_fail(WW_INVALID_ARGUMENT, "collection '%s' has no texts, so words find nothing; add rows with texts", m->v->name);
}

/* The rows that the words of each query find. */
static ww_status find_words(const matching *m, ww_results **results)
{
    const int64_t queries = m->query->query_count;
    const int64_t room = min_i64(m->limit, m->v->record.live);
    ww_results *made = NULL;
    bool exist = false;
    ww_status status = texts_ready(m, &exist);
    if (status == WW_OK)
        status = results_create(queries, queries * room, &made);
    for (int64_t q = 0; status == WW_OK && q < queries; q++) {
        const int64_t at = made->starts[q];
        const ww_match *match = m->query->match;
        const text_search search = {match->texts[q], match->counts ? &match->counts[q] : NULL, m->admitted,
                                    m->v->record.next_place, room};
        text_hits hits = {made->handles + at, made->rows + at, made->scores + at, 0};
        if (exist)
            status = texts_search(&m->tables, &search, &hits);
        made->starts[q + 1] = at + hits.count;
    }
    if (status == WW_OK)
        *results = made;
    else
        ww_results_destroy(made);
    return status;
}

/* For words only: the ranks are those of the one list. */
static ww_status mark_parts(ww_results *results)
{
    const ww_status status = results_parts(results);
    for (int64_t q = 0; status == WW_OK && q < results->query_count; q++)
        for (int64_t i = results->starts[q]; i < results->starts[q + 1]; i++)
            results->parts[i] = (ww_hit_parts){.ranks = {0, i - results->starts[q] + 1}, .scores = {NAN, results->scores[i]}};
    return status;
}

/* Searches both and fuses the hits. */
static ww_status find_both(const matching *m, const view_places *only, ww_results **results)
{
    ww_results *lists[2] = {NULL, NULL}; /* by vectors, by words */
    ww_query nearest = *m->query;
    ww_fuse fuse = ww_fuse_default();
    nearest.match = NULL;
    nearest.fetch = 0;
    nearest.k = (int32_t)m->limit;
    ww_status status = m->query->match->fuse
                           ? struct_read(&fuse, sizeof fuse, m->query->match->fuse, "ww_collection_query", "ww_fuse")
                           : WW_OK;
    fuse.struct_size = sizeof fuse; /* the copy is of our version */
    fuse.limit = m->query->k;
    fuse.cancel = m->query->cancel;
    fuse.by_id = false; /* both lists are of this collection */
    if (status == WW_OK)
        status = view_query(m->v, &nearest, only, &lists[0]);
    if (status == WW_OK)
        status = find_words(m, &lists[1]);
    if (status == WW_OK)
        status = ww_results_fuse((const ww_results *const *)lists, 2, &fuse, results);
    ww_results_destroy(lists[0]);
    ww_results_destroy(lists[1]);
    return status;
}

ww_status view_match(view *v, const ww_query *query, const view_places *only, ww_results **results)
{
    const ww_match *match = query->match;
    const bool words_only = match->mode == WW_MATCH_TEXT;
    matching m = {.v = v, .query = query, .tables = {v->db, v->schema, v->record.name}, .limit = query->k};
    ww_results *made = NULL;
    if (!words_only && query->k > 0)
        m.limit = max_i64(match->candidates > 0 ? match->candidates : CANDIDATES_DEFAULT, query->k);
    ww_status status = view_admit(v, query, only, &m.admitted);
    if (status == WW_OK)
        status = words_only || query->k == 0 ? find_words(&m, &made) : find_both(&m, only, &made);
    if (status == WW_OK && !made->parts)
        status = mark_parts(made);
    memory_free(m.admitted);
    return view_finish(v, status, query->fetch, made, results);
}

ww_status view_count_words(view *v, const char *text, ww_word_counts *counts)
{
    const text_tables tables = {v->db, v->schema, v->record.name};
    bool exist = false;
    const ww_status status = texts_exist(&tables, &exist);
    return status == WW_OK ? texts_count(exist ? &tables : NULL, text, counts) : status;
}
