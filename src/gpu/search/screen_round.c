/* One round of a screened search: its device memory and its launches. */
#include "gpu/search/screen_round.h"

#include <string.h>

#include "arithmetic/row_types.h"
#include "gpu/search/search.h"
#include "gpu/search/search_marks.h"
#include "kernels/search/packed_layout.h"

enum {
    SCORE_BLOCKS_MAX = 64,  /* blocks for one query */
    SCORE_BLOCKS_UNIT = 16, /* blocks for all queries, per compute unit: two rounds of resident blocks, so that long lists do
                               not finish alone */
    STAGES_GOOD = 6,        /* with fewer stages the copy engine does not keep up; then fewer queries per block are better */
    FIRST_SHARE = 4, /* a quarter of the rows is screened first: its threshold is as good as that of four times the sample, and
                        keeps a quarter of the rows that the sample's threshold would keep */
    /* Of rows in host memory, 1 in 64 is screened first, then an eighth, then the rest. With a threshold from 1 in S rows, k S
     * / 64 + k 64 / 8 + k 8 rows are kept if codes are exact. For 200 million rows S is 1526, and that is 400 rows for k = 10.
     * With an eighth first it would be 1940, each read over the bus. */
    FAR_FIRST_SHARE = 64
};

/* ---- device memory --------------------------------------------------------------------------------------------------------
 */

static int64_t tiles_of(const screen_round *round)
{
    return (round->rows.word_count + SCREEN_TILE_WORDS - 1) / SCREEN_TILE_WORDS;
}

/* Makes this a wgmma round with `teams` teams per block, if that leaves room for `stages_min` stages. */
static void choose_stages(screen_round *round, uint32_t teams, int64_t room, uint32_t stages_min)
{
    const uint32_t chunks = (uint32_t)round->rows.chunks;
    uint32_t stages = SCREEN_WGMMA_STAGES_MAX;
    while (stages >= stages_min && (int64_t)SCREEN_WGMMA_BYTES(teams, chunks, stages) > room)
        stages--;
    if (stages < stages_min)
        return;
    round->shape = SCREEN_SHAPE_WGMMA;
    round->teams = teams;
    round->stages = stages;
}

/* Chooses wgmma if the device has code for it and shared memory holds enough stages beside the queries. The gates of wgmma and
 * MFMA only work for codes without an offset. */
static ww_status choose_shape(screen_round *round, int64_t count)
{
    const bool offset = row_type_offset(round->job->type) != 0;
    round->shape = round->work || count <= SCREEN_SMALL_BATCH_MAX ? SCREEN_SHAPE_SMALL_BATCH
                   : round->device->capabilities.mfma && !offset  ? SCREEN_SHAPE_MFMA
                                                                  : SCREEN_SHAPE_BATCH;
    if (round->shape == SCREEN_SHAPE_SMALL_BATCH || offset || !round->device->capabilities.sm_90a_code)
        return WW_OK;
    driver_function_limits limits;
    const ww_status status = gpu_kernel_limits(round->device, screen_launch_kernel(round, false), &limits);
    if (status != WW_OK)
        return status;
    for (uint32_t teams = SCREEN_WGMMA_TEAMS_MAX; teams > 0 && round->shape != SCREEN_SHAPE_WGMMA; teams--)
        choose_stages(round, teams, limits.shared_dynamic_bytes_max, teams == 1 ? SCREEN_WGMMA_STAGES_MIN : STAGES_GOOD);
    return WW_OK;
}

static size_t slot_unit(const screen_round *round, int64_t count)
{
    if (round->shape == SCREEN_SHAPE_WGMMA)
        return (size_t)SCREEN_WGMMA_QUERIES * round->teams;
    if (round->work)
        return SCREEN_SMALL_BATCH_MAX;
    const bool whole = !round->only_lists && round->job->type == ROW_F32;
    return count == 1 && whole ? 1 : count <= 4 ? 4 : count <= SCREEN_SMALL_BATCH_MAX ? 8 : SCREEN_TILE_QUERIES;
}

/* Allocates the measures of the rows for a wgmma round, and rho, which all queries share. */
static ww_status take_measures(screen_round *round)
{
    const size_t positions = (size_t)tiles_of(round) * 128, sampled = (size_t)round->plan->sample_tiles * 128;
    void *measures = NULL;
    const ww_status status =
        gpu_workspace(round->stream, WORKSPACE_MEASURES, (positions * 3 + sampled * 2 + 1) * sizeof(float), &measures);
    if (status != WW_OK)
        return status;
    round->pairs = measures;
    round->thirds = round->pairs + positions * 2;
    round->guesses = round->thirds + positions;
    round->queries.rho = (uint32_t *)(round->guesses + sampled * 2);
    return gpu_fill(round->stream, round->queries.rho, 0, 1);
}

ww_status screen_round_begin(screen_round *round, int64_t count)
{
    ww_status status = choose_shape(round, count);
    const size_t queries = (size_t)count, padded = (size_t)canon_padded(round->job->dim), unit = slot_unit(round, count);
    const size_t slots = (queries + unit - 1) / unit * unit;
    const size_t coded = (slots + 63) / 64 * 64; /* codes are packed in groups of 64 queries */
    const size_t buckets = (size_t)round->plan->sample_tiles * 4;
    const size_t best = queries * (size_t)round->job->k;
    void *packed = NULL, *samples = NULL, *lists = NULL, *results = NULL;
    round->results_bytes = (best + slots) * sizeof(uint64_t) + 2 * slots * sizeof(uint32_t);
    if (status == WW_OK)
        status = gpu_workspace(
            round->stream, WORKSPACE_QUERIES,
            slots * (padded * 4 + sizeof(screen_query)) + (2 * slots + 1) * sizeof(uint32_t) + coded * padded, &packed);
    if (status == WW_OK)
        status = gpu_workspace(round->stream, WORKSPACE_SAMPLES, queries * buckets * sizeof(uint64_t), &samples);
    if (status == WW_OK)
        status =
            gpu_workspace(round->stream, WORKSPACE_LISTS, queries * (size_t)round->plan->capacity * sizeof(uint64_t), &lists);
    if (status == WW_OK)
        status = gpu_workspace(round->stream, WORKSPACE_RESULTS, round->results_bytes, &results);
    if (status != WW_OK)
        return status;
    round->samples = samples;
    round->lists = lists;
    round->best = results;
    round->queries = (screen_queries){.packed = packed, .count = (uint32_t)queries, .slots = (uint32_t)slots};
    round->queries.codes = (uint32_t *)(round->queries.packed + slots * padded);
    round->queries.numbers = (screen_query *)(round->queries.codes + coded * padded / 4);
    round->queries.scored = (uint32_t *)(round->queries.numbers + slots);
    round->queries.blocks_ready = round->queries.scored + slots;
    round->queries.thresholds = round->best + best;
    round->queries.counts = (uint32_t *)(round->queries.thresholds + slots);
    round->queries.before = round->queries.counts + slots;
    return round->shape == SCREEN_SHAPE_WGMMA ? take_measures(round) : WW_OK;
}

/* ---- launches -------------------------------------------------------------------------------------------------------------
 */

/* Uploads the queries, unless they are on the device, and queues their packing and coding. */
static ww_status prepare(screen_round *round, const screen_input *a)
{
    const size_t row_bytes = (size_t)round->job->dim * sizeof(float),
                 given_bytes = a->on_device ? 0 : (size_t)a->count * row_bytes;
    const size_t thresholds_at = (given_bytes + 7) / 8 * 8,
                 thresholds_bytes = a->thresholds ? (size_t)a->count * sizeof *a->thresholds : 0;
    void *given = NULL;
    ww_status status = gpu_workspace(round->stream, WORKSPACE_GIVEN, thresholds_at + thresholds_bytes, &given);
    if (status == WW_OK && !a->on_device)
        status = gpu_copy_in_pieces(round->stream, given,
                                    (host_pieces){a->queries, row_bytes, (size_t)a->stride * sizeof(float), a->count});
    uint64_t *thresholds = a->thresholds ? (uint64_t *)((char *)given + thresholds_at) : NULL;
    if (status == WW_OK && a->thresholds)
        status = gpu_copy_in(round->stream, thresholds, a->thresholds, thresholds_bytes);
    if (status == WW_OK)
        status = search_mark(round->stream, "queries in");
    if (status != WW_OK)
        return status;
    const screen_prepare_args args = {.from = a->on_device ? a->queries : given,
                                      .thresholds = thresholds,
                                      .queries = round->queries,
                                      .dim = round->job->dim,
                                      .metric = round->job->metric,
                                      .small_batch = round->shape == SCREEN_SHAPE_SMALL_BATCH,
                                      .offset = row_type_offset(round->job->type) != 0};
    return launch_screen_prepare(round->stream, grid_of(((int64_t)round->queries.slots + 15) / 16), SCREEN_THREADS, 0, &args);
}

static ww_status measure(screen_round *round)
{
    const screen_measure_args args = {.rows = round->rows,
                                      .rho = round->queries.rho,
                                      .pairs = round->pairs,
                                      .thirds = round->thirds,
                                      .guesses = round->guesses,
                                      .tiles = (uint32_t)tiles_of(round),
                                      .sample_stride = round->plan->sample_stride,
                                      .sample_tiles = round->plan->sample_tiles};
    const int64_t rows = ((int64_t)args.tiles + args.sample_tiles) * 128;
    return launch_screen_measure_rows(round->stream, grid_of((rows + SCREEN_THREADS - 1) / SCREEN_THREADS), SCREEN_THREADS, 0,
                                      &args);
}

ww_status screen_round_scan(const screen_round *round, bool sample)
{
    return screen_launch_scan(round, sample, 0, sample ? round->plan->sample_tiles : tiles_of(round));
}

static ww_status pick(const screen_round *round)
{
    const screen_pick_args args = {.rows = round->rows,
                                   .queries = round->queries,
                                   .samples = round->samples,
                                   .buckets = round->plan->sample_tiles * 4,
                                   .k = (uint32_t)round->job->k};
    return launch_screen_pick(round->stream, grid_of(round->queries.count), SCREEN_THREADS, 0, &args);
}

static ww_status score(const screen_round *round, bool more)
{
    const screen_score_args args = {.rows = round->rows,
                                    .queries = round->queries,
                                    .lists = round->lists,
                                    .best = round->best,
                                    .capacity = (uint32_t)round->plan->capacity,
                                    .k = (uint32_t)round->job->k,
                                    .more = more};
    const int64_t units = round->device->base.info.compute_units > 0 ? round->device->base.info.compute_units : 1;
    int64_t blocks = SCORE_BLOCKS_UNIT * units / round->queries.count;
    blocks = blocks < 1 ? 1 : blocks > SCORE_BLOCKS_MAX ? SCORE_BLOCKS_MAX : blocks;
    return launch_screen_score(round->stream, grid_of_2(blocks, round->queries.count), SCREEN_THREADS, 0, &args);
}

/* Returns `status`. On success it marks what was queued as `name`. */
static ww_status marked(const screen_round *round, ww_status status, const char *name)
{
    return status == WW_OK ? search_mark(round->stream, name) : status;
}

/* Chooses the stages in which rows are screened. There are two; three (an eighth, a fourth and the rest) if scoring the kept
 * rows takes longer than a launch. */
static void choose_stage_ends(const screen_round *round, int64_t ends[3])
{
    const chip_constants *constants = &round->device->constants;
    const int64_t tiles = tiles_of(round), numbers = (int64_t)round->queries.count * round->rows.chunks * CANON_LANES;
    ends[0] = tiles / FIRST_SHARE;
    ends[1] = 0;
    ends[2] = tiles;
    if (gpu_search_rows_are_far(round->job) && tiles >= FAR_FIRST_SHARE) {
        ends[0] = tiles / FAR_FIRST_SHARE;
        ends[1] = tiles / 8;
    } else if (numbers >= constants->three_stages_numbers && tiles >= constants->three_stages_tiles) {
        ends[0] = tiles / 8;
        ends[1] = tiles * 3 / 8;
    }
}

/* Lists and scores rows in stages. Each stage gives the next a better threshold. */
static ww_status keep(const screen_round *round, bool at_once)
{
    int64_t ends[3] = {0, 0, tiles_of(round)};
    if (!at_once)
        choose_stage_ends(round, ends);
    ww_status status = WW_OK;
    int64_t begin = 0;
    for (int32_t stage = 0; status == WW_OK && stage < 3; stage++) {
        const bool last = stage == 2;
        if (ends[stage] <= begin)
            continue;
        status = marked(round, screen_launch_scan(round, false, begin, ends[stage]),
                        last ? "codes of the last rows" : "codes of the first rows");
        if (status == WW_OK)
            status = marked(round, score(round, !last), last ? "scores of the last rows" : "scores of the first rows");
        begin = ends[stage];
    }
    return status;
}

ww_status screen_round_run(screen_round *round, const screen_input *input, void *results)
{
    const bool whole = round->queries.slots == 1; /* screen_small_batch_1_* do all steps */
    ww_status status = search_mark(round->stream, "begin");
    if (status == WW_OK)
        status = marked(round, prepare(round, input), "queries coded");
    if (status == WW_OK && round->shape == SCREEN_SHAPE_WGMMA)
        status = marked(round, measure(round), "rows measured");
    if (status == WW_OK && !input->thresholds)
        status = marked(round, screen_round_scan(round, true), "codes of the sample");
    if (status == WW_OK && !input->thresholds && !whole)
        status = marked(round, pick(round), "thresholds");
    if (status == WW_OK)
        status = whole ? screen_round_scan(round, false)
                       : keep(round, input->thresholds != NULL || round->shape == SCREEN_SHAPE_SMALL_BATCH);
    if (status == WW_OK)
        status = gpu_copy_out(round->stream, results, round->best, round->results_bytes);
    status = marked(round, status, "results out");
    return status == WW_OK ? search_marks_end(round->stream) : status;
}

ww_status screen_round_list(screen_round *round, const screen_input *input)
{
    ww_status status = search_mark(round->stream, "begin");
    if (status == WW_OK)
        status = marked(round, prepare(round, input), "queries coded");
    if (status == WW_OK && round->shape == SCREEN_SHAPE_WGMMA)
        status = marked(round, measure(round), "rows measured");
    return status == WW_OK ? marked(round, screen_round_scan(round, false), "codes of all rows") : status;
}
