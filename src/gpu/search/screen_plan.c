/* Divides a screened search: how many rows the sample has, how long the lists of kept rows are, and how many queries a round
 * has. Pure arithmetic, so it can be tested without a device.
 */
#include "gpu/search/screen_plan.h"

#include "arithmetic/canon.h"
#include "base/integers.h"
#include "gpu/search/fill_device.h"
#include "kernels/screen/screen_args.h"

enum {
    SAMPLE_SHARE_ONE = 32, /* 1 in 32 tiles is sampled for one query: latency counts, and a few more kept rows do not */
    SAMPLE_SHARE = 16,     /* 1 in 16 otherwise: a sixteenth more screening; the threshold keeps about 16 k rows */
    SAMPLE_SHARE_LONG = 8, /* 1 in 8 for many queries with long rows: it halves the first scores, which take longer */
    ONE_DIM_MAX = 1024,    /* the host packs and codes a query of this length in less time than a launch takes */
    LONG_PADDED = 512,     /* long rows have at least this many elements */
    LONG_QUERIES = 1024,   /* many queries are at least this many */
    KEPT_FACTOR = 8,       /* room for this many times the rows that exact codes would keep */
    CAPACITY_MIN = 4096,   /* near-duplicates are not rare */
    CLUSTER_SHARE = 512,   /* nor are clusters of 1 in 512 rows: lists have room for one within lists_bytes_good */
    CAPACITY_SMALL_BATCH = 1 << 16, /* for a small batch, where room costs nothing */
    ROUND_UNIT = 256,               /* queries of a block, at most */
    ROUND_GOOD = 1024,              /* queries that fill the device well */
    ROUND_MAX = 16384,              /* more at a time would fill the device no better */
    ROUND_WATCHED = 2048,           /* keeps callbacks responsive */
    ROUND_FLOATS_MAX = 64 << 20,
    FILL_ROUNDS_MAX = 4 /* of resident blocks */
};

static const int64_t lists_bytes_max = (int64_t)512 << 20,
                     lists_bytes_good = (int64_t)256 << 20; /* the lists of ROUND_GOOD queries take no more than this */

/* Tiles with enough buckets for k; a tile has four. */
static int64_t sample_tiles_min(screen_size size)
{
    return max_i64(divide_up_i64((int64_t)size.k * size.sample_buckets, 4), size.sample_tiles);
}

static int64_t sample_share(screen_size size)
{
    if (size.queries == 1)
        return SAMPLE_SHARE_ONE;
    return size.queries >= LONG_QUERIES && canon_padded(size.dim) >= LONG_PADDED ? SAMPLE_SHARE_LONG : SAMPLE_SHARE;
}

screen_plan screen_plan_make(screen_size size)
{
    const int64_t tiles = size.words / SCREEN_TILE_WORDS, tiles_max = min_i64(SCREEN_BUCKETS_MAX / 4, tiles);
    const int64_t sample = min_i64(max_i64(tiles / sample_share(size), sample_tiles_min(size)), tiles_max);
    screen_plan plan = {.sample_tiles = (uint32_t)sample,
                        .sample_stride = (uint32_t)(tiles / sample),
                        .one = size.queries == 1 && size.dim <= ONE_DIM_MAX && size.host_f32};
    int64_t room = size.capacity;
    if (room == 0) {
        const int64_t cluster = size.words * 64 / CLUSTER_SHARE, good = lists_bytes_good / (int64_t)sizeof(uint64_t);
        room = max_i64((int64_t)KEPT_FACTOR * size.k * plan.sample_stride, CAPACITY_MIN);
        room = max_i64(room, min_i64(cluster, good / min_i64(size.queries, ROUND_GOOD)));
        room = size.queries <= SCREEN_SMALL_BATCH_MAX ? max_i64(room, CAPACITY_SMALL_BATCH) : room;
        room = min_i64(round_up_i64(room, 1024), round_up_i64(size.words * 64, 1024));
    }
    plan.capacity = (int32_t)min_i64(room, INT32_MAX / 2);
    const int64_t query_bytes = ((int64_t)plan.capacity + sample * 4) * (int64_t)sizeof(uint64_t);
    int64_t round_max = size.watched ? ROUND_WATCHED : ROUND_MAX;
    round_max = min_i64(round_max, lists_bytes_max / query_bytes);
    round_max = min_i64(round_max, ROUND_FLOATS_MAX / canon_padded(size.dim));
    round_max = max_i64(round_max / ROUND_UNIT, 1) * ROUND_UNIT;
    const int64_t rounds = (size.queries + round_max - 1) / round_max;
    const int64_t each = (size.queries + rounds - 1) / rounds;
    plan.round_queries = (int32_t)(rounds == 1 ? size.queries : round_up_i64(each, ROUND_UNIT));
    return plan;
}

int64_t screen_plan_parts(int64_t resident, int64_t columns, int64_t parts_max)
{
    return fill_device(
        (fill_size){.columns = columns, .resident = resident, .parts_max = parts_max, .rounds_max = FILL_ROUNDS_MAX});
}
