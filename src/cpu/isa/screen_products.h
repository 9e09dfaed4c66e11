/* Integer products of codes: the part of the screen (arithmetic/screen.h) that hardware has instructions for.
 *
 * Each way to compute them is a table. Products are exact, so all ways agree. A group is sixteen queries, whose codes are
 * packed once in the order that the instructions need. Rows are multiplied 16, 32 or 64 at a time, as stored in memory.
 */
#ifndef WW_CPU_ISA_SCREEN_PRODUCTS_H
#define WW_CPU_ISA_SCREEN_PRODUCTS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    GROUP = 16,        /* queries */
    GROUPS_MAX = 4,    /* groups that one call of `groups` takes, and whose products it keeps at a time */
    GROUP_BIAS = 64,   /* bytes after a packed group: a 32-bit number for each query */
    UNIT_ROWS = 64,    /* rows, at most; also the distance from one group's products to the next, in rows */
    SCREEN_STRIP = 16, /* rows that the first test handles together */
    SCREEN_STRIPS = UNIT_ROWS / SCREEN_STRIP,
    SCREEN_FOUR = 4,      /* rows of a strip whose products are compared before one multiplication by a scale */
    PREFETCH_BYTES = 4096 /* how far ahead the codes for a single query are prefetched */
};

struct strip_bounds;  /* isa.h */
struct screen_limits; /* isa.h */

/* Receives the products of a group and its candidates (isa.h: filter_strips), which are valid until it returns. */
typedef void (*screen_ready)(void *context, int32_t group, const int32_t *products, const uint16_t candidates[SCREEN_STRIPS]);

/* Groups of queries and rows, for products with the first test. */
typedef struct filtered_groups {
    const int8_t *packed; /* groups */
    int32_t group_count;
    const int8_t *prepared; /* rows */
    int32_t row_count, padded;
    int32_t *out; /* room for the products of GROUPS_MAX groups */
    const struct strip_bounds *bounds;
    const struct screen_limits *limits; /* of each group */
    screen_ready ready;                 /* called for one group after the other */
    void *context;
} filtered_groups;

typedef struct screen_products {
    const char *name;
    bool (*present)(void);
    int32_t code_bytes; /* bytes per code in packed groups and prepared rows */

    /* Called before a thread's first call of the functions below, and after its last; NULL if not needed. */
    void (*begin)(void);
    void (*end)(void);

    /* out[r] = sum(query[i] * rows[r * padded + i]). */
    void (*one)(const int8_t *query, const int8_t *rows, int32_t row_count, int32_t padded, int32_t *out);

    /* out[r] = sum(query[i] * 16 h of row r) for the high planes of rows (arithmetic/screen.h), padded / 2 bytes each. */
    void (*one_high)(const int8_t *query, const uint8_t *highs, int32_t row_count, int32_t padded, int32_t *out);

    /* Packs the codes of GROUP queries, one after the other, into GROUP * padded * code_bytes + GROUP_BIAS bytes. */
    void (*pack)(const int8_t *codes, int32_t padded, int8_t *packed);

    /* Puts rows into the order that `groups` needs, row_count * padded * code_bytes. NULL: they are used as stored. */
    void (*prepare)(const int8_t *rows, int32_t row_count, int32_t padded, int8_t *prepared);

    /* out[(g * UNIT_ROWS + r) * GROUP + q] for 1..GROUPS_MAX packed groups and prepared rows, a multiple of 16. */
    void (*groups)(const int8_t *packed, int32_t group_count, const int8_t *prepared, int32_t row_count, int32_t padded,
                   int32_t *out);

    /* The same for any number of groups; also tests finished products meanwhile (isa.h: filter_strips). NULL if doing both at
     * once is not faster. */
    void (*groups_filtered)(const filtered_groups *job);
} screen_products;

static inline int64_t packed_group_bytes(const screen_products *products, int32_t padded)
{
    return (int64_t)GROUP * padded * products->code_bytes + GROUP_BIAS;
}

#endif
