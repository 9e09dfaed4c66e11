/* Copies that turn: what lies side by side in the source is far apart in the result, and the other way round.
 *
 * Element by element either the reads or the writes would touch a line of the cache, and a page, for each one. In square tiles
 * both are used whole: a tile is read in runs, put down turned in the first cache, and written in runs.
 */
#include "cpu/tensor.h"

#include <string.h>

enum {
    TILE = 64,         /* elements a side: 64 pages at a time, at most 32 KiB */
    TURN_LEAST = 8,    /* elements along either dimension: fewer are no tile */
    TILES_AT_ONCE = 8, /* what a thread takes */
};

typedef struct turn {
    const elementwise_job *job;
    int32_t across; /* the dimension that is dense in the source; the last one is in the result */
    int64_t tiles_across, tiles_along;
} turn;

/* NOLINTBEGIN(bugprone-macro-parentheses): a type cannot stand in parentheses */
#define TURN_TILE(bits)                                                                                                        \
    static void turn_tile_##bits(uint##bits##_t *to, int64_t to_stride, const uint##bits##_t *from, int64_t from_stride,       \
                                 int64_t rows, int64_t columns, const uint##bits##_t *next)                                    \
    {                                                                                                                          \
        uint##bits##_t tile[TILE][TILE] __attribute__((aligned(64)));                                                          \
        for (int64_t j = 0; j < columns; j++) {                                                                                \
            for (int32_t line = 0; line < TILE * (bits) / 512; line++)                                                         \
                __builtin_prefetch((const char *)(next + j * from_stride) + 64 * line);                                        \
            for (int64_t i = 0; i < rows; i++)                                                                                 \
                tile[i][j] = from[j * from_stride + i];                                                                        \
        }                                                                                                                      \
        for (int64_t i = 0; i < rows; i++)                                                                                     \
            memcpy(to + i * to_stride, tile[i], (size_t)columns * sizeof(uint##bits##_t));                                     \
    }
TURN_TILE(8)
TURN_TILE(16)
TURN_TILE(32)
TURN_TILE(64)
/* NOLINTEND(bugprone-macro-parentheses) */

/* One tile: where its first element is in both, and how large it is. */
static void turn_one(const turn *t, int64_t item)
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
    const int64_t rows = job->shape[t->across] - across < TILE ? job->shape[t->across] - across : TILE;
    const int64_t columns = job->shape[last] - along < TILE ? job->shape[last] - along : TILE;
    const int64_t to_stride = job->out.strides[t->across], from_stride = job->in[0].strides[last];
    void *y = (char *)job->out.data + to * size;
    const void *x = (const char *)job->in[0].data + from * size;
    const bool more = along + 2 * TILE <= job->shape[last]; /* the next tile is there, and whole */
    const void *next = (const char *)x + (more ? TILE * from_stride * size : 0);
    if (size == 1)
        turn_tile_8(y, to_stride, x, from_stride, rows, columns, next);
    else if (size == 2)
        turn_tile_16(y, to_stride, x, from_stride, rows, columns, next);
    else if (size == 4)
        turn_tile_32(y, to_stride, x, from_stride, rows, columns, next);
    else
        turn_tile_64(y, to_stride, x, from_stride, rows, columns, next);
}

static void turn_range(void *context, int64_t begin, int64_t end)
{
    for (int64_t item = begin; item < end; item++)
        turn_one(context, item);
}

bool cpu_copy_turned(ww_device *device, const elementwise_job *job)
{
    const int32_t last = job->rank - 1;
    turn t = {.job = job, .across = -1};
    if (job->rank < 2 || job->out.strides[last] != 1 || job->in[0].strides[last] == 1 || job->shape[last] < TURN_LEAST)
        return false;
    for (int32_t d = 0; d < last; d++)
        if (job->in[0].strides[d] == 1 && job->shape[d] >= TURN_LEAST)
            t.across = d;
    if (t.across < 0)
        return false;
    t.tiles_across = (job->shape[t.across] + TILE - 1) / TILE;
    t.tiles_along = (job->shape[last] + TILE - 1) / TILE;
    const int64_t tiles = job->count / job->shape[t.across] / job->shape[last] * t.tiles_across * t.tiles_along;
    cpu_run_ranges(device, tiles, TILES_AT_ONCE, turn_range, &t);
    return true;
}
