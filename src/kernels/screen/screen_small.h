/* Products of the codes of a few queries with those of rows. Shared by screen_small_batch_* and screen_lists_*.
 *
 * Four lanes share a row, each with 16 bytes of it at a time, and they share four such rows, eight apart, with the loads of all
 * four in flight. So 32 lanes read 512 contiguous bytes. Then their sums are folded so that each lane ends up with the complete
 * sum of one of the four rows.
 */
#ifndef WW_KERNELS_SCREEN_SCREEN_SMALL_H
#define WW_KERNELS_SCREEN_SCREEN_SMALL_H

#include "kernels/screen/screen_limits.h"

enum {
    SMALL_LANES = 4,                /* lanes that share rows */
    SMALL_ROWS = SMALL_LANES,       /* rows that they share, ... */
    SMALL_APART = 32 / SMALL_LANES, /* ... and their distance */
    SMALL_SUMS_MAX = SMALL_ROWS * 8 /* rows x queries */
};

/* Where this lane's share of the queries' codes is. */
typedef struct small_queries {
    const uint32_t *codes; /* of slot 0 */
    const uint32_t *slots; /* shared: the slots of the queries; NULL: the first ones */
    size_t words;          /* per slot: 16 per chunk */
} small_queries;

DEVICE small_queries small_queries_of(const kernel_rows *rows, const screen_queries *queries, const uint32_t *slots)
{
    small_queries from;
    from.codes = queries->codes + (lane() & 3u) * 4;
    from.slots = slots;
    from.words = (size_t)rows->chunks * 16;
    return from;
}

/* One lane's share of a chunk of each of the four rows. */
typedef struct small_piece {
    u32x4 row[SMALL_ROWS];
} small_piece;

/* The first of the four rows that this lane shares, and the one it ends up with, counted in the wave. */
DEVICE uint32_t small_first(void)
{
    return (lane() & ~31u) + (lane() & 31u) / SMALL_LANES;
}

DEVICE uint32_t small_own(void)
{
    return small_first() + (lane() & 3u) * SMALL_APART;
}

/* `codes` is the first chunk of the word, `first` the first of the four rows in it. */
DEVICE small_piece small_load(const uint32_t *codes, uint32_t first, int32_t chunk)
{
    small_piece piece;
    UNROLL
    for (uint32_t r = 0; r < SMALL_ROWS; r++)
        piece.row[r] =
            load_u32x4_streaming(codes + (size_t)chunk * SCREEN_SLAB + screen_piece(first + r * SMALL_APART, lane() & 3u));
    return piece;
}

/* Adds a chunk of the four rows times the same chunk of each query: those in `slots`, or the first ones. */
DEVICE void small_multiply(const int32_t queries, const small_queries *from, int32_t chunk, const small_piece *piece,
                           int32_t *sums)
{
    UNROLL
    for (int32_t q = 0; q < queries; q++) {
        const u32x4 query =
            load_u32x4_readonly(from->codes + (from->slots ? AT(from->slots, q) : (uint32_t)q) * from->words + chunk * 16);
        UNROLL
        for (int32_t r = 0; r < SMALL_ROWS; r++)
            sums[q * SMALL_ROWS + r] = dot16_i8(query, piece->row[r], sums[q * SMALL_ROWS + r]);
    }
}

/* Folds the four lanes' shares of the sums of four rows into the sum of one row per lane. */
DEVICE int32_t small_fold(const int32_t *sums)
{
    const uint32_t first = (lane() & 1) ? 0xffffffffu : 0, second = (lane() & 2) ? 0xffffffffu : 0;
    const uint32_t s0 = (uint32_t)sums[0], s1 = (uint32_t)sums[1], s2 = (uint32_t)sums[2], s3 = (uint32_t)sums[3];
    const uint32_t low = ((s0 & ~first) | (s1 & first)) + wave_shuffle_xor_u32((s1 & ~first) | (s0 & first), 1);
    const uint32_t high = ((s2 & ~first) | (s3 & first)) + wave_shuffle_xor_u32((s3 & ~first) | (s2 & first), 1);
    return (int32_t)(((low & ~second) | (high & second)) + wave_shuffle_xor_u32((high & ~second) | (low & second), 2));
}

/* The products of all queries with the lane's row; the wave's rows start at row `first` of the word at `codes`. */
DEVICE void small_products(const int32_t queries, const small_queries *from, const uint32_t *codes, uint32_t first,
                           int32_t *products)
{
    const int32_t chunks = (int32_t)(from->words / 16);
    const uint32_t mine = first + small_first();
    int32_t sums[SMALL_SUMS_MAX];
    UNROLL
    for (int32_t i = 0; i < queries * SMALL_ROWS; i++)
        sums[i] = 0;
    int32_t chunk = 0;
#if !defined(SIMT_DOT4_IS_LONG) /* where it is, there are not enough registers for two at a time */
    UNROLL_BY(1)
    for (; !from->slots && chunk + 2 <= chunks; chunk += 2) { /* slots also take registers */
        const small_piece even = small_load(codes, mine, chunk), odd = small_load(codes, mine, chunk + 1);
        small_multiply(queries, from, chunk, &even, sums);
        small_multiply(queries, from, chunk + 1, &odd, sums);
    }
#endif
    UNROLL_BY(1)
    for (; chunk < chunks; chunk++) {
        const small_piece last = small_load(codes, mine, chunk);
        small_multiply(queries, from, chunk, &last, sums);
    }
    UNROLL
    for (int32_t q = 0; q < queries; q++)
        products[q] = small_fold(sums + q * SMALL_ROWS);
}

#endif
