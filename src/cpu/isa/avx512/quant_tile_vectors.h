/* Sixteen lanes of products of codes with AVX-512 VNNI, for cpu/quant/tile_vectors.h. */
#ifndef WW_CPU_ISA_AVX512_QUANT_TILE_VECTORS_H
#define WW_CPU_ISA_AVX512_QUANT_TILE_VECTORS_H

#include <immintrin.h>

#include "cpu/quant/dot_types.h"

#define TILE_VECTORS
#define TILE_TOGETHER 4
#ifndef TILE_FLIP
#define TILE_FLIP 0x80808080u /* the instruction needs unsigned weights */
#endif

DOT_FUNCTION tile_lanes tile_unsigned(tile_lanes sum, tile_lanes weights, int32_t activations)
{
    return (tile_lanes)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)weights, _mm512_set1_epi32(activations));
}
DOT_FUNCTION tile_lanes tile_signed(tile_lanes sum, tile_lanes weights, int32_t activations)
{
    return tile_unsigned(sum, weights, activations);
}
DOT_FUNCTION tile_lanes tile_pairs(tile_lanes sum, tile_lanes a, int32_t b)
{
    return (tile_lanes)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)a, _mm512_set1_epi32(b));
}
DOT_FUNCTION tile_floats tile_fma(tile_floats a, tile_floats b, tile_floats c)
{
    return (tile_floats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}

#endif
