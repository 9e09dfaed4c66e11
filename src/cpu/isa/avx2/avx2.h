/* The tables of AVX2: its files fill them, and avx2.c combines them. */
#ifndef WW_CPU_ISA_AVX2_AVX2_H
#define WW_CPU_ISA_AVX2_AVX2_H

#include "cpu/attention/attention_loops.h"
#include "cpu/isa/isa.h"
#include "cpu/matmul/matmul.h"
#include "cpu/quant/quant_set.h"
#include "cpu/tensor/element_loops.h"
#include "cpu/tensor/row_loops.h"

extern const screen_products products_avx2, products_avx_vnni;
extern const element_loops element_loops_avx2;
extern const row_loops row_loops_avx2;
extern const attention_loops attention_loops_avx2;
extern const matmul_tiles matmul_tiles_avx2;
extern const quant_coder quant_coders_avx2[BLOCK_TYPES];
extern const quant_product quant_products_avx2[BLOCK_TYPES];

#endif
