/* The tiles of an instruction set, written once with the vectors that its matmul.c defines before it includes this.
 *
 * In each step of k, a tile loads its columns as a few vectors and multiplies them with each of its rows, one number at a time.
 * The sums, ROWS x VECTORS vectors, stay in registers.
 */
#ifndef WW_CPU_MATMUL_TILE_TEMPLATE_H
#define WW_CPU_MATMUL_TILE_TEMPLATE_H

#include <stddef.h>

#include "cpu/isa/convert_half.h"
#include "cpu/matmul/matmul.h"

#define MATMUL_UNROLL _Pragma("GCC unroll 16")

/* The macros after F32_LANES are more fields of the table. NAME: f32, f64, i8. PACKED: the type of panels, with STEP elements
 * for each row or column and step. */
/* NOLINTBEGIN(bugprone-macro-parentheses): types */
#define MATMUL_TILE(NAME, PACKED, STEP, RESULT, VECTOR, LANES, ROWS, VECTORS)                                                  \
    static void tile_##NAME(const PACKED *a, const PACKED *b, int64_t k, RESULT *c, int64_t stride, int32_t which)             \
    {                                                                                                                          \
        VECTOR acc[ROWS][VECTORS];                                                                                             \
        MATMUL_UNROLL for (int r = 0; r < ROWS; r++) MATMUL_UNROLL for (int v = 0; v < VECTORS; v++) acc[r][v] =               \
            NAME##_zero();                                                                                                     \
        MATMUL_UNROLL for (int r = 0; r < ROWS; r++) MATMUL_UNROLL for (int v = 0; v < VECTORS; v++)                           \
            __builtin_prefetch(c + r * stride + v * (LANES), 1, 2);                                                            \
        _Pragma("GCC unroll 2") for (int64_t i = 0; i < k; i++)                                                                \
        {                                                                                                                      \
            VECTOR column[VECTORS];                                                                                            \
            MATMUL_UNROLL for (int v = 0; v < VECTORS; v++) column[v] = NAME##_load_panel(b + v * (LANES) * (STEP));           \
            MATMUL_UNROLL for (int v = 0; v < VECTORS; v++) __builtin_prefetch(b + (16 * VECTORS + v) * (LANES) * (STEP));     \
            __builtin_prefetch(a + 24 * (ROWS) * (STEP));                                                                      \
            MATMUL_UNROLL for (int r = 0; r < ROWS; r++)                                                                       \
            {                                                                                                                  \
                const VECTOR row = NAME##_set(a + r * (STEP));                                                                 \
                MATMUL_UNROLL for (int v = 0; v < VECTORS; v++) acc[r][v] = NAME##_fma(row, column[v], acc[r][v]);             \
            }                                                                                                                  \
            a += (ROWS) * (STEP);                                                                                              \
            b += (VECTORS) * (LANES) * (STEP);                                                                                 \
        }                                                                                                                      \
        MATMUL_UNROLL for (int r = 0; r < ROWS; r++) MATMUL_UNROLL for (int v = 0; v < VECTORS; v++)                           \
        {                                                                                                                      \
            RESULT *at = c + r * stride + v * (LANES);                                                                         \
            VECTOR total = NAME##_add(which & MATMUL_FIRST ? NAME##_zero() : NAME##_load(at), acc[r][v]);                      \
            if (which & MATMUL_LAST)                                                                                           \
                total = NAME##_one_nan(total);                                                                                 \
            NAME##_store(at, total);                                                                                           \
        }                                                                                                                      \
    }

/* A set with a better tile_f32 defines this as nothing before. */
#ifndef MATMUL_TILE_F32
#define MATMUL_TILE_F32(LANES, ROWS, VECTORS) MATMUL_TILE(f32, float, 1, float, f32_vector, LANES, ROWS, VECTORS)
#endif

#define MATMUL_TILES(SET, F32_ROWS, F32_VECTORS, F32_LANES, ...)                                                               \
    MATMUL_TILE_F32(F32_LANES, F32_ROWS, F32_VECTORS)                                                                          \
    MATMUL_TILE(f64, double, 1, double, f64_vector, (F32_LANES) / 2, F32_ROWS, F32_VECTORS)                                    \
    MATMUL_TILE(i8, int16_t, 2, int32_t, i8_vector, F32_LANES, F32_ROWS, F32_VECTORS)                                          \
    const matmul_tiles SET = {.shape_f32 = {F32_ROWS, (F32_VECTORS) * (F32_LANES)},                                            \
                              .shape_f64 = {F32_ROWS, (F32_VECTORS) * (F32_LANES) / 2},                                        \
                              .shape_i8 = {F32_ROWS, (F32_VECTORS) * (F32_LANES)},                                             \
                              .f32 = tile_f32,                                                                                 \
                              .f64 = tile_f64,                                                                                 \
                              .i8 = tile_i8,                                                                                   \
                              .widen_f16 = widen_f16_many,                                                                     \
                              .widen_bf16 = widen_bf16_many,                                                                   \
                              .narrow_f16 = narrow_f16_many,                                                                   \
                              .narrow_bf16 = narrow_bf16_many,                                                                 \
                              __VA_ARGS__};
/* NOLINTEND(bugprone-macro-parentheses) */

#endif
