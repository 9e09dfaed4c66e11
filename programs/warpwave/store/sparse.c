/* Sparse vectors on the command line: reading and printing them, and searches by them, alone or fused with others. */
#include "warpwave/store/sparse.h"

#include <stdlib.h>
#include <string.h>

#include "base/integers.h"
#include "warpwave/command.h"

ww_status sparse_parse(const char *text, json_sparse *read)
{
    const ww_status status = json_sparse_read_text(text, WW_SPARSE_MAX, read);
    return status == WW_INVALID_ARGUMENT ? command_line_wrong(ww_fail(status, "--sparse: %s", ww_error_message())) : status;
}

void sparse_put(json_writer *w, const ww_sparse_vector *v)
{
    json_open(w, "sparse", '{');
    json_open(w, "indices", '[');
    for (int64_t i = 0; i < v->count; i++)
        json_put_integer(w, NULL, v->indices[i]);
    json_close(w);
    json_open(w, "values", '[');
    for (int64_t i = 0; i < v->count; i++)
        json_put_real(w, NULL, (double)v->values[i]);
    json_close(w);
    json_close(w);
}

ww_status sparse_check_options(const store_settings *s, bool ranged)
{
    const char *other = s->text && strcmp(s->text, "-") == 0 ? "--text -"
                        : s->queries                         ? "--queries"
                        : s->rerank                          ? "--rerank"
                        : s->mmr                             ? "--mmr"
                        : s->group_by                        ? "--group-by"
                        : s->expand > 0                      ? "--expand"
                        : s->nprobe > 0                      ? "--nprobe"
                        : s->recall_text                     ? "--recall"
                        : ranged && (s->vector || s->text)   ? "--min-score, beside --vector or --text"
                                                             : NULL;
    if (s->modifier > 0 && !s->sparse)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--modifier goes with --sparse"));
    return !s->sparse || !other ? WW_OK
                                : command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--sparse does not go with %s", other));
}

bool sparse_is_fused(const store_settings *s)
{
    return s->sparse && (s->vector || s->text);
}

int sparse_parts(const store_settings *s, search_part parts[SEARCH_PARTS])
{
    int count = 0;
    if (s->vector || (s->text && s->mode != MODE_TEXT))
        parts[count++] = PART_VECTOR;
    if (s->text && s->mode != MODE_VECTOR)
        parts[count++] = PART_TEXT;
    parts[count++] = PART_SPARSE;
    return count;
}

ww_status read_weights(const store_settings *s, int count, double *weights, ww_fuse *fuse)
{
    const char *at = s->weights;
    *fuse = ww_fuse_default();
    fuse->fusion = (ww_fusion)s->fusion;
    if (!at)
        return WW_OK;
    fuse->weights = weights;
    for (int i = 0; at && i < count; i++) {
        char *end = NULL;
        weights[i] = strtod(at, &end);
        at = end != at && *end == (i + 1 < count ? ',' : '\0') ? end + 1 : NULL;
    }
    if (at)
        return WW_OK;
    return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--weights '%s': it must be %s numbers, as in %s", s->weights,
                                      count == 2 ? "two" : "three", count == 2 ? "0.7,0.3" : "0.5,0.3,0.2"));
}

ww_status sparse_search_alone(const store_call *call, const json_sparse *sparse, const ww_query *like, ww_results **results)
{
    const ww_sparse_vector vector = {sparse->count, sparse->indices, sparse->values};
    ww_sparse_query by = ww_sparse_query_default();
    ww_query query = *like;
    by.vectors = &vector;
    by.modifier = (ww_sparse_modifier)call->settings.modifier;
    query.sparse = &by;
    query.query_count = 1;
    return ww_collection_query(call->collection, &query, results);
}

ww_status sparse_search_fused(const store_call *call, const search_parts *how, const ww_query *like, ww_results **results)
{
    enum { CANDIDATES = 100 };
    const store_settings *s = &call->settings;
    search_part parts[SEARCH_PARTS];
    ww_results *lists[SEARCH_PARTS] = {NULL};
    double weights[SEARCH_PARTS];
    ww_query query = *like;
    ww_fuse fuse;
    const int count = sparse_parts(s, parts);
    ww_status status = read_weights(s, count, weights, &fuse);
    fuse.limit = query.k;
    query.k = max_i32(query.k, s->candidates > 0 ? (int32_t)s->candidates : CANDIDATES);
    for (int i = 0; status == WW_OK && i < count; i++)
        status = how->search(how->user, parts[i], &query, &lists[i]);
    if (status == WW_OK)
        status = ww_results_fuse((const ww_results *const *)lists, count, &fuse, results);
    for (int i = 0; i < count; i++)
        ww_results_destroy(lists[i]);
    return status;
}
