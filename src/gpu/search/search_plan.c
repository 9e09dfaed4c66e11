/* Divides a full scan so that few slots are empty and few rows are read twice.
 *
 * A kernel handles a fixed number of query slots at once, and an empty slot costs as much as a full one. Each column of slots
 * reads all rows again. The rows are divided among as many blocks as the device holds, or a few times as many if that leaves
 * fewer units idle at the end.
 */
#include "gpu/search/search_plan.h"

#include "base/integers.h"
#include "gpu/search/fill_device.h"
#include "kernels/search/packed_layout.h"
#include "kernels/search/search_args.h"

enum {
    REGISTERS_READ_COST = 6,      /* search_registers_*: cost of reading a row again, in units of scoring one query */
    TILE_READ_COST = 24,          /* the same for search_tile_* */
    STREAM_READ_COST = 24,        /* the same for search_stream_* */
    ROUND_QUERIES_MAX = 4096,     /* more at a time would fill the device no better */
    ROUND_QUERIES_WATCHED = 1024, /* keeps callbacks responsive */
    ROUND_KEYS_MAX = 4 << 20,     /* results that wait on the device at a time */
    ROUND_FLOATS_MAX = 64 << 20,  /* packed queries on the device at a time */
    ROUND_QUERIES_MIN = 64,       /* the minimum, even when memory is short */
    FILL_ROUNDS_MAX = 6           /* of resident blocks */
};

static bool is_typed(const search_size *size)
{
    return size->element_bytes != 0 && size->element_bytes != (int32_t)sizeof(float);
}

static search_shape choose_shape(int64_t queries, int32_t chunks, bool typed)
{
    if (queries == 1 && chunks <= SEARCH_ONE_CHUNKS_MAX)
        return SEARCH_SHAPE_ONE; /* search_plan_make() replaces a tile by SEARCH_SHAPE_STREAM if it fits */
    if (chunks > 2 || typed)
        return SEARCH_SHAPE_TILE;
    return chunks == 1 ? SEARCH_SHAPE_REGISTERS_1 : SEARCH_SHAPE_REGISTERS_2;
}

/* Cost of scoring all queries with `each` per block, in units of scoring one query. It counts empty slots and reading a row
 * again for each column. */
static int64_t columns_cost(int64_t queries, int32_t each, int32_t read_cost)
{
    return (queries + each - 1) / each * (each + read_cost);
}

/* Dynamic shared memory for each of two blocks of a unit, beside their static shared memory. The driver reserves 1 KiB for
 * each.
 */
static int64_t shared_for_two(int64_t shared_bytes)
{
    return (shared_bytes - 1024) / 2 - SEARCH_STATIC_BYTES;
}

static int32_t stages_within(int64_t room, int64_t fixed, int64_t each)
{
    return (int32_t)max_i64(min_i64((room - fixed) / each, SEARCH_STAGES_MAX), SEARCH_STAGES_MIN);
}

static void plan_registers(search_plan *plan, int64_t shared_bytes)
{
    const int64_t stage_bytes = SEARCH_REGISTERS_STAGE_FLOATS * (int64_t)sizeof(float);
    int64_t best_cost = INT64_MAX;
    for (int32_t each = SEARCH_REGISTERS_QUERIES_MAX; each >= SEARCH_REGISTERS_QUERIES_MIN; each /= 2) {
        const int64_t cost = columns_cost(plan->round_queries, each, REGISTERS_READ_COST);
        if (cost < best_cost) {
            plan->slot_queries = each;
            best_cost = cost;
        }
    }
    plan->tile_rows = SEARCH_REGISTERS_ROWS;
    plan->stages = stages_within(shared_for_two(shared_bytes), 0, stage_bytes);
    plan->shared_bytes = (size_t)(plan->stages * stage_bytes);
}

/* Plans blocks of `threads` with `shared_bytes` of shared memory. A block holds its queries in full if they fit beside stages
 * for the rows, as many as fit and make it faster. If eight queries do not fit, the queries go through the stages, too. Returns
 * false if that does not fit either. */
static bool plan_tile_of(search_plan *plan, int32_t chunks, int64_t shared_bytes, int32_t threads)
{
    const int64_t row_bytes = SEARCH_TILE_ROWS_FLOATS * (int64_t)sizeof(float); /* of a strip */
    const int64_t query_bytes = SEARCH_TILE_QUERIES_FLOATS * (int64_t)sizeof(float);
    const int64_t pairs = (chunks + 1) / 2, teams = threads / SEARCH_TILE_LANES;
    int64_t best_cost = INT64_MAX, strips = 2, fixed = 0, each_stage = teams / 2 * row_bytes + 2 * query_bytes;
    for (int64_t tried = teams; tried > 0; tried /= 2) {
        const int64_t cost = columns_cost(plan->round_queries, (int32_t)tried * SEARCH_TILE_SIDE, TILE_READ_COST);
        const int64_t whole = pairs * tried * query_bytes, stage = teams / tried * row_bytes;
        if (cost < best_cost && whole + SEARCH_STAGES_MIN * stage <= shared_bytes) {
            strips = tried;
            fixed = whole;
            each_stage = stage;
            best_cost = cost;
        }
    }
    plan->threads = threads;
    plan->whole = fixed > 0;
    plan->slot_queries = (int32_t)strips * SEARCH_TILE_SIDE;
    plan->tile_rows = (int32_t)(teams / strips) * SEARCH_TILE_SIDE;
    plan->stages = stages_within(shared_bytes, fixed, each_stage);
    plan->shared_bytes = (size_t)(fixed + plan->stages * each_stage);
    return fixed + plan->stages * each_stage <= shared_bytes;
}

/* Two small blocks per unit if they fit, otherwise one large block. */
static void plan_tile(search_plan *plan, int32_t chunks, int64_t shared_bytes)
{
    if (!plan_tile_of(plan, chunks, shared_for_two(shared_bytes), SEARCH_THREADS / 2))
        (void)plan_tile_of(plan, chunks, shared_bytes - SEARCH_STATIC_BYTES, SEARCH_THREADS);
}

/* Plans a block of `teams` that holds its queries in full, as many as make it faster, and stages for the rows. Returns false if
 * it does not fit. */
static bool plan_stream_of(search_plan *plan, int32_t chunks, int64_t shared_bytes, int64_t teams)
{
    const int64_t query_bytes = SEARCH_TILE_QUERIES_FLOATS * (int64_t)sizeof(float);
    const int64_t row_bytes = (SEARCH_STREAM_ROW_FLOATS + 1) * (int64_t)sizeof(float); /* and its norm */
    const int64_t pairs = (chunks + 1) / 2;
    int64_t best_cost = INT64_MAX;
    for (int64_t tried = teams; tried > 0; tried /= 2) {
        const int64_t cost = columns_cost(plan->round_queries, (int32_t)tried * SEARCH_TILE_SIDE, STREAM_READ_COST);
        const int64_t room = shared_bytes - SEARCH_STREAM_STATIC_BYTES - pairs * tried * query_bytes;
        const int64_t stage = teams / tried * SEARCH_TILE_SIDE * row_bytes;
        if (cost >= best_cost || room < SEARCH_STREAM_STAGES_MIN * stage)
            continue;
        plan->slot_queries = (int32_t)tried * SEARCH_TILE_SIDE;
        plan->tile_rows = (int32_t)(teams / tried) * SEARCH_TILE_SIDE;
        plan->stages = (int32_t)min_i64(room / stage, SEARCH_STREAM_STAGES_MAX);
        plan->shared_bytes = (size_t)(pairs * tried * query_bytes + plan->stages * stage);
        best_cost = cost;
    }
    return best_cost < INT64_MAX;
}

/* One block of eight teams per compute unit, or of fewer if the chip allows it. Returns false if it does not fit in shared
 * memory or would not be faster. */
static bool plan_stream(search_plan *plan, const search_size *size)
{
    if (size->stream_wave == 0 || plan->round_queries < size->stream_queries)
        return false;
    int64_t teams = SEARCH_THREADS / SEARCH_TILE_LANES;
    const int64_t teams_min = max_i64(size->stream_teams, size->stream_wave / SEARCH_TILE_LANES);
    while (teams >= teams_min && !plan_stream_of(plan, packed_chunks(size->dim), size->shared_bytes, teams))
        teams /= 2;
    if (teams < teams_min)
        return false;
    plan->shape = SEARCH_SHAPE_STREAM;
    plan->threads = (int32_t)teams * SEARCH_TILE_LANES + SEARCH_STREAM_FEEDERS;
    plan->block_parts = (int32_t)teams * SEARCH_TILE_LANES / size->stream_wave;
    return true;
}

/* Shared memory holds the packed query while rows are scored, and afterwards the keys that are sorted. */
static void plan_one(search_plan *plan, const search_size *size)
{
    const size_t query = (size_t)canon_padded(size->dim) * sizeof(float);
    const size_t keys = sizeof(canon_key) * (size->k > SEARCH_MERGE_KEYS / 4 ? SEARCH_MERGE_KEYS : SEARCH_MERGE_KEYS / 2);
    plan->shared_bytes = query > keys ? query : keys;
    plan->slot_queries = 1;
    plan->tile_rows = SEARCH_ONE_ROWS * (is_typed(size) ? SEARCH_ONE_REPEAT(size->element_bytes) : 1);
}

/* Rounds of equal size, none larger than the limits allow. */
static int32_t choose_round(search_size size)
{
    int64_t round_max = size.watched ? ROUND_QUERIES_WATCHED : ROUND_QUERIES_MAX;
    round_max = min_i64(round_max, ROUND_KEYS_MAX / size.k);
    round_max = min_i64(round_max, ROUND_FLOATS_MAX / canon_padded(size.dim));
    round_max = max_i64(round_max / SEARCH_REGISTERS_QUERIES_MAX, 1) * SEARCH_REGISTERS_QUERIES_MAX;
    round_max = size.shrunk > 0 ? max_i64(min_i64(round_max, size.queries) >> 2 * size.shrunk, ROUND_QUERIES_MIN) : round_max;
    const int64_t rounds = (size.queries + round_max - 1) / round_max;
    const int64_t each = (size.queries + rounds - 1) / rounds;
    return (int32_t)(rounds == 1 ? size.queries : round_up_i64(each, SEARCH_REGISTERS_QUERIES_MAX));
}

search_plan search_plan_make(search_size size)
{
    search_plan plan = {.round_queries = choose_round(size), .threads = SEARCH_THREADS, .block_parts = 1};
    plan.shape = size.tile ? SEARCH_SHAPE_TILE : choose_shape(plan.round_queries, packed_chunks(size.dim), is_typed(&size));
    if (plan.shape == SEARCH_SHAPE_ONE)
        plan_one(&plan, &size);
    else if (plan.shape == SEARCH_SHAPE_TILE && (size.tile || is_typed(&size) || !plan_stream(&plan, &size)))
        plan_tile(&plan, packed_chunks(size.dim), size.shared_bytes);
    else if (plan.shape != SEARCH_SHAPE_STREAM)
        plan_registers(&plan, size.shared_bytes);
    /* A cut leaves up to a quarter more than k, because an exact one takes three times as long. The next cut comes when the
     * list has doubled. Beyond the trigger a list has room for all rows that a block scores before it checks again. */
    plan.list_kept_max = size.k + size.k / 4 + 16;
    plan.list_trigger = 2 * size.k + 32;
    plan.list_capacity = (int32_t)round_up_i64(plan.list_trigger + plan.tile_rows, 16);
    return plan;
}

int64_t search_plan_slots(const search_plan *plan, int64_t queries)
{
    return round_up_i64(queries, plan->slot_queries);
}

int64_t search_plan_parts(const search_plan *plan, const search_parts_size *size)
{
    const int64_t columns = size->slots / plan->slot_queries;
    const int64_t tiles = (size->words * SEARCH_WORD_ROWS + plan->tile_rows - 1) / plan->tile_rows;
    const int64_t parts_max = max_i64(min_i64(tiles, size->lists_max / size->slots / plan->block_parts), 1);
    /* A single column fills the device with one round of resident blocks. */
    const int64_t rounds = columns == 1 ? 1 : FILL_ROUNDS_MAX;
    return plan->block_parts *
           fill_device(
               (fill_size){.columns = columns, .resident = size->resident, .parts_max = parts_max, .rounds_max = rounds});
}
