/* Plans a quantized product: the strategy, the rows and columns of a pass, layouts, sizes and kernels.
 *
 * The table `strategies` is the ladder: the first row that applies is taken, and its comment says why. Read from the top:
 *
 *   QUANT_FLOAT    formats without codes to multiply, and decoded weights: a product of floats
 *   QUANT_BF16     fast mode, many columns: weights are unpacked to bf16 for the vendor's BLAS or our own fast product
 *   QUANT_STAY     one column, sm_90a: thread blocks stay for norm, coding, product and addition
 *   QUANT_DIRECT   one column, other chips: the same work in one launch, activations coded on the way
 *   QUANT_GEMV     up to GEMV_COLUMNS_MAX columns, and columns with ids: bound by reading the weights, as they are stored
 *   QUANT_WGMMA    more columns, sm_90a: tiles by wgmma
 *   QUANT_TILES    more columns, all other chips: tiles by the matrix unit that there is, or by products of four bytes
 *
 * Products of codes (the last five) give canonical results, so which of them is taken is only a matter of time.
 *
 * Then the sizes, by plan_gemv() for few columns and plan_tiles() for tiles: how many rows and columns a pass has, so that
 * workspaces stay within their limits; in which layout activations are coded and weights unpacked; threads, shared memory and
 * kernel. A plan is only arithmetic on the job and the chip's constants; quant_prepare.c allocates, and quant_launch.c launches
 * what it says.
 */
#include "gpu/quant/quant_plan.h"

#include <string.h>

#include "arithmetic/blocks/dot.h"
#include "base/integers.h"
#include "gpu/launch.h"
#include "gpu/quant/quant.h"
#include "kernels/matmul/matmul.h"
#include "kernels/quant/quant_gemv_layout.h"

enum {
    GEMV_COLUMNS_MAX = 32,     /* beyond this, unpacking the weights costs less than reading them once per eight columns */
    CODES_BYTES = 64 << 20,    /* of activations that are coded at once */
    COLUMNS_MAX = 4096,        /* columns of a pass, at most */
    UNPACKED_BYTES = 1 << 28,  /* of weights that are unpacked at once, as codes or bf16 */
    TILES_MAX = 512,           /* tiles of a launch: each has up to 256 KiB of sums in memory */
    UNPACK_SHARED = 100000,    /* bytes of shared memory per block on chips with background copies */
    GEMV_SHARED_ALL = 233472,  /* bytes of shared memory of the largest compute unit */
    GEMV_SHARED_SYSTEM = 1280, /* bytes that the system reserves per thread block */
    STAY_COLS_MAX = 28672,     /* longest column that leaves room for two stages of any format */
    ONCE_COLS_MIN = 12288,     /* shortest column for which a second launch costs the host less than it saves */
};

/* ---- which strategy ------------------------------------------------------------------------------------------------------ */

static bool has_floats(const gpu_device *device, const quant_product_job *job)
{
    (void)device;
    return dot_activations(job->type) < 0 || job->decoded;
}

/* Counts the columns of the whole product, not those of its last pass. */
static bool has_few_columns(const gpu_device *device, const quant_product_job *job)
{
    (void)device;
    return job->ids || job->columns <= GEMV_COLUMNS_MAX;
}

/* How full the rounds of a bf16 product's tiles are, in percent. On AMD's chips bf16 is faster than codes for K blocks, which
 * take two byte products, if its tiles, which are not split, fill enough of the compute units' rounds. Calculated from counted
 * instructions (tests/codeobjects/performance.py, ROUTES), codes / bf16, us, q4_k, 4096 x 14336, with all that is prepared:
 *
 *   columns    gfx942       gfx90a        gfx11         gfx12
 *   128        66 / 140     342 / 368     483 / 352     489 / 445
 *   512       107 / 146     905 / 658    1326 / 753     660 / 613
 *   1024      181 / 154
 *   2048      306 / 280    3226 / 1549   4695 / 2359   1881 / 1746
 *
 * Codes are used on other chips, on gfx12 (9%), and for blocks of 32, where bf16 is faster by at most 2% (gpu/chip.c:
 * quant_bf16_percent). */
static int64_t rounds_filled(const gpu_device *device, const quant_product_job *job)
{
    const int64_t tiles = divide_up_i64(job->rows, MATMUL_FAST_SIDE) * divide_up_i64(job->columns, MATMUL_FAST_SIDE);
    const int64_t units = max_i64(device->base.info.compute_units, 1);
    return 100 * tiles / (divide_up_i64(tiles, units) * units);
}

static bool suits_bf16(const gpu_device *device, const quant_product_job *job)
{
    const tuning_choice tuned = device->base.tuning.quant_bf16;
    if (!job->fast || job->coded || has_few_columns(device, job) || job->columns > INT32_MAX || job->rows > INT32_MAX)
        return false;
    if (tuned != TUNING_AUTO || device->constants.quant_bf16_percent == 0)
        return tuned != TUNING_NEVER;
    return block_length(job->type) == KBLOCK_ELEMENTS && rounds_filled(device, job) >= device->constants.quant_bf16_percent;
}

static bool has_one_column(const gpu_device *device, const quant_product_job *job)
{
    return job->columns == 1 && !job->ids && device->capabilities.gemv_one;
}

/* A long column of a product by itself, whose thread blocks have one tile of rows each: a kernel of its own codes the column
 * once, while the weights are already on their way. H200, 4096 x 14336, us, stay / gemv: q4_0 16.1 / 13.4, q4_k 14.2 / 13.2,
 * q8_0 21.0 / 18.5, q6_k 16.5 / 15.9. With more tiles than blocks staying is faster: 14336 x 4096, q4_0 13.3 / 17.2. */
static bool codes_once(const gpu_device *device, const quant_product_job *job)
{
    const int64_t resident = (int64_t)QUANT_GEMV_RESIDENT * device->base.info.compute_units;
    return job->cols >= ONCE_COLS_MIN && job->rows <= resident * QUANT_GEMV_ROWS && job->fusion.input == INPUT_PLAIN &&
           !job->fusion.adds;
}

static bool can_stay(const gpu_device *device, const quant_product_job *job)
{
    return has_one_column(device, job) && job->cols <= STAY_COLS_MAX && device->capabilities.sm_90a_code &&
           !codes_once(device, job);
}

static bool can_be_direct(const gpu_device *device, const quant_product_job *job)
{
    return has_one_column(device, job) && !job->coded && !device->capabilities.sm_90a_code;
}

/* Tensor cores multiply the factors as f16, which cannot hold all scales of mxfp4. */
static bool has_wgmma(const gpu_device *device, const quant_product_job *job)
{
    return job->type != BLOCK_MXFP4 && device->capabilities.sm_90a_code;
}

static bool is_any(const gpu_device *device, const quant_product_job *job)
{
    (void)device;
    (void)job;
    return true;
}

/* The first row that applies. */
static const struct {
    bool (*applies)(const gpu_device *device, const quant_product_job *job);
    quant_strategy strategy; /* quant_plan.h names its kernel */
} strategies[] = {
    {has_floats, QUANT_FLOAT},     /* there are no codes to multiply */
    {suits_bf16, QUANT_BF16},      /* fast mode; NVIDIA: cuBLAS takes 0.8 of the codes' time; AMD: by the table above */
    {can_stay, QUANT_STAY},        /* one launch for norm, coding, product and addition; weights come while others still run */
    {can_be_direct, QUANT_DIRECT}, /* the same for chips without a copy engine, where no kernel begins early */
    {has_few_columns, QUANT_GEMV}, /* bound by reading the weights: once for each eight columns, as stored */
    {has_wgmma, QUANT_WGMMA},      /* wgmma has twice the rate of mma.sync */
    {is_any, QUANT_TILES},         /* mma.sync, MFMA, WMMA or products of four bytes */
};

quant_strategy quant_choose(const gpu_device *device, const quant_product_job *job)
{
    size_t i = 0;
    while (!strategies[i].applies(device, job))
        i++;
    return strategies[i].strategy;
}

/* Tiles code activations from any type; a gemv takes floats. */
bool gpu_quant_takes(const quant_product_job *job)
{
    return !job->fast && !has_floats(NULL, job) && !has_few_columns(NULL, job);
}

/* Only a gemv that has all rows in one launch: with several launches some rows are computed twice (quant_launch.c). */
bool gpu_quant_fuses(ww_device *base, const quant_product_job *job)
{
    const gpu_device *device = gpu_of(base);
    if (job->fast || job->coded || job->x_type != BLOCK_F32 || job->refused || job->ids || has_floats(device, job) ||
        !has_few_columns(device, job) || (job->fusion.input == INPUT_NORM && job->cols > QUANT_NORM_MAX))
        return false;
    return job->rows <= gpu_blocks_of(device, QUANT_GEMV_THREADS_MAX) / QUANT_CLASSES * QUANT_GEMV_ROWS;
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

/* For each format, the kernel for up to eight columns, and the one for a single column. */
static const int32_t gemv_kernels[][2] = {
#define QUANT_FORMAT(name, number, ...) [number] = {GPU_KERNEL_quant_gemv_##name, GPU_KERNEL_quant_gemv_one_##name},
    BLOCK_FORMATS(QUANT_FORMAT)
#undef QUANT_FORMAT
};

/* Chooses as many stages as leave room for the other thread blocks of a compute unit. If shared memory is small, there are no
 * background copies, and more than three stages are useless, or two if a chunk waits in registers. */
static void fit_gemv(const gpu_device *device, int64_t stage_bytes, int64_t shared_max, quant_plan *plan)
{
    const int64_t share = GEMV_SHARED_ALL / QUANT_GEMV_RESIDENT - GEMV_SHARED_SYSTEM, room = min_i64(shared_max, share);
    const int64_t stages_max = room == share ? STAGES_MAX : device->constants.quant_stages;
    plan->stages = (uint32_t)max_i64(1, min_i64(room / stage_bytes, stages_max));
    plan->shared_bytes = (size_t)(plan->stages * stage_bytes);
}

/* Plans thread blocks that fill the device once. Each holds the column and as many stages as fit. */
static void fit_stay(const gpu_device *device, const quant_product_job *job, int64_t shared_max, quant_plan *plan)
{
    const int64_t tiles = divide_up_i64(job->rows, QUANT_GEMV_ROWS),
                  chunks = divide_up_i64(plan->blocks, stage_blocks(job->type));
    const int64_t column = step_columns_bytes(job->type, plan->blocks_padded), stage = step_stage_bytes(job->type);
    const int64_t room = min_i64(shared_max, GEMV_SHARED_ALL / QUANT_GEMV_RESIDENT - GEMV_SHARED_SYSTEM);
    plan->stay_blocks = min_i64(tiles, (int64_t)QUANT_GEMV_RESIDENT * device->base.info.compute_units);
    const int64_t stages_max = min_i64(STAGES_MAX, chunks * divide_up_i64(tiles, plan->stay_blocks));
    plan->stages = (uint32_t)max_i64(1, min_i64(stages_max, (room - column) / stage));
    plan->shared_bytes = (size_t)(column + plan->stages * stage);
}

/* Returns how many thread blocks share the accumulators of a tile of rows and columns: several if there are few rows, unless
 * the copy engine loads them, which is faster. */
static uint32_t gemv_splits(const gpu_device *device, int64_t tiles, const quant_plan *plan)
{
    const int32_t told = device->constants.quant_gemv_splits;
    if (tiles > QUANT_READY_COUNTERS || device->capabilities.sm_90a_code || plan->strategy == QUANT_STAY)
        return 1;
    return told > 0 ? (uint32_t)told : quant_gemv_splits(tiles, device->base.info.compute_units);
}

/* Groups columns by eight. With experts it plans for the largest possible number of groups: one partial group per expert. */
static void group_columns(const quant_product_job *job, quant_plan *plan)
{
    const int64_t full = plan->columns / QUANT_GEMV_COLUMNS;
    const int64_t groups = job->ids ? min_i64(plan->columns, full + min_i64(job->experts, plan->columns))
                                    : divide_up_i64(plan->columns, QUANT_GEMV_COLUMNS);
    plan->columns_padded = (uint32_t)(groups * QUANT_GEMV_COLUMNS);
    plan->width = group_width(plan->columns);
}

static ww_status plan_gemv(gpu_device *device, const quant_product_job *job, quant_plan *plan)
{
    driver_function_limits limits;
    plan->blocks_padded = (uint32_t)round_up_i64(plan->blocks, 4);
    plan->kernel = gemv_kernels[job->type][plan->strategy != QUANT_GEMV];
    group_columns(job, plan);
    const ww_status status = gpu_kernel_limits(device, plan->kernel, &limits);
    if (status != WW_OK)
        return status;
    const int64_t tiles = divide_up_i64(job->rows, QUANT_GEMV_ROWS) * (plan->columns_padded / QUANT_GEMV_COLUMNS);
    plan->splits = gemv_splits(device, tiles, plan);
    /* As many threads as the chip's kernel was compiled for. */
    const bool more = device->capabilities.wide_gemv && limits.threads_per_block_max >= QUANT_GEMV_THREADS_MAX;
    plan->threads = more ? QUANT_GEMV_THREADS_MAX : QUANT_THREADS;
    if (plan->strategy == QUANT_STAY) {
        plan->rows_at_once = job->rows;
        fit_stay(device, job, limits.shared_dynamic_bytes_max, plan);
    } else {
        plan->rows_at_once = gpu_blocks_of(device, plan->threads) / plan->splits * QUANT_GEMV_ROWS;
        fit_gemv(device, stage_bytes(job->type, plan->width), limits.shared_dynamic_bytes_max, plan);
    }
    const size_t blocks = (size_t)plan->columns_padded * plan->blocks_padded, elements = (size_t)block_length(job->type);
    plan->activations = (quant_coded_bytes){
        .codes = blocks * elements,
        .sums = blocks * (elements / BLOCK32_ELEMENTS) * sizeof(uint32_t),
        .factors = blocks * sizeof(float),
        .partial = plan->splits > 1 ? (size_t)tiles * QUANT_CLASSES * QUANT_GEMV_RESULTS * sizeof(float) : 0};
    return WW_OK;
}

/* ---- tiles --------------------------------------------------------------------------------------------------------------- */

/* Returns how many thread blocks share the accumulators of a tile: the number that leaves the fewest compute units idle. If two
 * blocks share a unit, one block alone takes longer than half of the time of both. */
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

/* Shared memory of a kernel: as many stages as fit, a fixed part, and sums if there is room for them too. */
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
                              .stages_max = plan->stages,
                              .stages_min = plan->stages > 1 ? 2 : 1};
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

/* Records of fewer blocks leave room for more stages; two stages are too few. */
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

typedef struct tile_kernels {
    int32_t kernel, kernel_min; /* for formats without minima, and with them */
    int32_t unpack, fold;
    int32_t threads, fold_threads;
    void (*fit)(quant_plan *plan, int64_t shared_max);
} tile_kernels;

/* With wgmma or without, for K blocks or not. */
static const tile_kernels tile_kernels_of[2][2] = {
    {{GPU_KERNEL_quant_tile_block32, GPU_KERNEL_quant_tile_block32_min, GPU_KERNEL_quant_unpack_block32,
      GPU_KERNEL_quant_tile_fold, QUANT_TILE_THREADS, QUANT_TILE_THREADS, fit_tile},
     {GPU_KERNEL_quant_tile_kblock, GPU_KERNEL_quant_tile_kblock, GPU_KERNEL_quant_unpack_kblock, GPU_KERNEL_quant_tile_fold,
      QUANT_TILE_THREADS, QUANT_TILE_THREADS, fit_tile}},
    {{GPU_KERNEL_quant_wgmma_block32, GPU_KERNEL_quant_wgmma_block32_min, GPU_KERNEL_quant_unpack_block32,
      GPU_KERNEL_quant_wgmma_fold, QUANT_WGMMA_BLOCK32_THREADS, QUANT_WGMMA_BLOCK32_TEAMS * 128, fit_wgmma_block32},
     {GPU_KERNEL_quant_wgmma_kblock, GPU_KERNEL_quant_wgmma_kblock_min, GPU_KERNEL_quant_unpack_kblock,
      GPU_KERNEL_quant_wgmma_fold, QUANT_WGMMA_KBLOCK_THREADS, QUANT_WGMMA_KBLOCK_TEAMS * 128, fit_wgmma_kblock}}};

/* Sizes of the sections for `lines` rows or columns, with `code_bytes` of codes per code block. */
static quant_coded_bytes tile_bytes(const quant_product_job *job, const quant_plan *plan, uint32_t lines, size_t code_bytes)
{
    const size_t blocks = (size_t)lines * plan->blocks_padded;
    const size_t words = plan->k_blocks ? QUANT_RECORD : (size_t)block_length(job->type) / BLOCK32_ELEMENTS;
    return (quant_coded_bytes){
        .codes = blocks * code_bytes, .sums = blocks * words * sizeof(uint32_t), .factors = blocks * sizeof(float)};
}

static ww_status plan_tiles(gpu_device *device, const quant_product_job *job, quant_plan *plan)
{
    const tile_kernels *kernels = &tile_kernels_of[plan->strategy == QUANT_WGMMA][plan->k_blocks];
    const size_t length = (size_t)block_length(job->type);
    /* Codes of weights in K blocks are two bytes. A stage has 64 codes of one class: two blocks of 32, or a quarter of a K
     * block; wgmma takes two stages at a time. */
    const size_t weight_bytes = plan->k_blocks ? 2 * length : length;
    plan->layout = plan->strategy == QUANT_WGMMA      ? QUANT_LAYOUT_WGMMA
                   : device->capabilities.quant_slabs ? QUANT_LAYOUT_SLABS
                                                      : QUANT_LAYOUT_TILES;
    /* The next stage waits in registers, and two thread blocks share a compute unit. */
    const bool one_stage = plan->layout == QUANT_LAYOUT_SLABS && device->base.info.wave_size == 64;
    plan->stages = one_stage ? 1 : 4;
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
    plan->splits = tile_splits(tiles, device->base.info.compute_units, one_stage);
    plan->sums_floats = (size_t)(tiles * plan->splits * QUANT_TILE) * QUANT_TILE;
    plan->kernel = dot_has_min(job->type) ? kernels->kernel_min : kernels->kernel;
    plan->threads = kernels->threads;
    plan->fold_kernel = kernels->fold;
    plan->fold_threads = kernels->fold_threads;
    plan->unpack_kernel = kernels->unpack;
    driver_function_limits unpack, tile;
    ww_status status = gpu_kernel_limits(device, plan->unpack_kernel, &unpack);
    if (status == WW_OK)
        status = gpu_kernel_limits(device, plan->kernel, &tile);
    if (status != WW_OK)
        return status;
    plan->unpack_stages = unpack.shared_dynamic_bytes_max < UNPACK_SHARED ? 2 : 3;
    kernels->fit(plan, tile.shared_dynamic_bytes_max);
    return WW_OK;
}

/* ---- all of it ----------------------------------------------------------------------------------------------------------- */

static int64_t columns_at_once(const quant_product_job *job, quant_strategy strategy)
{
    if (strategy == QUANT_FLOAT || strategy == QUANT_BF16)
        return job->columns;
    return min_i64(CODES_BYTES / job->cols / QUANT_TILE * QUANT_TILE + QUANT_TILE, COLUMNS_MAX);
}

ww_status quant_plan_make(gpu_device *device, const quant_product_job *job, quant_plan *plan)
{
    plan->columns = min_i64(columns_at_once(job, plan->strategy), job->columns - plan->first_column);
    plan->rows = job->rows - plan->first_row;
    plan->k_blocks = block_length(job->type) == KBLOCK_ELEMENTS;
    plan->blocks = (uint32_t)(job->cols / block_length(job->type));
    switch (plan->strategy) {
    case QUANT_FLOAT:
        return WW_OK;
    case QUANT_BF16:
        plan->rows = min_i64(max_i64(UNPACKED_BYTES / job->cols / (int64_t)sizeof(uint16_t), 1), plan->rows);
        return WW_OK;
    case QUANT_WGMMA:
    case QUANT_TILES:
        return plan_tiles(device, job, plan);
    default:
        return plan_gemv(device, job, plan);
    }
}
