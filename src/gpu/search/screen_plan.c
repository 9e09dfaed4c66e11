/* How a screened search is cut up: how many rows the sample has, how long the lists of kept rows are, and in which rounds the
 * rest is looked at. Only arithmetic on sizes, so that it can be tested without a device.
 */
#include "gpu/search/screen_plan.h"

#include "arithmetic/canon.h"
#include "base/integers.h"
#include "gpu/search/fill_device.h"
#include "kernels/screen/screen_args.h"

enum {
    SAMPLE_SHARE_ONE = 32, /* for one query, where it is waiting that counts, and a few more rows do not */
    SAMPLE_SHARE = 16,     /* of the tiles one is sampled: the screen is as much longer, and k * 16 rows are as good as the
                            * threshold, about */
    SAMPLE_SHARE_LONG = 8, /* of many queries with long rows, whose scores take longer than the sample: it halves those of the
                            * first rows; */
    LONG_PADDED = 512,     /* rows at least this long, */
    LONG_QUERIES = 1024,   /* and at least this many queries */
    KEPT_FACTOR = 8,       /* room for this many times the rows that exact codes would keep */
    CAPACITY_MIN = 4096,   /* near-duplicates of one another are not rare, */
    CLUSTER_SHARE = 512,   /* nor that such a part of all rows are: room for those, too, if the lists ... */
    CAPACITY_SMALL_BATCH = 1 << 16, /* for a few queries, where room costs nothing */
    ROUND_UNIT = 256,               /* as many as a block takes at most */
    ROUND_GOOD = 1024,              /* this many queries fill it well; */
    ROUND_MAX = 16384,              /* more at a time would fill the device no better */
    ROUND_WATCHED = 2048,           /* keeps callbacks responsive */
    ROUND_FLOATS_MAX = 64 << 20,
    FILL_ROUNDS_MAX = 4 /* of resident blocks */
};

static const int64_t lists_bytes_most = (int64_t)512 << 20,
                     lists_bytes_good = (int64_t)256 << 20; /* ... of ROUND_GOOD queries take no more than this */

/* Buckets, four a tile, enough for k. */
static int64_t sample_least(screen_size size)
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
    const int64_t tiles = size.words / SCREEN_TILE_WORDS, most_tiles = min_i64(SCREEN_BUCKETS_MAX / 4, tiles);
    const int64_t sample = min_i64(max_i64(tiles / sample_share(size), sample_least(size)), most_tiles);
    screen_plan plan = {.sample_tiles = (uint32_t)sample, .sample_stride = (uint32_t)(tiles / sample)};
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
    int64_t most = size.watched ? ROUND_WATCHED : ROUND_MAX;
    most = min_i64(most, lists_bytes_most / query_bytes);
    most = min_i64(most, ROUND_FLOATS_MAX / canon_padded(size.dim));
    most = max_i64(most / ROUND_UNIT, 1) * ROUND_UNIT;
    const int64_t rounds = (size.queries + most - 1) / most;
    const int64_t each = (size.queries + rounds - 1) / rounds;
    plan.round_queries = (int32_t)(rounds == 1 ? size.queries : round_up_i64(each, ROUND_UNIT));
    return plan;
}

int64_t screen_plan_parts(int64_t resident, int64_t columns, int64_t parts_max)
{
    return fill_device(
        (fill_size){.columns = columns, .resident = resident, .parts_max = parts_max, .rounds_max = FILL_ROUNDS_MAX});
}
