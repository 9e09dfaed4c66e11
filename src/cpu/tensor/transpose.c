/* Transposing copies: neighbours in the source are far apart in the result, and the other way round.
 *
 * Element by element, every read or every write would touch another cache line and page. Square tiles use whole cache lines for
 * both: a tile is read row by row, transposed in the first-level cache, and written row by row.
 */
#include "base/integers.h"
#include "cpu/tensor/tensor.h"

#include <string.h>

enum {
    TILE = 64,         /* elements per side: 64 pages at a time, at most 32 KiB */
    TRANSPOSE_MIN = 8, /* minimum along either dimension */
    TILES_AT_ONCE = 8, /* tiles that a thread takes at a time */
};

typedef struct transposition {
    const elementwise_job *job;
    int32_t across; /* the dimension that is dense in the source; in the result, the last one is */
    int64_t tiles_across, tiles_along;
} transposition;

/* Squares of elements in registers of 16 bytes, transposed by interleaving: after log2(side) steps, vector i has the former
 * element i of each vector. */
typedef uint16_t eight __attribute__((vector_size(16)));
typedef uint32_t quad __attribute__((vector_size(16)));
enum { SIDE_16 = 8, SIDE_32 = 4 };

static inline void transpose_square_16(uint16_t *to, const uint16_t *from, int64_t from_stride)
{
    eight a[SIDE_16], b[SIDE_16];
    for (int32_t i = 0; i < SIDE_16; i++)
        memcpy(&a[i], from + i * from_stride, sizeof a[i]);
    for (int32_t step = 0; step < 3; step++) {
        for (int32_t i = 0; i < SIDE_16 / 2; i++) {
            b[2 * i] = __builtin_shufflevector(a[i], a[i + SIDE_16 / 2], 0, 8, 1, 9, 2, 10, 3, 11);
            b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + SIDE_16 / 2], 4, 12, 5, 13, 6, 14, 7, 15);
        }
        memcpy(a, b, sizeof a);
    }
    for (int32_t i = 0; i < SIDE_16; i++)
        memcpy(to + (int64_t)i * TILE, &a[i], sizeof a[i]);
}

static inline void transpose_square_32(uint32_t *to, const uint32_t *from, int64_t from_stride)
{
    quad a[SIDE_32], b[SIDE_32];
    for (int32_t i = 0; i < SIDE_32; i++)
        memcpy(&a[i], from + i * from_stride, sizeof a[i]);
    for (int32_t step = 0; step < 2; step++) {
        for (int32_t i = 0; i < SIDE_32 / 2; i++) {
            b[2 * i] = __builtin_shufflevector(a[i], a[i + SIDE_32 / 2], 0, 4, 1, 5);
            b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + SIDE_32 / 2], 2, 6, 3, 7);
        }
        memcpy(a, b, sizeof a);
    }
    for (int32_t i = 0; i < SIDE_32; i++)
        memcpy(to + (int64_t)i * TILE, &a[i], sizeof a[i]);
}

/* A single element is a square of side 1. */
enum { SIDE_8 = 1, SIDE_64 = 1 };
#define transpose_square_8(to, from, from_stride)  (*(to) = *(from))
#define transpose_square_64(to, from, from_stride) (*(to) = *(from))

/* One tile of a copy: `columns` rows of the source, each `rows` long. */
typedef struct tile_copy {
    void *to;
    const void *from, *next; /* the source of this tile, and of the next, which is prefetched */
    int64_t to_stride, from_stride;
    int64_t rows, columns;
} tile_copy;

/* NOLINTBEGIN(bugprone-macro-parentheses): a type cannot be in parentheses */
#define TRANSPOSE_TILE(bits)                                                                                                   \
    static void transpose_tile_##bits(const tile_copy *copy)                                                                   \
    {                                                                                                                          \
        uint##bits##_t *to = copy->to;                                                                                         \
        const uint##bits##_t *from = copy->from, *next = copy->next;                                                           \
        const int64_t to_stride = copy->to_stride, from_stride = copy->from_stride;                                            \
        const int64_t rows = copy->rows, columns = copy->columns;                                                              \
        uint##bits##_t tile[TILE][TILE] __attribute__((aligned(64)));                                                          \
        const int64_t whole_rows = rows - rows % SIDE_##bits, whole_columns = columns - columns % SIDE_##bits;                 \
        for (int64_t j = 0; j < whole_columns; j += SIDE_##bits) {                                                             \
            for (int32_t line = 0; line < SIDE_##bits * TILE * (bits) / 512; line++)                                           \
                __builtin_prefetch((const char *)(next + (j + line % SIDE_##bits) * from_stride) +                             \
                                   (int64_t)64 * (line / SIDE_##bits));                                                        \
            for (int64_t i = 0; i < whole_rows; i += SIDE_##bits)                                                              \
                transpose_square_##bits(&tile[i][j], from + j * from_stride + i, from_stride);                                 \
        }                                                                                                                      \
        for (int64_t i = 0; i < rows; i++)                                                                                     \
            for (int64_t j = i < whole_rows ? whole_columns : 0; j < columns; j++)                                             \
                tile[i][j] = from[j * from_stride + i];                                                                        \
        for (int64_t i = 0; i < rows; i++)                                                                                     \
            memcpy(to + i * to_stride, tile[i], (size_t)columns * sizeof(uint##bits##_t));                                     \
    }
TRANSPOSE_TILE(8)
TRANSPOSE_TILE(16)
TRANSPOSE_TILE(32)
TRANSPOSE_TILE(64)
/* NOLINTEND(bugprone-macro-parentheses) */

/* Copies one tile: where its first element is in both, and how large it is. */
static void transpose_tile(const transposition *t, int64_t item)
{
    const elementwise_job *job = t->job;
    const int32_t last = job->rank - 1;
    const int32_t size = type_size(job->out.type);
    const int64_t along = item % t->tiles_along * TILE;
    const int64_t across = item / t->tiles_along % t->tiles_across * TILE;
    int64_t rest = item / t->tiles_along / t->tiles_across;
    int64_t from = across + along * job->in[0].strides[last], to = across * job->out.strides[t->across] + along;
    for (int32_t d = last - 1; d >= 0; d--) {
        if (d == t->across)
            continue;
        from += rest % job->shape[d] * job->in[0].strides[d];
        to += rest % job->shape[d] * job->out.strides[d];
        rest /= job->shape[d];
    }
    const int64_t from_stride = job->in[0].strides[last];
    const char *x = (const char *)job->in[0].data + from * size;
    const bool more = along + 2 * TILE <= job->shape[last]; /* the next tile is a whole one */
    const tile_copy copy = {.to = (char *)job->out.data + to * size,
                            .from = x,
                            .next = x + (more ? TILE * from_stride * size : 0),
                            .to_stride = job->out.strides[t->across],
                            .from_stride = from_stride,
                            .rows = min_i64(job->shape[t->across] - across, TILE),
                            .columns = min_i64(job->shape[last] - along, TILE)};
    if (size == 1)
        transpose_tile_8(&copy);
    else if (size == 2)
        transpose_tile_16(&copy);
    else if (size == 4)
        transpose_tile_32(&copy);
    else
        transpose_tile_64(&copy);
}

static void transpose_range(void *context, int64_t begin, int64_t end)
{
    for (int64_t item = begin; item < end; item++)
        transpose_tile(context, item);
}

bool cpu_transpose(ww_device *device, const elementwise_job *job)
{
    const int32_t last = job->rank - 1;
    transposition t = {.job = job, .across = -1};
    if (job->rank < 2 || job->out.strides[last] != 1 || job->in[0].strides[last] == 1 || job->shape[last] < TRANSPOSE_MIN)
        return false;
    for (int32_t d = 0; d < last; d++)
        if (job->in[0].strides[d] == 1 && job->shape[d] >= TRANSPOSE_MIN)
            t.across = d;
    if (t.across < 0)
        return false;
    t.tiles_across = divide_up_i64(job->shape[t.across], TILE);
    t.tiles_along = divide_up_i64(job->shape[last], TILE);
    const int64_t tiles = job->count / job->shape[t.across] / job->shape[last] * t.tiles_across * t.tiles_along;
    cpu_run_ranges(device, tiles, TILES_AT_ONCE, transpose_range, &t);
    return true;
}
