/* The tables of AVX-512: its files fill them, and avx512.c combines them. */
#ifndef WW_CPU_ISA_AVX512_AVX512_H
#define WW_CPU_ISA_AVX512_AVX512_H

#include "cpu/attention/attention_loops.h"
#include "cpu/isa/isa.h"
#include "cpu/matmul/matmul.h"
#include "cpu/quant/quant_set.h"
#include "cpu/tensor/element_loops.h"
#include "cpu/tensor/row_loops.h"

extern const screen_products products_avx512_vnni;
extern const element_loops element_loops_avx512;
extern const row_loops row_loops_avx512;
extern const attention_loops attention_loops_avx512;
extern const matmul_tiles matmul_tiles_avx512;
extern const quant_coder quant_coders_avx512[BLOCK_TYPES];
extern const quant_product quant_products_vnni[BLOCK_TYPES];

#endif
