/* Products of unpacked weights with many columns, in tiles of 128 x 128. blocks/dot.h defines the results, quant.h the layouts.
 *
 * Eight accumulators per result would not fit into registers. So a thread block works on one class of blocks after the other,
 * each with one accumulator. The sum of a class is parked in memory until the one it is added to is complete. A wave owns 64
 * rows and as many columns as it has lanes, in strips of 16 rows (matrix_i8.h). Rows and columns come in stages of 64 bytes
 * each, ahead of the work. Blocks of 32: an exact integer for each 32 elements is converted to float, multiplied with both
 * factors and added. These three operations for each 32 multiplications of bytes, not the tensor cores, take the time. The
 * integer is below 2^20. Its sum starts at the bits of 1.5 * 2^23, so it already is a float, and one subtraction removes the
 * offset.
 *
 * K blocks: unpacking multiplied codes by the scales of their sub-blocks and split them into two bytes, so the integers of all
 * 256 elements add up before they become floats. Minima times sums of codes are 16 products of bytes, done twice because a sum
 * has two bytes.
 */
#include "kernels/simt/matrix_i8.h"

#include "kernels/quant/quant.h"

enum {
    TILE_THREADS = QUANT_TILE_THREADS,
    TILE_ROWS = QUANT_TILE,
    TILE_SUMS = MATRIX_SUMS,
    TILE_STRIPS = MATRIX_ROWS / MATRIX_STRIP
};

/* AMD's compiler hoists all loads of an unrolled loop and then runs out of registers. */
#if defined(__NVPTX__)
#define TILE_HALVES UNROLL
#else
#define TILE_HALVES UNROLL_BY(1)
#endif

/* Half of the registers are enough for two thread blocks per compute unit, also on gfx90a. */
#if defined(__gfx90a__)
#define TILE_KERNEL_HEAD(name, args_type, max_threads)                                                                         \
    extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, max_threads), amdgpu_waves_per_eu(2))) void name(         \
        const args_type args)
#else
#define TILE_KERNEL_HEAD KERNEL_MATRIX
#endif

/* The first row and column of this wave's results in the tile. */
DEVICE uint32_t tile_first_row(void)
{
    return wave_index() / (QUANT_TILE / MATRIX_COLUMNS) * MATRIX_ROWS;
}

DEVICE uint32_t tile_first_column(void)
{
    return wave_index() % (QUANT_TILE / MATRIX_COLUMNS) * MATRIX_COLUMNS;
}

/* Row and column of result i of a lane. The four rows that MFMA returns in adjacent registers stay there. */
#if defined(MATRIX_BY_FOUR)
DEVICE uint32_t tile_row(uint32_t i)
{
    return tile_first_row() + i / 16 * MATRIX_STRIP + matrix_strip_row(i % 4);
}

DEVICE uint32_t tile_column(uint32_t i)
{
    return tile_first_column() + matrix_column(i / 4 % 4);
}
#else
DEVICE uint32_t tile_row(uint32_t i)
{
    return tile_first_row() + matrix_row(i / MATRIX_LANE_COLUMNS);
}

DEVICE uint32_t tile_column(uint32_t i)
{
    return tile_first_column() + matrix_column(i % MATRIX_LANE_COLUMNS);
}
#endif

#include "kernels/simt/simt.h"

#include "arithmetic/blocks/blocks.h"
#include "kernels/quant/quant.h"
#include "kernels/quant/quant_tile_sums.h"
#include "kernels/quant/tile/tile_stages.h"

/* ---- blocks of 32 -------------------------------------------------------------------------------------------------------- */

#define TILE_ONE_AND_A_HALF 0x4b400000 /* the bits of 1.5 * 2^23 */

#if defined(MATRIX_BY_FOUR)
/* For matrix instructions that return four rows of a column in adjacent registers: factors are loaded for four rows at once,
 * and each instruction (v_pk_*) computes two rows without moving registers. */
typedef float tile_four __attribute__((ext_vector_type(4)));

/* The numbers of four rows of this lane, from `row` on. */
DEVICE tile_four tile_four_rows(const float *of_rows, uint32_t row)
{
    return *(const tile_four *)AT_RANGE(of_rows, row + matrix_strip_row(0), 4);
}

/* Adds m * da * sums to four results. */
DEVICE void tile_four_add(tile_four m, float da, tile_four sums, float *acc)
{
    const tile_four before = {acc[0], acc[1], acc[2], acc[3]}, all = __builtin_elementwise_fma(m * da, sums, before);
    acc[0] = all.x;
    acc[1] = all.y;
    acc[2] = all.z;
    acc[3] = all.w;
}

/* Adds both blocks of a stage: codes and minima of the first, then of the second. The registers with the starting value of sums
 * are not changed. */
DEVICE void tile_stage_pairs(bool has_min, const uint32_t *stage, float *acc)
{
    const uint32_t first_column = tile_first_column();
    matrix_four begin = {TILE_ONE_AND_A_HALF, TILE_ONE_AND_A_HALF, TILE_ONE_AND_A_HALF, TILE_ONE_AND_A_HALF};
    matrix_pair columns[MATRIX_LANE_COLUMNS];
    float da[MATRIX_LANE_COLUMNS][2], of_codes[MATRIX_LANE_COLUMNS][2];
    SETTLE(begin);
    UNROLL
    for (uint32_t c = 0; c < MATRIX_LANE_COLUMNS; c++) {
        const uint32_t line = first_column + matrix_column(c);
        columns[c] = matrix_both(stage + TILE_SLAB, line);
        UNROLL
        for (uint32_t half = 0; half < 2; half++) {
            da[c][half] = AT(tile_extras(stage, TILE_COLUMN_FACTORS, half), line);
            of_codes[c][half] = has_min ? AT(tile_extras(stage, TILE_COLUMN_SUMS, half), line) : 0.0f;
        }
    }
    UNROLL
    for (uint32_t strip = 0; strip < TILE_STRIPS; strip++) {
        const uint32_t row = tile_first_row() + strip * MATRIX_STRIP;
        const matrix_pair x = matrix_both(stage, row + lane() % 16);
        UNROLL
        for (uint32_t half = 0; half < 2; half++) {
            const tile_four d = tile_four_rows(tile_extras(stage, TILE_FACTORS, half), row);
            UNROLL
            for (uint32_t c = 0; c < MATRIX_LANE_COLUMNS; c++) {
                const matrix_four j = matrix_mfma_four(x.of[half], columns[c].of[half], begin);
                tile_four_add(d, da[c][half], __builtin_bit_cast(tile_four, j) - 12582912.0f, acc + strip * 16 + c * 4);
            }
            if (!has_min)
                continue;
            const tile_four m = tile_four_rows(tile_extras(stage, TILE_MINS, half), row);
            UNROLL
            for (uint32_t c = 0; c < MATRIX_LANE_COLUMNS; c++) {
                const tile_four sums = {of_codes[c][half], of_codes[c][half], of_codes[c][half], of_codes[c][half]};
                tile_four_add(m, da[c][half], sums, acc + strip * 16 + c * 4);
            }
        }
    }
}

#define TILE_PUT_SMALL(from, next, stage)      tile_put_pairs(next, stage)
#define TILE_STAGE_SMALL(has_min, stage, sums) tile_stage_pairs(has_min, stage, sums)

#else

/* Adds the products of the codes of block `half` of a stage. */
DEVICE void tile_codes_small(const uint32_t *stage, uint32_t half, float *acc)
{
    const float *factors = tile_extras(stage, TILE_FACTORS, half);
    const float *of_columns = tile_extras(stage, TILE_COLUMN_FACTORS, half);
    const uint32_t first_row = tile_first_row(), first_column = tile_first_column();
    const matrix_columns columns = matrix_take(stage + TILE_SLAB, first_column, half);
    float da[MATRIX_LANE_COLUMNS];
    UNROLL
    for (uint32_t c = 0; c < MATRIX_LANE_COLUMNS; c++)
        da[c] = AT(of_columns, first_column + matrix_column(c));
    UNROLL
    for (uint32_t strip = 0; strip < TILE_STRIPS; strip++) {
        const uint32_t row = first_row + strip * MATRIX_STRIP;
        int32_t j[16];
        UNROLL
        for (uint32_t i = 0; i < 16; i++)
            j[i] = TILE_ONE_AND_A_HALF;
        matrix_strip(stage, row, half, &columns, j);
        UNROLL
        for (uint32_t i = 0; i < 16; i++) {
            const float d = AT(factors, row + matrix_strip_row(i / MATRIX_LANE_COLUMNS));
            float *to = acc + strip * 16 + i;
            *to = fma_f32(d * da[i % MATRIX_LANE_COLUMNS], canon_bits_float((uint32_t)j[i]) - 12582912.0f, *to);
        }
    }
}

/* Adds the products of its minima. */
DEVICE void tile_mins_small(const uint32_t *stage, uint32_t half, float *acc)
{
    const float *mins = tile_extras(stage, TILE_MINS, half), *of_columns = tile_extras(stage, TILE_COLUMN_FACTORS, half);
    const float *of_codes = tile_extras(stage, TILE_COLUMN_SUMS, half);
    float da[MATRIX_LANE_COLUMNS], sums[MATRIX_LANE_COLUMNS];
    UNROLL
    for (uint32_t c = 0; c < MATRIX_LANE_COLUMNS; c++) {
        const uint32_t line = tile_first_column() + matrix_column(c);
        da[c] = AT(of_columns, line);
        sums[c] = AT(of_codes, line);
    }
    UNROLL
    for (uint32_t i = 0; i < TILE_SUMS; i++) {
        const uint32_t c = i % MATRIX_LANE_COLUMNS;
        acc[i] = fma_f32(AT(mins, tile_row(i)) * da[c], sums[c], acc[i]);
    }
}

/* Both blocks of a stage. Minima of the first come before codes of the second. */
DEVICE void tile_stage_small(bool has_min, const uint32_t *stage, float *acc)
{
    TILE_HALVES
    for (uint32_t half = 0; half < 2; half++) {
        tile_codes_small(stage, half, acc);
        if (has_min)
            tile_mins_small(stage, half, acc);
    }
}

#define TILE_PUT_SMALL(from, next, stage)      tile_put_codes(1, from, next, stage)
#define TILE_STAGE_SMALL(has_min, stage, sums) tile_stage_small(has_min, stage, sums)

#endif

/* The current class: its steps, how many of them are left, and how many classes are parked. */
typedef struct tile_class {
    uint32_t steps, left, done;
} tile_class;

DEVICE void tile_step_done(const quant_tile_args *args, tile_class *of_class, float *acc)
{
    if (--of_class->left == 0) {
        tile_park(args, of_class->done++, false, NULL, acc);
        of_class->left = of_class->steps;
    }
}

/* Stages in a ring: the one to fill next, and the current one. */
typedef struct tile_ring {
    uint32_t filled, now;
} tile_ring;

DEVICE uint32_t tile_ring_next(const quant_tile_args *args, uint32_t stage)
{
    return stage + 1 == args->stages ? 0 : stage + 1;
}

/* Waits until the oldest stage is complete and nobody reads the one to fill next. */
DEVICE void tile_ring_wait(const quant_tile_args *args, uint32_t step)
{
    if (step + 1 >= args->stages)
        copies_wait((int32_t)args->stages - 2);
    barrier();
}

DEVICE void tile_run_block32_one_stage(bool has_min, const quant_tile_args *args, uint32_t *stage)
{
    const uint32_t steps_of_class = args->blocks_padded / QUANT_CLASSES / 2, steps = steps_of_class * args->classes;
    tile_source from = tile_source_of(args, BLOCK32_ELEMENTS / 4, BLOCK32_ELEMENTS / 4);
    tile_next next;
    float acc[TILE_SUMS];
    tile_clear(acc);
    tile_class of_class = {steps_of_class, steps_of_class, 0};
    tile_take(1, &from, &next);
    tile_take_extras(has_min, &from, &next);
    UNROLL_BY(1)
    for (uint32_t step = 0; step < steps; step++) {
        barrier_shared(); /* nobody reads the previous stage any more */
        TILE_PUT_SMALL(&from, &next, stage);
        tile_put_extras(has_min, &from, &next, stage);
        barrier_shared();
        if (step + 1 < steps) {
            tile_take(1, &from, &next);
            tile_take_extras(has_min, &from, &next);
        }
        TILE_STAGE_SMALL(has_min, stage, acc);
        tile_step_done(args, &of_class, acc);
    }
    tile_finish(args, acc);
}

DEVICE void tile_run_block32(bool has_min, const quant_tile_args *args, uint32_t *shared)
{
    if (TILE_ONE_STAGE(args)) {
        tile_run_block32_one_stage(has_min, args, shared);
        return;
    }
    const uint32_t steps_of_class = args->blocks_padded / QUANT_CLASSES / 2, steps = steps_of_class * args->classes;
    const uint32_t stage_words = QUANT_TILE_STAGE_WORDS + QUANT_TILE_BLOCK32_WORDS;
    tile_source from = tile_source_of(args, BLOCK32_ELEMENTS / 4, BLOCK32_ELEMENTS / 4);
    float acc[TILE_SUMS];
    tile_clear(acc);
    tile_ring ring = {0, 0};
    tile_class of_class = {steps_of_class, steps_of_class, 0};
    UNROLL_BY(1)
    for (uint32_t step = 0; step < steps + args->stages - 1; step++) {
        tile_ring_wait(args, step);
        if (step < steps) {
            uint32_t *stage = AT_RANGE(shared, ring.filled * stage_words, stage_words);
            tile_fetch_rows(&from, stage);
            tile_fetch_columns(&from, stage + TILE_SLAB);
            tile_fetch_extras(&from, stage);
        }
        copies_commit();
        ring.filled = tile_ring_next(args, ring.filled);
        if (step + 1 < args->stages)
            continue;
        const uint32_t *stage = AT_RANGE(shared, ring.now * stage_words, stage_words);
        TILE_STAGE_SMALL(has_min, stage, acc);
        ring.now = tile_ring_next(args, ring.now);
        tile_step_done(args, &of_class, acc);
    }
    tile_finish(args, acc);
}

/* ---- K blocks ------------------------------------------------------------------------------------------------------------ */

#if defined(MATRIX_BY_FOUR)

/* A quarter of a block: 64 elements of each row, first their upper bytes, then their lower ones, and 64 of each column. If
 * `begin`, the old values of j are ignored. */
DEVICE void tile_quarter(const bool begin, const uint32_t *stage, int32_t *j)
{
    const uint32_t first_row = tile_first_row() + lane() % 16, first_column = tile_first_column();
    matrix_pair columns[MATRIX_LANE_COLUMNS];
    UNROLL
    for (uint32_t c = 0; c < MATRIX_LANE_COLUMNS; c++)
        columns[c] = matrix_both(stage + 2 * TILE_SLAB, first_column + matrix_column(c));
    UNROLL
    for (uint32_t strip = 0; strip < TILE_STRIPS; strip++) {
        const matrix_pair upper = matrix_both(stage, first_row + strip * MATRIX_STRIP);
        const matrix_pair lower = matrix_both(stage + TILE_SLAB, first_row + strip * MATRIX_STRIP);
        matrix_four sums[MATRIX_LANE_COLUMNS];
        UNROLL
        for (uint32_t c = 0; c < MATRIX_LANE_COLUMNS; c++) {
            const matrix_four none = {0, 0, 0, 0};
            sums[c] = matrix_mfma_both(upper, columns[c], none);
        }
        UNROLL
        for (uint32_t c = 0; c < MATRIX_LANE_COLUMNS; c++) {
            int32_t *to = j + strip * 16 + c * 4;
            const matrix_four none = {0, 0, 0, 0}, before = {to[0], to[1], to[2], to[3]};
            sums[c] = sums[c] * 128 + (begin ? none : before);
            sums[c] = matrix_mfma_both(lower, columns[c], sums[c]);
            to[0] = sums[c].x;
            to[1] = sums[c].y;
            to[2] = sums[c].z;
            to[3] = sums[c].w;
        }
    }
}

/* Adds a block to all results: its codes, then its minima. */
DEVICE void tile_add_kblock(bool has_min, const quant_tile_args *args, const uint32_t *records, const int32_t *j, float *acc)
{
    const matrix_lines lie = tile_lines(TILE_SLABS(args)); /* always in planes here */
    const uint32_t first_column = tile_first_column();
    float da[MATRIX_LANE_COLUMNS];
    matrix_two low[MATRIX_LANE_COLUMNS], high[MATRIX_LANE_COLUMNS];
    UNROLL
    for (uint32_t c = 0; c < MATRIX_LANE_COLUMNS; c++) {
        const uint32_t column = first_column + matrix_column(c);
        const matrix_lines lie_high = {lie.stride, TILE_PLANE / 2};
        da[c] = tile_record_factor(true, records, QUANT_TILE + column, 0);
        low[c] = matrix_part_16(records, lie, QUANT_TILE + column);
        high[c] = matrix_part_16(records + TILE_HIGH_SUMS, lie_high, column);
    }
    UNROLL
    for (uint32_t strip = 0; strip < TILE_STRIPS; strip++) {
        const uint32_t row = tile_first_row() + strip * MATRIX_STRIP;
        const float *factors = (const float *)records + TILE_PLANE_FACTORS + 2 * (row + matrix_strip_row(0));
        const tile_four two = *(const tile_four *)factors, other = *(const tile_four *)(factors + 4);
        const tile_four d = {two.x, two.z, other.x, other.z}, dm = {two.y, two.w, other.y, other.w};
        const matrix_two m = matrix_row_part_16(records, lie, row + lane() % 16);
        UNROLL
        for (uint32_t c = 0; c < MATRIX_LANE_COLUMNS; c++) {
            const int32_t *four = j + strip * 16 + c * 4;
            const matrix_four none = {0, 0, 0, 0}, sums = {four[0], four[1], four[2], four[3]};
            tile_four_add(d, da[c], __builtin_convertvector(sums, tile_four), acc + strip * 16 + c * 4);
            if (!has_min)
                continue;
            const matrix_four of_min = matrix_mfma_four(m, low[c], matrix_mfma_four(m, high[c], none) * 128);
            tile_four_add(dm, da[c], __builtin_convertvector(of_min, tile_four), acc + strip * 16 + c * 4);
        }
    }
}

#else

/* A quarter of a block: 64 elements of each row, first their upper bytes, then their lower ones, and 64 of each column. If
 * `begin`, the old values of j are ignored. */
DEVICE void tile_quarter(const bool begin, const uint32_t *stage, int32_t *j)
{
    const uint32_t first_row = tile_first_row(), first_column = tile_first_column();
    matrix_columns columns[2];
    UNROLL
    for (uint32_t half = 0; half < 2; half++)
        columns[half] = matrix_take(stage + 2 * TILE_SLAB, first_column, half);
    UNROLL
    for (uint32_t strip = 0; strip < TILE_STRIPS; strip++) {
        const uint32_t row = first_row + strip * MATRIX_STRIP;
        int32_t upper[16];
        UNROLL
        for (uint32_t i = 0; i < 16; i++)
            upper[i] = 0;
        UNROLL
        for (uint32_t half = 0; half < 2; half++)
            matrix_strip(stage, row, half, &columns[half], upper);
        UNROLL
        for (uint32_t i = 0; i < 16; i++)
            j[strip * 16 + i] = (begin ? 0 : j[strip * 16 + i]) + upper[i] * 128;
        UNROLL
        for (uint32_t half = 0; half < 2; half++)
            matrix_strip(stage + TILE_SLAB, row, half, &columns[half], j + strip * 16);
    }
}

/* Adds the products of a block's codes to all results. */
DEVICE void tile_codes_kblock(bool planes, const uint32_t *records, const int32_t *j, float *acc)
{
    UNROLL
    for (uint32_t i = 0; i < TILE_SUMS; i++) {
        const float d = tile_record_factor(planes, records, tile_row(i), 0);
        const float da = tile_record_factor(planes, records, QUANT_TILE + tile_column(i), 0);
        acc[i] = fma_f32(d * da, (float)j[i], acc[i]);
    }
}

/* Adds the products of its minima. */
DEVICE void tile_mins_kblock(bool planes, const uint32_t *records, float *acc)
{
    const matrix_lines lie = tile_lines(planes), lie_high = {lie.stride, lie.half / (planes ? 2 : 1)};
    const uint32_t *low_sums = AT_RANGE(records, (QUANT_TILE + tile_first_column()) * lie.stride, 4);
    const uint32_t *high_sums = planes ? AT_RANGE(records, TILE_HIGH_SUMS + tile_first_column() * lie.stride, 4) : low_sums + 4;
    UNROLL
    for (uint32_t strip = 0; strip < TILE_STRIPS; strip++) {
        wave_barrier(); /* keeps the loads of a strip after the previous one has released its registers */
        const uint32_t row = tile_first_row() + strip * MATRIX_STRIP;
        const uint32_t *of_rows = AT_RANGE(records, row * lie.stride, 4);
        int32_t low[16], high[16];
        UNROLL
        for (uint32_t i = 0; i < 16; i++)
            low[i] = high[i] = 0;
        matrix_strip_16(of_rows, low_sums, lie, lie, low);
        matrix_strip_16(of_rows, high_sums, lie, lie_high, high);
        UNROLL
        for (uint32_t i = 0; i < 16; i++) {
            const uint32_t at = strip * 16 + i;
            const float dm = tile_record_factor(planes, records, tile_row(at), 1);
            const float da = tile_record_factor(planes, records, QUANT_TILE + tile_column(at), 0);
            acc[at] = fma_f32(dm * da, (float)(low[i] + 128 * high[i]), acc[at]);
        }
    }
}

DEVICE void tile_add_kblock(bool has_min, const quant_tile_args *args, const uint32_t *records, const int32_t *j, float *acc)
{
    tile_codes_kblock(TILE_SLABS(args), records, j, acc);
    if (has_min)
        tile_mins_kblock(TILE_SLABS(args), records, acc);
}

#endif

DEVICE void tile_run_kblock_one_stage(bool has_min, const quant_tile_args *args, uint32_t *shared)
{
    const uint32_t blocks_of_class = args->blocks_padded / QUANT_CLASSES, blocks = blocks_of_class * args->classes;
    uint32_t *stage = AT_RANGE(shared, QUANT_TILE_PLANES_WORDS, QUANT_TILE_KBLOCK_WORDS);
    tile_source from = tile_source_of(args, 2 * KBLOCK_ELEMENTS / 4, KBLOCK_ELEMENTS / 4);
    tile_next next;
    float acc[TILE_SUMS];
    int32_t j[TILE_SUMS];
    tile_clear(acc);
    tile_class of_class = {blocks_of_class, blocks_of_class, 0};
    tile_take(2, &from, &next);
    UNROLL_BY(1)
    for (uint32_t block = 0; block < blocks; block++) {
        const tile_record record = tile_take_record(has_min, args, tile_first_place(args) + block);
        barrier_shared(); /* nobody reads the previous stage and records any more */
        tile_put_codes(2, &from, &next, stage);
        tile_put_record(has_min, &record, shared);
        barrier_shared();
        tile_take(2, &from, &next);
        tile_quarter(true, stage, j);
        UNROLL_BY(1)
        for (uint32_t quarter = 1; quarter < 4; quarter++) {
            barrier_shared();
            tile_put_codes(2, &from, &next, stage);
            barrier_shared();
            if (quarter < 3 || block + 1 < blocks)
                tile_take(2, &from, &next);
            tile_quarter(false, stage, j);
        }
        tile_add_kblock(has_min, args, shared, j, acc);
        tile_step_done(args, &of_class, acc);
    }
    tile_finish(args, acc);
}

/* The records of a block, stored before the stages, are needed with its last quarter. Their copy starts with its first quarter:
 * by then the records of the previous block are no longer used, and at most three groups of copies follow. */
DEVICE void tile_run_kblock(bool has_min, const quant_tile_args *args, uint32_t *shared)
{
    if (TILE_ONE_STAGE(args)) {
        tile_run_kblock_one_stage(has_min, args, shared);
        return;
    }
    const bool planes = TILE_SLABS(args);
    const uint32_t steps_of_class = args->blocks_padded / QUANT_CLASSES * 4, steps = steps_of_class * args->classes;
    const uint32_t stage_words = QUANT_TILE_KBLOCK_WORDS;
    uint32_t *stages = shared + (planes ? QUANT_TILE_PLANES_WORDS : QUANT_TILE_RECORD_WORDS);
    tile_source from = tile_source_of(args, 2 * KBLOCK_ELEMENTS / 4, KBLOCK_ELEMENTS / 4);
    float acc[TILE_SUMS];
    int32_t j[TILE_SUMS];
    tile_clear(acc);
    UNROLL
    for (uint32_t i = 0; i < TILE_SUMS; i++)
        j[i] = 0;
    tile_ring ring = {0, 0};
    tile_class of_class = {steps_of_class, steps_of_class, 0};
    uint32_t worked = 0;
    UNROLL_BY(1)
    for (uint32_t step = 0; step < steps + args->stages - 1; step++) {
        tile_ring_wait(args, step);
        if (step < steps) {
            uint32_t *stage = AT_RANGE(stages, ring.filled * stage_words, stage_words);
            tile_fetch_rows(&from, stage);
            tile_fetch_rows(&from, stage + TILE_SLAB);
            tile_fetch_columns(&from, stage + 2 * TILE_SLAB);
        }
        if (step + 1 >= args->stages && worked % 4 == 0)
            tile_fetch_records(has_min, args, tile_first_place(args) + worked / 4, shared);
        copies_commit();
        ring.filled = tile_ring_next(args, ring.filled);
        if (step + 1 < args->stages)
            continue;
        tile_quarter(false, AT_RANGE(stages, ring.now * stage_words, stage_words), j);
        if (worked % 4 == 3) {
            tile_add_kblock(has_min, args, shared, j, acc);
            UNROLL
            for (uint32_t i = 0; i < TILE_SUMS; i++)
                j[i] = 0;
        }
        worked++;
        ring.now = tile_ring_next(args, ring.now);
        tile_step_done(args, &of_class, acc);
    }
    tile_finish(args, acc);
}

/* Blocks of 32 with minima have a separate kernel. A joint one would spill on gfx12 and cost gfx90a one thread block per
 * compute unit. */
TILE_KERNEL(quant_tile_block32, tile_run_block32(false, &args, shared))
TILE_KERNEL(quant_tile_block32_min, tile_run_block32(true, &args, shared))
TILE_KERNEL(quant_tile_kblock, args.has_min ? tile_run_kblock(true, &args, shared) : tile_run_kblock(false, &args, shared))
TILE_FOLD_KERNEL(quant_tile_fold)
