/* Matrix products on the CPU: packed panels, and the small tiles that instruction sets compute from them.
 *
 * A panel of a has the rows of a tile, step by step of k; a panel of b has its columns. Panels are at most MATMUL_CHUNK steps
 * deep, which is the canonical chunk: a tile is the sum of one chunk, kept in registers and then added to c. So the canonical
 * order costs nothing. i8 is packed as i16, in pairs of steps, for instructions that multiply and add pairs.
 */
#ifndef WW_CPU_MATMUL_MATMUL_H
#define WW_CPU_MATMUL_MATMUL_H

#include "arithmetic/types.h"
#include "device/matmul_job.h"
#include <warpwave/device.h>

/* Which chunk of k a tile belongs to: the first starts from +0 instead of c, the last turns every NaN into the one NaN. */
enum { MATMUL_FIRST = 1, MATMUL_LAST = 2 };

typedef struct matmul_shape {
    int32_t rows, columns; /* of a tile */
} matmul_shape;

enum { MATMUL_ROWS_MAX = 32, MATMUL_COLUMNS_MAX = 64 };

/* How panels are packed: by the type of elements, or like this for units that multiply bf16: pieces of 32 steps, each of two
 * matrices with 16 rows of 64 bytes. For a, such a row has 32 steps of one row; for b, it has two steps of each of 16 columns,
 * as pairs. */
enum { MATMUL_BF16_PAIRS = TYPE_COUNT, MATMUL_FAST_SIDE = 32, MATMUL_FAST_DEPTH = 32 };

typedef struct matmul_tiles {
    matmul_shape shape_f32, shape_f64, shape_i8;

    /* Computes c of shape rows x columns, with rows `stride` elements apart, from panels of `k` steps; for i8, of pairs of
     * steps. */
    void (*f32)(const float *a, const float *b, int64_t k, float *c, int64_t stride, int32_t which);
    void (*f64)(const double *a, const double *b, int64_t k, double *c, int64_t stride, int32_t which);
    void (*i8)(const int16_t *a, const int16_t *b, int64_t k, int32_t *c, int64_t stride, int32_t which);

    /* Fast products of bf16, which may add in any order; fast_present is NULL if the set has none. Tiles are rows x
     * columns as MATMUL_FAST_SIDE says, from panels of MATMUL_BF16_PAIRS; depth is a multiple of MATMUL_FAST_DEPTH. A thread
     * calls begin before its first and end after its last. */
    bool (*fast_present)(void);
    void (*fast_begin)(void);
    void (*fast_end)(void);
    void (*fast_bf16)(const uint16_t *a, const uint16_t *b, int64_t k, float *c, int64_t stride, int32_t which);

    /* 16-bit floats to f32 and back (cpu/isa/convert_half.h). */
    void (*widen_f16)(float *to, const uint16_t *from, int64_t count);
    void (*widen_bf16)(float *to, const uint16_t *from, int64_t count);
    void (*narrow_f16)(uint16_t *to, const float *from, int64_t count);
    void (*narrow_bf16)(uint16_t *to, const float *from, int64_t count);
} matmul_tiles;

/* A piece of a or b to pack: `count` rows (columns for b) by `depth` steps of k, with the distance between each. */
typedef struct matmul_source {
    const void *data;
    int64_t stride, k_stride;
    int64_t count, depth;
} matmul_source;

/* Packs it into panels that are `width` wide, padded with +0. `type` is the source's type; f16 and bf16 become f32, i8 becomes
 * pairs of i16. */
void matmul_pack(const matmul_tiles *tiles, int32_t type, const matmul_source *source, int32_t width, void *panels);

/* Packs bf16 as MATMUL_BF16_PAIRS, MATMUL_FAST_SIDE wide. */
void matmul_pack_a_pairs(const matmul_source *source, uint16_t *panels);
void matmul_pack_b_pairs(const matmul_source *source, uint16_t *panels);

/* A piece of b seen through a window: columns first_n.. and steps first_k.. of images. */
typedef struct matmul_window_source {
    const matmul_window *window;
    int32_t type;
    const char *data;
    int64_t first_n, count;
    int64_t first_k, depth;
} matmul_window_source;

/* Packs it as matmul_pack() does. `row` is scratch for `count` elements. */
void matmul_pack_window(const matmul_window_source *source, int32_t width, void *row, void *panels);

/* Computes the product with the threads of a device and the tiles of any set that the machine has. Fails only if there is not
 * enough memory. Blocking. */
ww_status matmul_run(ww_device *device, const matmul_tiles *tiles, const matmul_job *job);

/* Returns the steps that a panel for `depth` steps has room for. */
int64_t matmul_packed_depth(int32_t packing, int64_t depth);

/* Bytes of an element in a and b, in a panel, and in c. */
int32_t matmul_source_bytes(int32_t type);
int32_t matmul_packed_bytes(int32_t packing);
int32_t matmul_result_bytes(int32_t type);

#endif
