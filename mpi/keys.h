/* Keys over ranks: score, rank and row of the rank in 128 bits, and the one operation by which lists of them merge.
 *
 * Smaller is better. No two rows have the same key, so the k smallest of a set are the same list, regardless of the order and
 * grouping in which parts of the set are merged. The operation is associative and commutative to the bit, so MPI may reduce in
 * any order.
 */
#ifndef WW_MPI_KEYS_H
#define WW_MPI_KEYS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <warpwave/vectors.h>

typedef struct rank_key {
    uint64_t order; /* the score in the upper half, the rank in the lower one */
    uint64_t row;   /* of that rank */
} rank_key;

/* Larger than every key of a row, because no rank has the number 2^32 - 1. */
#define RANK_KEY_NONE ((rank_key){UINT64_MAX, UINT64_MAX})

/* The bits of a score, changed so that better scores are smaller numbers. Scores are never -0 (vectors.h), so equal scores
 * have equal bits. */
static inline rank_key rank_key_make(ww_metric metric, float score, int32_t rank, int64_t row)
{
    uint32_t bits;
    memcpy(&bits, &score, sizeof bits);
    const uint32_t ascending = bits ^ (bits >> 31 ? UINT32_MAX : UINT32_C(1) << 31);
    return (rank_key){(uint64_t)(metric == WW_L2 ? ascending : ~ascending) << 32 | (uint32_t)rank, (uint64_t)row};
}

static inline int32_t rank_key_rank(rank_key key)
{
    return (int32_t)(uint32_t)key.order;
}

static inline float rank_key_score(ww_metric metric, rank_key key)
{
    const uint32_t order = (uint32_t)(key.order >> 32), ascending = metric == WW_L2 ? order : ~order;
    const uint32_t bits = ascending ^ (ascending >> 31 ? UINT32_C(1) << 31 : UINT32_MAX);
    float score;
    memcpy(&score, &bits, sizeof score);
    return score;
}

static inline bool rank_key_is_none(rank_key key)
{
    return key.row == UINT64_MAX;
}

static inline bool rank_key_before(rank_key a, rank_key b)
{
    return ((unsigned __int128)a.order << 64 | a.row) < ((unsigned __int128)b.order << 64 | b.row);
}

/* Leaves the k smallest keys of two sorted lists of k in `kept`; k is at most WW_K_MAX. */
void rank_keys_merge(const rank_key *other, rank_key *kept, int64_t k);

/* The same as an MPI_User_function: an element is a whole list, and the size of its type gives k. */
void rank_keys_reduce(void *other, void *kept, int *count, MPI_Datatype *list);

#endif
