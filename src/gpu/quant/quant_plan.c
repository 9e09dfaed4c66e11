/* Planning a quantized product: which strategy, which rows and columns at once, layouts, sizes and kernels. */
#include "gpu/quant/quant_plan.h"

#include <string.h>

#include "arithmetic/blocks/dot.h"
#include "base/integers.h"
#include "gpu/launch.h"
#include "gpu/quant/quant.h"
#include "kernels/matmul/matmul.h"
#include "kernels/quant/quant_gemv_layout.h"

enum {
    GEMV_COLUMNS_MAX = 32,     /* beyond, unpacking the weights costs less than reading them once for each eight columns */
    FAST_COLUMNS_MIN = 33,     /* fewer are quicker through codes */
    CODES_BYTES = 64 << 20,    /* of activations coded at once, */
    COLUMNS_MAX = 4096,        /* and columns */
    UNPACKED_BYTES = 1 << 28,  /* of weights unpacked at once, codes or bf16 */
    TILES_MAX = 512,           /* of a launch: each has up to 256 KiB of sums in memory */
    UNPACK_SHARED = 100000,    /* bytes of shared memory that a block may have where copies are in the background */
    GEMV_SHARED_ALL = 233472,  /* bytes of shared memory of the compute unit that has the most, */
    GEMV_SHARED_SYSTEM = 1280, /* of which a thread block takes so many before it asks for any */
    WHOLE_COLS_MAX = 4096,     /* elements of a column that every thread block codes for itself, in a few microseconds, */
    WHOLE_BLOCKS_MAX = 4,      /* where a compute unit has at most so many of them: they do it at the same time */
    STAY_COLS_MAX = 28672,     /* elements of a column that leave room for two stages of any format */
};

/* ---- which strategy ------------------------------------------------------------------------------------------------------ */

static bool has_experts(const quant_product_job *job)
{
    return job->first_rows || job->ids;
}

bool quant_may_be_fast(const quant_product_job *job)
{
    return dot_activations(job->type) >= 0 && !job->decoded && !job->coded && !has_experts(job) &&
           job->columns >= FAST_COLUMNS_MIN && job->columns <= INT32_MAX && job->rows <= INT32_MAX;
}

/* Where bf16 is quicker than codes on AMD's chips, whoever multiplies it. Calculated from counted instructions
 * (tests/codeobjects/performance.py, ROUTES), codes / bf16, us, 4096 x 14336, with all that is prepared:
 *
 *   columns          gfx942      gfx90a        gfx11         gfx12
 *   128     q4_0     51 / 140    182 / 368     270 / 352     323 / 445
 *           q4_k     66 / 140    342 / 368     483 / 352     489 / 445
 *           q6_k     68 / 143    326 / 378     482 / 368     506 / 469
 *   512     q4_0     86 / 146    450 / 658     700 / 753     448 / 613
 *           q8_0     91 / 151    468 / 676     730 / 784     494 / 659
 *           q4_k    107 / 146    905 / 658    1326 / 753     660 / 613
 *           q6_k    103 / 149    830 / 668    1278 / 769     644 / 637
 *   1024    q4_k    181 / 154    q4_0 on gfx11: 1335 / 1350
 *           q6_k    172 / 157
 *   2048    q4_0    258 / 280   1507 / 1549   2419 / 2359   1085 / 1746
 *           q4_k    306 / 280   3226 / 1549   4695 / 2359   1881 / 1746
 *           q6_k    285 / 283   2898 / 1558   4464 / 2375   1750 / 1770
 *
 * So blocks of 32 go by codes. K blocks, which have two byte products for each, go by bf16 where its tiles, which are not
 * split, fill so many percent of the compute units' rounds: those of the table that are quicker do. So none is slower than
 * codes. What could be quicker in bf16 and is not: on gfx12 few columns of q6_k, which at 2048 are 1% slower, and on gfx11 many
 * of q4_0, by 2%. rocBLAS, which cannot be counted, would need 96% of the peak to be as quick as codes for 512 columns of q4_0
 * on gfx942, 100% on gfx90a and 98% on gfx11; on gfx12 decoding and the peak alone take longer. Not counted, by arithmetic:
 * gfx908 multiplies bf16 at half the rate of bytes; gfx906 and gfx10.3 multiply four bytes in the time of one bf16. */
enum { BF16_NEVER = 101 };

static const struct {
    const char *chips;
    int64_t kblock_min, kblock; /* percent, with minima and without */
} bf16_suits[] = {
    {"gfx942", 84, 84},
    {"gfx90a", 60, 60},
    {"gfx908", BF16_NEVER, BF16_NEVER},
    {"gfx906", BF16_NEVER, BF16_NEVER},
    {"gfx103", BF16_NEVER, BF16_NEVER},
    {"gfx11", 60, 60},
    {"gfx12", 95, BF16_NEVER},
};

/* How full the rounds of the product's tiles are, in percent. */
static int64_t rounds_filled(const gpu_device *device, const quant_product_job *job)
{
    const int64_t tiles = divide_up_i64(job->rows, MATMUL_FAST_SIDE) * divide_up_i64(job->columns, MATMUL_FAST_SIDE);
    const int64_t units = max_i64(device->base.info.compute_units, 1);
    return 100 * tiles / (divide_up_i64(tiles, units) * units);
}

bool quant_bf16_suits(const gpu_device *device, const quant_product_job *job)
{
    const tuning_choice tuned = device->base.tuning.quant_bf16;
    if (tuned != TUNING_AUTO || device->driver->kind != DRIVER_HIP)
        return tuned != TUNING_NEVER;
    for (size_t i = 0; i < sizeof bf16_suits / sizeof *bf16_suits; i++)
        if (strncmp(device->base.info.arch, bf16_suits[i].chips, strlen(bf16_suits[i].chips)) == 0)
            return block_length(job->type) == KBLOCK_ELEMENTS &&
                   rounds_filled(device, job) >= (dot_has_min(job->type) ? bf16_suits[i].kblock_min : bf16_suits[i].kblock);
    return true;
}

/* By the columns of the whole product, however few its last pass has. */
static bool goes_by_tiles(const quant_product_job *job)
{
    return !has_experts(job) && job->columns > GEMV_COLUMNS_MAX;
}

/* Tensor cores multiply the factors there, as f16, which the scales of mxfp4 need not fit. */
static bool has_wgmma(const gpu_device *device, int32_t type)
{
    if (type == BLOCK_MXFP4)
        return false;
    const tuning_choice tuned = device->base.tuning.quant_wgmma;
    return tuned != TUNING_NEVER &&
           (device->capabilities.sm_90a_code || (tuned == TUNING_ALWAYS && device->capabilities.emulated));
}

static quant_strategy choose(const gpu_device *device, const quant_product_job *job)
{
    return dot_activations(job->type) < 0 || job->decoded ? QUANT_FLOAT
           : !goes_by_tiles(job)                          ? QUANT_GEMV
           : has_wgmma(device, job->type)                 ? QUANT_WGMMA
                                                          : QUANT_TILES;
}

/* Tiles code activations from any type; a gemv takes floats. */
bool gpu_quant_takes(const quant_product_job *job)
{
    return !job->fast && !job->decoded && dot_activations(job->type) >= 0 && goes_by_tiles(job);
}

/* Do thread blocks of a step's gemv stay (kernels/quant/quant_gemv_step.h)? */
static bool gemv_stays(const gpu_device *device)
{
    return device->capabilities.sm_90a_code ||
           (device->base.tuning.quant_gemv_stays == TUNING_ALWAYS && device->capabilities.emulated);
}

/* Where a gemv does it, whose launch has all rows: some of those of several launches are computed twice (quant_launch.c). */
bool gpu_quant_fuses(ww_device *base, const quant_product_job *job)
{
    const gpu_device *device = gpu_of(base);
    const quant_fusion *fusion = &job->fusion;
    if (job->fast || job->decoded || job->coded || job->x_type != BLOCK_F32 || job->refused || has_experts(job) ||
        dot_activations(job->type) < 0 || goes_by_tiles(job))
        return false;
    if ((fusion->input == INPUT_NORM && job->cols > QUANT_NORM_MOST) || (gemv_stays(device) && job->cols > STAY_COLS_MAX))
        return false;
    return job->rows <= gpu_blocks_of(device, QUANT_THREADS) / QUANT_CLASSES * QUANT_GEMV_ROWS;
}

/* ---- gemv ---------------------------------------------------------------------------------------------------------------- */

/* Room for at least `largest` columns in each group. */
static uint32_t group_width(int64_t largest)
{
    return largest > 4 ? 8 : largest > 2 ? 4 : largest > 1 ? 2 : 1;
}

uint32_t quant_gemv_splits(int64_t tiles, int64_t compute_units)
{
    uint32_t splits = 1;
    while (splits < QUANT_CLASSES && tiles * splits * 2 <= compute_units)
        splits *= 2;
    return splits;
}

static int32_t gemv_kernel(int32_t type, const quant_plan *plan)
{
    switch (type) {
#define QUANT_FORMAT(name, number, ...)                                                                                        \
    case number:                                                                                                               \
        return plan->direct  ? GPU_KERNEL_quant_gemv_direct_##name                                                             \
               : plan->fused ? GPU_KERNEL_quant_gemv_fused_##name                                                              \
                             : GPU_KERNEL_quant_gemv_##name;
        BLOCK_FORMATS(QUANT_FORMAT)
#undef QUANT_FORMAT
    default:
        return -1;
    }
}

static int32_t step_kernel(int32_t type)
{
    switch (type) {
#define QUANT_FORMAT(name, number, ...)                                                                                        \
    case number:                                                                                                               \
        return GPU_KERNEL_quant_gemv_step_##name;
        BLOCK_FORMATS(QUANT_FORMAT)
#undef QUANT_FORMAT
    default:
        return -1;
    }
}

/* As many threads as the chip's kernel was compiled for; the emulator's would take more than it has a use for. */
static int32_t gemv_threads(const gpu_device *device, const driver_function_limits *limits)
{
    const bool more = device->driver->kind == DRIVER_HIP && limits->threads_per_block_max >= QUANT_GEMV_THREADS_MAX;
    return more ? QUANT_GEMV_THREADS_MAX : QUANT_THREADS;
}

/* As many stages as leave room for the other thread blocks that a compute unit is to hold; where shared memory is small copies
 * are not in the background, and more than three are of no use, or two where a chunk waits in registers. */
static uint32_t gemv_stages(const gpu_device *device, const quant_plan *plan, int64_t resident, int64_t shared_max)
{
    const int64_t share = GEMV_SHARED_ALL / resident - GEMV_SHARED_SYSTEM, room = min_i64(shared_max, share);
    const int64_t fit = room / (int64_t)plan->stage_bytes, most = room == share                         ? STAGES_MAX
                                                                  : device->driver->kind == DRIVER_CUDA ? 3
                                                                                                        : 2;
    return fit < 1 ? 1 : (uint32_t)min_i64(fit, most);
}

/* Thread blocks that stay fill the device once, each with the column and as many stages as are left room for. */
static void plan_stay(const gpu_device *device, const quant_product_job *job, int64_t tiles, int64_t shared_max,
                      quant_plan *plan)
{
    plan->stays = plan->fused && plan->splits == 1 && gemv_stays(device) && job->cols <= STAY_COLS_MAX;
    if (!plan->stays)
        return;
    const int64_t column = step_columns_bytes(job->type, plan->blocks_padded), stage = step_stage_bytes(job->type);
    const int64_t room = min_i64(shared_max, GEMV_SHARED_ALL / QUANT_GEMV_RESIDENT - GEMV_SHARED_SYSTEM);
    const int64_t chunks = divide_up_i64(plan->blocks, stage_blocks(job->type));
    plan->stay_blocks = min_i64(tiles, (int64_t)QUANT_GEMV_RESIDENT * device->base.info.compute_units);
    const int64_t most = min_i64(STAGES_MAX, chunks * divide_up_i64(tiles, plan->stay_blocks));
    plan->stay_stages = (uint32_t)max_i64(1, min_i64(most, (room - column) / stage));
    plan->stay_bytes = (size_t)(column + plan->stay_stages * stage);
    plan->stays = (int64_t)plan->stay_bytes <= shared_max;
    plan->whole = plan->stays ? job->cols <= WHOLE_COLS_MAX : plan->whole;
}

/* Has the chip quant_gemv_direct_TYPE? All of AMD's but those of gfx9 that have no MFMA. */
static bool has_direct(const char *chip)
{
    return strncmp(chip, "gfx9", 4) != 0 || strcmp(chip, "gfx908") == 0 || strcmp(chip, "gfx90a") == 0 ||
           strcmp(chip, "gfx942") == 0;
}

/* Does the product code its single column chunk by chunk (kernels/quant/quant_gemv_direct.c)? */
static bool gemv_is_direct(const gpu_device *device, const quant_product_job *job, const quant_plan *plan)
{
    const tuning_choice tuned = device->base.tuning.quant_direct;
    const bool suits = device->driver->kind == DRIVER_HIP && has_direct(device->base.info.arch);
    return plan->width == 1 && !has_experts(job) && !job->coded && tuned != TUNING_NEVER &&
           (suits || (tuned == TUNING_ALWAYS && device->capabilities.emulated));
}

static ww_status plan_gemv(gpu_device *device, const quant_product_job *job, quant_plan *plan)
{
    driver_function_limits limits;
    plan->blocks_padded = (uint32_t)round_up_i64(plan->blocks, 4);
    plan->columns_padded = (uint32_t)round_up_i64(plan->columns, QUANT_GEMV_COLUMNS);
    plan->width = group_width(plan->columns);
    ww_status status = WW_OK;
    if (job->first_rows) {
        status = quant_groups_make(job->first_rows + plan->first_column, plan->columns, &plan->groups);
        plan->columns_padded = (uint32_t)(plan->groups.count * QUANT_GEMV_COLUMNS);
        plan->width = group_width(plan->groups.largest);
    } else if (job->ids) { /* as many groups as there can be: one that is not full for each expert */
        const int64_t full = plan->columns / QUANT_GEMV_COLUMNS;
        plan->columns_padded =
            (uint32_t)(min_i64(plan->columns, full + min_i64(job->experts, plan->columns)) * QUANT_GEMV_COLUMNS);
    }
    if (status == WW_OK)
        status = gpu_kernel_limits(device, GPU_KERNEL_quant_gemv_q4_0, &limits);
    if (status != WW_OK)
        return status;
    plan->copy_engine = device->capabilities.sm_90a_code;
    /* Split where there are few rows, but not where the copy engine brings them, which is quicker than that. */
    const int64_t tiles = divide_up_i64(job->rows, QUANT_GEMV_ROWS) * (plan->columns_padded / QUANT_GEMV_COLUMNS);
    const int32_t tuned = device->base.tuning.quant_gemv_splits;
    plan->splits = tuned > 0 ? (uint32_t)tuned : quant_gemv_splits(tiles, device->base.info.compute_units);
    if (tiles > QUANT_READY_COUNTERS || plan->copy_engine)
        plan->splits = 1;
    const int32_t threads = gemv_threads(device, &limits);
    plan->rows_at_once = gpu_blocks_of(device, threads) / plan->splits * QUANT_GEMV_ROWS;
    /* One launch codes the column for all its thread blocks. */
    plan->direct = gemv_is_direct(device, job, plan);
    plan->fused = !plan->direct && plan->width == 1 && device->capabilities.fused_gemv && job->rows <= plan->rows_at_once;
    plan->whole = plan->fused && job->cols <= WHOLE_COLS_MAX && (plan->copy_engine || job->fusion.input != INPUT_PLAIN) &&
                  tiles * plan->splits <= (int64_t)WHOLE_BLOCKS_MAX * device->base.info.compute_units;
    plan->threads = plan->fused ? QUANT_THREADS : threads;
    plan->kernel = gemv_kernel(job->type, plan);
    plan->step_kernel = step_kernel(job->type);
    plan->stage_bytes = stage_bytes(job->type, plan->width);
    plan_stay(device, job, tiles, limits.shared_dynamic_bytes_max, plan);
    plan->stages = gemv_stages(device, plan, QUANT_GEMV_RESIDENT, limits.shared_dynamic_bytes_max);
    plan->stages_overlapped = gemv_stages(device, plan, QUANT_FUSED_RESIDENT(job->type), limits.shared_dynamic_bytes_max);
    const size_t blocks = (size_t)plan->columns_padded * plan->blocks_padded, elements = (size_t)block_length(job->type);
    plan->activations = (quant_coded_bytes){
        .codes = blocks * elements,
        .sums = blocks * (elements / BLOCK32_ELEMENTS) * sizeof(uint32_t),
        .factors = blocks * sizeof(float),
        .partial = plan->splits > 1 ? (size_t)tiles * QUANT_CLASSES * QUANT_GEMV_RESULTS * sizeof(float) : 0};
    return plan->kernel >= 0 ? WW_OK : ww_fail(WW_INTERNAL, "no product for format %d", job->type);
}

/* ---- tiles --------------------------------------------------------------------------------------------------------------- */

/* Over how many thread blocks the accumulators of a tile are spread: as many as leave the fewest compute units idle. Where two
 * share a unit, one alone takes longer than half of what both take. */
static uint32_t tile_splits(int64_t tiles, int64_t compute_units, bool two_share)
{
    int64_t best = 1, best_cost = INT64_MAX;
    for (int64_t splits = 1; splits <= QUANT_CLASSES; splits *= 2) {
        const int64_t rounds = divide_up_i64(tiles * splits, compute_units), round = two_share && rounds == 1 ? 1600 : 1000;
        const int64_t cost = rounds * round / splits + (splits > 1 ? 60 + 10 * splits : 0); /* the fold takes time, too */
        if (cost < best_cost) {
            best = splits;
            best_cost = cost;
        }
    }
    return (uint32_t)best;
}

/* AMD's kernels read codes as they will be in shared memory; so do those of the emulator where waves have 64 lanes. */
static bool tiles_by_slabs(const gpu_device *device)
{
    return device->driver->kind == DRIVER_HIP || (device->capabilities.emulated && device->base.info.wave_size == 64);
}

/* Shared memory of a kernel: stages, as many as fit, what it wants once, and sums if there is room for them as well. */
typedef struct tile_shared {
    size_t stage, once, sums;
    uint32_t stages_max, stages_min;
} tile_shared;

static void fit_stages(quant_plan *plan, tile_shared want, int64_t shared_max)
{
    plan->stages = want.stages_max;
    while (plan->stages > want.stages_min && (int64_t)(want.once + plan->stages * want.stage) > shared_max)
        plan->stages--;
    plan->shared_bytes = want.once + plan->stages * want.stage;
    plan->sums_in_shared = want.sums > 0 && (int64_t)(plan->shared_bytes + want.sums) <= shared_max;
    plan->shared_bytes += plan->sums_in_shared ? want.sums : 0;
}

static void fit_tile(quant_plan *plan, int64_t shared_max)
{
    const size_t records = plan->layout == QUANT_LAYOUT_SLABS ? QUANT_TILE_PLANES_BYTES : QUANT_TILE_RECORDS_BYTES;
    const tile_shared want = {.stage = plan->k_blocks ? QUANT_TILE_KBLOCK_BYTES : QUANT_TILE_BLOCK32_BYTES,
                              .once = plan->k_blocks ? records : 0,
                              .stages_max = plan->one_stage ? 1 : 4,
                              .stages_min = plan->one_stage ? 1 : 2};
    fit_stages(plan, want, shared_max);
}

static void fit_wgmma_block32(quant_plan *plan, int64_t shared_max)
{
    const tile_shared want = {.stage = (size_t)QUANT_WGMMA_BLOCK32_STAGE_WORDS * 4,
                              .once = QUANT_WGMMA_ALIGNMENT,
                              .sums = QUANT_WGMMA_SUMS_BYTES,
                              .stages_max = QUANT_WGMMA_BLOCK32_STAGES,
                              .stages_min = 1};
    fit_stages(plan, want, shared_max);
}

/* Records of fewer blocks leave room for more stages, of which two are too few. */
static void fit_wgmma_kblock(quant_plan *plan, int64_t shared_max)
{
    tile_shared want = {.stage = QUANT_TILE_KBLOCK_BYTES,
                        .sums = QUANT_WGMMA_SUMS_BYTES,
                        .stages_max = QUANT_WGMMA_KBLOCK_STAGES,
                        .stages_min = 2};
    plan->records = QUANT_WGMMA_KBLOCK_RECORDS + 1;
    do {
        plan->records--;
        want.once = QUANT_WGMMA_ALIGNMENT + plan->records * QUANT_TILE_RECORDS_BYTES;
        fit_stages(plan, want, shared_max);
    } while (plan->records > 1 && plan->stages <= 2);
}

/* The kernels for tiles: without minima, with them, and the fold. */
typedef struct tile_kernels {
    int32_t kernel, kernel_min, fold;
    int32_t threads, fold_threads;
    void (*fit)(quant_plan *plan, int64_t shared_max);
} tile_kernels;

static const tile_kernels tile_kernels_of[2][2] = {
    {{GPU_KERNEL_quant_tile_block32, GPU_KERNEL_quant_tile_block32_min, GPU_KERNEL_quant_tile_fold, QUANT_TILE_THREADS,
      QUANT_TILE_THREADS, fit_tile},
     {GPU_KERNEL_quant_tile_kblock, GPU_KERNEL_quant_tile_kblock_min, GPU_KERNEL_quant_tile_fold, QUANT_TILE_THREADS,
      QUANT_TILE_THREADS, fit_tile}},
    {{GPU_KERNEL_quant_wgmma_block32, GPU_KERNEL_quant_wgmma_block32_min, GPU_KERNEL_quant_wgmma_block32_fold,
      QUANT_WGMMA_BLOCK32_THREADS, QUANT_WGMMA_BLOCK32_TEAMS * 128, fit_wgmma_block32},
     {GPU_KERNEL_quant_wgmma_kblock, GPU_KERNEL_quant_wgmma_kblock_min, GPU_KERNEL_quant_wgmma_kblock_fold,
      QUANT_WGMMA_KBLOCK_THREADS, QUANT_WGMMA_KBLOCK_TEAMS * 128, fit_wgmma_kblock}}};

/* Sections for so many rows or columns, `code_bytes` of codes for each block. */
static quant_coded_bytes tile_bytes(const quant_product_job *job, const quant_plan *plan, uint32_t lines, size_t code_bytes)
{
    const size_t blocks = (size_t)lines * plan->blocks_padded;
    const size_t words = plan->k_blocks ? QUANT_RECORD : (size_t)block_length(job->type) / BLOCK32_ELEMENTS;
    return (quant_coded_bytes){
        .codes = blocks * code_bytes, .sums = blocks * words * sizeof(uint32_t), .factors = blocks * sizeof(float)};
}

static int32_t unpack_kernel(int32_t type, bool k_blocks)
{
    if (block_has_codebook(type))
        return k_blocks ? GPU_KERNEL_quant_unpack_codebook_kblock : GPU_KERNEL_quant_unpack_codebook_block32;
    return k_blocks ? GPU_KERNEL_quant_unpack_kblock : GPU_KERNEL_quant_unpack_block32;
}

static ww_status plan_tiles(gpu_device *device, const quant_product_job *job, quant_plan *plan)
{
    const tile_kernels *kernels = &tile_kernels_of[plan->strategy == QUANT_WGMMA][plan->k_blocks];
    const size_t length = (size_t)block_length(job->type);
    /* Codes of weights in K blocks are two bytes. A stage has 64 codes of one class: two blocks of 32, or a quarter of a K
     * block; wgmma takes two stages at a time. */
    const size_t weight_bytes = plan->k_blocks ? 2 * length : length;
    plan->layout = plan->strategy == QUANT_WGMMA ? QUANT_LAYOUT_WGMMA
                   : tiles_by_slabs(device)      ? QUANT_LAYOUT_SLABS
                                                 : QUANT_LAYOUT_TILES;
    /* What comes next waits in registers, and two thread blocks share a compute unit. */
    plan->one_stage = plan->layout == QUANT_LAYOUT_SLABS && device->base.info.wave_size == 64;
    plan->blocks_padded = (uint32_t)round_up_i64(plan->blocks, QUANT_CLASSES * (plan->k_blocks ? INT64_C(1) : INT64_C(4)));
    plan->columns_padded = (uint32_t)round_up_i64(plan->columns, QUANT_TILE);
    const int64_t across = plan->columns_padded / QUANT_TILE;
    const int64_t tile_codes = (int64_t)(plan->blocks_padded * weight_bytes * QUANT_TILE);
    const int64_t down_max = min_i64(TILES_MAX / across, UNPACKED_BYTES / tile_codes);
    plan->rows = min_i64((down_max > 1 ? down_max : 1) * QUANT_TILE, job->rows - plan->first_row);
    plan->rows_padded = (uint32_t)round_up_i64(plan->rows, QUANT_TILE);
    plan->activations = tile_bytes(job, plan, plan->columns_padded, length);
    plan->weights = tile_bytes(job, plan, plan->rows_padded, weight_bytes);
    const int64_t tiles = plan->rows_padded / QUANT_TILE * across;
    plan->splits = tile_splits(tiles, device->base.info.compute_units, plan->one_stage);
    plan->sums_floats = (size_t)(tiles * plan->splits * QUANT_TILE) * QUANT_TILE;
    plan->kernel = dot_has_min(job->type) ? kernels->kernel_min : kernels->kernel;
    plan->threads = kernels->threads;
    plan->fold_kernel = kernels->fold;
    plan->fold_threads = kernels->fold_threads;
    plan->unpack_kernel = unpack_kernel(job->type, plan->k_blocks);
    driver_function_limits unpack, tile;
    ww_status status = gpu_kernel_limits(device, plan->unpack_kernel, &unpack);
    if (status == WW_OK)
        status = gpu_kernel_limits(device, kernels->kernel, &tile);
    if (status != WW_OK)
        return status;
    plan->unpack_stages = unpack.shared_dynamic_bytes_max < UNPACK_SHARED ? 2 : 3;
    kernels->fit(plan, tile.shared_dynamic_bytes_max);
    return WW_OK;
}

/* ---- all of it ----------------------------------------------------------------------------------------------------------- */

static int64_t columns_at_once(const quant_product_job *job, quant_strategy strategy)
{
    if (strategy == QUANT_FLOAT || strategy == QUANT_FAST)
        return job->columns;
    return min_i64(CODES_BYTES / job->cols / QUANT_TILE * QUANT_TILE + QUANT_TILE, COLUMNS_MAX);
}

ww_status quant_plan_make(gpu_device *device, const quant_product_job *job, quant_plan *plan)
{
    if (plan->strategy == QUANT_UNDECIDED)
        plan->strategy = choose(device, job);
    plan->columns = min_i64(columns_at_once(job, plan->strategy), job->columns - plan->first_column);
    plan->rows = job->rows - plan->first_row;
    plan->k_blocks = block_length(job->type) == KBLOCK_ELEMENTS;
    plan->blocks = (uint32_t)(job->cols / block_length(job->type));
    if (plan->strategy == QUANT_GEMV)
        return plan_gemv(device, job, plan);
    if (plan->strategy == QUANT_TILES || plan->strategy == QUANT_WGMMA)
        return plan_tiles(device, job, plan);
    if (plan->strategy == QUANT_FAST) {
        const int64_t fit = UNPACKED_BYTES / job->cols / (int64_t)sizeof(uint16_t);
        plan->rows = min_i64(fit > 0 ? fit : 1, plan->rows);
    }
    return WW_OK;
}
