/* How a search is cut up: by what is wasted, and by what is read more than once.
 *
 * Queries come in slots that a kernel takes at once, and slots without a query cost as much as the others; each column of slots
 * reads all rows again. The rows go to as many blocks as the device holds, or a few times as many where that leaves fewer of
 * its places empty at the end.
 */
#include "gpu/search_plan.h"

#include "kernels/packed.h"
#include "kernels/search.h"

enum {
    TALL_QUERIES_MAX = 48, /* where tiles of 16 waste less than tiles of 64 */
    READ_COST_QUERIES = 6,
    ROUND_QUERIES_MAX = 4096,     /* more at a time would fill the device no better */
    ROUND_QUERIES_WATCHED = 1024, /* so that a callback is heard within a moment */
    ROUND_KEYS_MAX = 4 << 20,     /* results that wait on the device at a time */
    ROUND_FLOATS_MAX = 64 << 20,  /* packed queries on the device at a time */
    PARTS_WAVES_MAX = 6           /* times the resident blocks: parts are cut no finer */
};

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t round_up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static search_shape choose_shape(int64_t queries, int32_t runs)
{
    if (queries == 1)
        return SEARCH_SHAPE_FEW_1;
    if (runs <= 2)
        return runs == 1 ? SEARCH_SHAPE_HELD_1 : SEARCH_SHAPE_HELD_2;
    if (queries <= 4)
        return SEARCH_SHAPE_FEW_4;
    if (queries <= SEARCH_FEW_MAX)
        return SEARCH_SHAPE_FEW_8;
    return queries <= TALL_QUERIES_MAX ? SEARCH_SHAPE_TALL : SEARCH_SHAPE_WIDE;
}

/* How many queries a block of search_held_* takes: 8 times a power of two. Scoring a row takes as long as there are slots, and
 * reading it once more for another column as long as scoring some six. */
static int32_t held_queries(int64_t queries)
{
    int32_t best = SEARCH_HELD_QUERIES_MAX;
    int64_t best_cost = INT64_MAX;
    for (int32_t each = SEARCH_HELD_QUERIES_MAX; each >= SEARCH_HELD_QUERIES_MIN; each /= 2) {
        const int64_t cost = (queries + each - 1) / each * (each + READ_COST_QUERIES);
        if (cost < best_cost) {
            best = each;
            best_cost = cost;
        }
    }
    return best;
}

/* Rounds of equal size, none larger than the limits allow. */
static int32_t choose_chunk(int64_t queries, int32_t dim, int32_t k, int32_t watched)
{
    int64_t most = watched ? ROUND_QUERIES_WATCHED : ROUND_QUERIES_MAX;
    most = smaller(most, ROUND_KEYS_MAX / k);
    most = smaller(most, ROUND_FLOATS_MAX / canon_padded(dim));
    most = larger(most / SEARCH_HELD_QUERIES_MAX, 1) * SEARCH_HELD_QUERIES_MAX;
    const int64_t rounds = (queries + most - 1) / most;
    const int64_t each = (queries + rounds - 1) / rounds;
    return (int32_t)(rounds == 1 ? queries : round_up(each, SEARCH_HELD_QUERIES_MAX));
}

search_plan search_plan_make(int64_t queries, int32_t dim, int32_t k, int32_t watched)
{
    search_plan plan = {.chunk = choose_chunk(queries, dim, k, watched)};
    plan.shape = choose_shape(plan.chunk, packed_runs(dim));
    switch (plan.shape) {
    case SEARCH_SHAPE_FEW_1:
    case SEARCH_SHAPE_FEW_4:
    case SEARCH_SHAPE_FEW_8:
        plan.slot_queries = plan.shape == SEARCH_SHAPE_FEW_1 ? 1 : plan.shape == SEARCH_SHAPE_FEW_4 ? 4 : 8;
        plan.tile_rows = SEARCH_FEW_WORDS * SEARCH_WORD_ROWS;
        break;
    case SEARCH_SHAPE_HELD_1:
    case SEARCH_SHAPE_HELD_2:
        plan.slot_queries = held_queries(plan.chunk);
        plan.tile_rows = SEARCH_HELD_ROWS;
        break;
    case SEARCH_SHAPE_TALL:
    case SEARCH_SHAPE_WIDE:
        plan.slot_queries = plan.shape == SEARCH_SHAPE_TALL ? SEARCH_TALL_QUERIES : SEARCH_WIDE_QUERIES;
        plan.tile_rows = (plan.shape == SEARCH_SHAPE_TALL ? SEARCH_TALL_WORDS : SEARCH_WIDE_WORDS) * SEARCH_WORD_ROWS;
        break;
    }
    /* A cut leaves up to a quarter more than k, since an exact one takes three times as long; the next comes when the list has
     * doubled. Behind the trigger a list has room for all rows that a block scores before it looks again. */
    plan.list_kept_max = k + k / 4 + 16;
    plan.list_trigger = 2 * k + 32;
    plan.list_capacity = (int32_t)round_up(plan.list_trigger + plan.tile_rows, 16);
    return plan;
}

int64_t search_plan_slots(const search_plan *plan, int64_t queries)
{
    return round_up(queries, plan->slot_queries);
}

int64_t search_plan_parts(const search_plan *plan, int64_t slots, int64_t word_count, int64_t resident, int64_t lists_max)
{
    const int64_t columns = slots / plan->slot_queries;
    const int64_t tiles = (word_count * SEARCH_WORD_ROWS + plan->tile_rows - 1) / plan->tile_rows;
    const int64_t most = larger(smaller(tiles, lists_max / slots), 1);
    const int64_t fewest = larger(resident / columns, 1);
    if (columns == 1 || most <= fewest)
        return smaller(fewest, most);
    /* Blocks beyond the resident ones wait for a place. Take the number of parts that leaves the fewest places empty in the
     * last round of blocks; more parts only for a gain, since each begins with an empty list. */
    int64_t best = fewest;
    double best_used = 0;
    for (int64_t parts = fewest; parts <= smaller(most, larger(PARTS_WAVES_MAX * resident / columns, fewest)); parts++) {
        const int64_t blocks = parts * columns;
        const double used = (double)blocks / (double)round_up(blocks, resident);
        if (used > best_used + 0.02) {
            best = parts;
            best_used = used;
        }
    }
    return best;
}
