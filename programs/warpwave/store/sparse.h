/* Sparse vectors on the command line, {"indices": [3, 7], "values": [0.5, 1]}. */
#ifndef CLI_STORE_SPARSE_H
#define CLI_STORE_SPARSE_H

#include <warpwave/sparse.h>

#include "base/json/json_sparse.h"
#include "warpwave/store/store.h"

/* Reads --sparse. The caller frees it with json_sparse_free(). */
ww_status sparse_parse(const char *text, json_sparse *read);

/* Writes a member "sparse". */
void sparse_put(json_writer *w, const ww_sparse_vector *vector);

/* Refuses options that do not go with --sparse, and --modifier without it. */
ww_status sparse_check_options(const store_settings *s, bool ranged);

/* What a search with --sparse finds rows by, in the order of --weights. Returns how many there are. */
typedef enum search_part { PART_VECTOR, PART_TEXT, PART_SPARSE, SEARCH_PARTS } search_part;
int sparse_parts(const store_settings *s, search_part parts[SEARCH_PARTS]);

/* Is there --vector or --text beside --sparse? */
bool sparse_is_fused(const store_settings *s);

/* Reads --fusion and --weights, one for each of `count` lists. */
ww_status read_weights(const store_settings *s, int count, double *weights, ww_fuse *fuse);

/* Searches by the sparse vector; all else is as in `like`. */
ww_status sparse_search_alone(const store_call *call, const json_sparse *sparse, const ww_query *like, ww_results **results);

/* Searches each part with a function, and makes one list of theirs. */
typedef struct search_parts {
    ww_status (*search)(void *user, search_part part, ww_query *query, ww_results **results);
    void *user;
} search_parts;
ww_status sparse_search_fused(const store_call *call, const search_parts *how, const ww_query *like, ww_results **results);

#endif
