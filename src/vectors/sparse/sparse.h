/* Sparse vectors: checking and ordering them, their score, and the exact search of an inverted index.
 *
 * The score is a chain of fused multiply-adds from +0 over the common indices in ascending order, plus +0 so that it is never
 * -0. A search therefore visits the terms of a query in ascending order and adds each to the sums of the rows that have it. The
 * entries of a term lie in blocks, which have the least and the greatest value in them. A search goes through the rows in
 * windows: a window whose bound cannot reach the k-th best score so far is skipped, and its blocks need not be read.
 *
 * The index may be in memory (index.c) or in a file (store/sparse): the search reads blocks through a function.
 */
#ifndef WW_VECTORS_SPARSE_H
#define WW_VECTORS_SPARSE_H

#include <stdbool.h>
#include <stdint.h>

#include <warpwave/sparse.h>

#include "base/status.h"
#include "base/tables/key_list.h"

enum {
    SPARSE_BLOCK = 512,  /* entries of a block */
    SPARSE_WINDOW = 2048 /* rows of a window: their sums stay in the first cache */
};

/* ---- vectors ------------------------------------------------------------------------------------------------------------- */

/* A sparse vector whose indices ascend: the caller's own if they do, otherwise a copy. */
typedef struct sparse_sorted {
    ww_sparse_vector vector;
    void *held; /* memory_free(); NULL: the caller's own */
} sparse_sorted;

/* Checks a vector and orders it. `what` and `number` name it in messages: "row", 3. After a failure nothing is held. */
ww_status sparse_sort(const char *what, int64_t number, const ww_sparse_vector *from, sparse_sorted *to);
void sparse_sorted_free(sparse_sorted *sorted);

/* A query's sparse vectors, checked and in order. All zero: nothing to free. */
typedef struct sparse_asked {
    ww_sparse_query query; /* its vectors ascend */
    ww_sparse_vector *vectors;
    sparse_sorted *sorted;
    int64_t count;
} sparse_asked;

/* Reads and checks what query->sparse says. The caller frees `asked`, also after a failure. */
ww_status sparse_asked_read(const char *function, const ww_query *query, sparse_asked *asked);
void sparse_asked_free(sparse_asked *asked);

/* The score of two vectors whose indices ascend; the result says how many indices they have in common. */
int64_t sparse_score(const ww_sparse_vector *a, const ww_sparse_vector *b, float *score);

/* A query's value times the inverse document frequency of an index that `with` of `rows` rows have. */
float sparse_idf(float value, int64_t rows, int64_t with);

/* Are the weights of query `number`, after the modifier, still such that no score can overflow to NaN? */
ww_status sparse_check_weights(int64_t number, const float *weights, int64_t count);

/* ---- the search ---------------------------------------------------------------------------------------------------------- */

/* Up to SPARSE_BLOCK entries of a term, by row. */
typedef struct sparse_block {
    uint32_t first, last; /* rows */
    int32_t count;
    float low, high; /* values */
} sparse_block;

typedef struct sparse_entries {
    const uint32_t *rows; /* ascending */
    const float *values;
} sparse_entries;

/* A term of the query. Terms are in ascending order of their indices. */
typedef struct sparse_term {
    float weight;
    const sparse_block *blocks; /* in order of rows */
    int64_t block_count;
} sparse_term;

typedef struct sparse_search {
    const sparse_term *terms;
    int64_t term_count;
    /* Reads a block. The entries stay valid until the next block of the same term is read; with `single`, of any term. */
    ww_status (*load)(void *user, int64_t term, int64_t block, sparse_entries *entries);
    void *user;
    bool single;
    const uint64_t *admitted; /* bit r%64 of word r/64 admits row r; NULL admits all */
    int64_t admitted_rows;
    bool range; /* only scores of at least `bound` count */
    float bound;
    int64_t limit; /* hits to keep */
    int64_t blocks_read, rows_scored;
} sparse_search;

/* Is the row a hit with this score? If so, adds it to the list, which the caller frees. */
ww_status sparse_offer(sparse_search *s, key_list *list, uint32_t row, float score);

/* Adds all rows of the index that may be among the hits to the list. */
ww_status sparse_search_run(sparse_search *s, key_list *list);

/* The hits that a query may have at most. */
int64_t sparse_limit(const ww_query *query);

/* Makes results of the lists, one for each query, whose keys it sorts. Handles are the rows. */
ww_status sparse_results(const ww_query *query, key_list *lists, ww_results **results);
ww_status sparse_lists_create(int64_t count, key_list **lists);

/* Writes the statistics of the search, if the query asks for them. */
void sparse_tell_stats(const ww_query *query, int64_t rows_scored);
void sparse_lists_free(key_list *lists, int64_t count); /* accepts NULL */

#endif
