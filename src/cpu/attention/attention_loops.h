/* The loops of attention that each instruction set compiles for itself (attention_template.h): they apply a chunk of keys and
 * values, f32 or f16, to a few rows. A row is a query of a token and a head; the rows of one call share their keys. */
#ifndef WW_CPU_ATTENTION_ATTENTION_LOOPS_H
#define WW_CPU_ATTENTION_ATTENTION_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

#include "arithmetic/attention.h"

/* Rows and a chunk. p and the outputs are in scratch memory of the thread, or in the result. */
typedef struct attention_tile {
    int32_t rows, head_size;
    bool half;                   /* keys and values are f16, else f32 */
    float scale, cap;            /* for scores; a cap of 0 means none */
    const float *const *q;       /* of each row */
    const attention_range *seen; /* for each row, in this chunk; never empty */
    const float *slopes;         /* of each row; NULL: none */
    const int32_t *positions;    /* of each row, counted from the first key of the chunk; used with slopes */
    const void *keys;            /* as stored in a page */
    const void *values;          /* row by row */
    float *p;                    /* rows x ATTENTION_CHUNK */
    float *const *out;           /* of each row: o_c */
    float *largest, *sums;       /* of each row: m_c and l_c */
} attention_tile;

/* The chunks of one query, `apart` floats from one to the next; each starts with m_c and l_c, and o_c follows after
 * ATTENTION_PART_SUMS floats. */
enum { ATTENTION_PART_SUMS = 8 };

typedef struct attention_parts {
    const float *first;
    int64_t apart;
    int32_t count, head_size; /* count at least 1 */
    float *out;
    const float *sink; /* of the head; NULL: none */
} attention_parts;

/* One head of one token before it goes to the cache: rotated here, rounded later. */
typedef struct attention_turn {
    const float *from;
    float *to; /* may be `from` */
    int32_t head_size, rope, half;
    const float *cosines, *sines; /* for the position */
} attention_turn;

typedef struct attention_loops {
    /* Computes p, m_c and l_c of all rows. */
    void (*scores)(const attention_tile *tile);
    /* Computes o_c of all rows. */
    void (*values)(const attention_tile *tile);
    void (*merge)(const attention_parts *parts);
    void (*rope)(const attention_turn *turn);
    /* Converts elements of a cache of f16 or q8_0 to floats, in their order; q8_0 without its scales. `count` is a multiple of
     * 8. */
    void (*widen)(int32_t type, float *to, const void *from, int64_t count);
    void (*narrow_f16)(uint16_t *to, const float *from, int64_t count);
} attention_loops;

#endif
