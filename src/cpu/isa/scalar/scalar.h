/* The tables of the scalar set: its files fill them, and scalar.c combines them. */
#ifndef WW_CPU_ISA_SCALAR_SCALAR_H
#define WW_CPU_ISA_SCALAR_SCALAR_H

#include "cpu/attention/attention_loops.h"
#include "cpu/isa/isa.h"
#include "cpu/matmul/matmul.h"
#include "cpu/quant/quant_set.h"
#include "cpu/tensor/element_loops.h"
#include "cpu/tensor/row_loops.h"

extern const screen_products products_scalar;
extern const element_loops element_loops_scalar;
extern const row_loops row_loops_scalar;
extern const attention_loops attention_loops_scalar;
extern const matmul_tiles matmul_tiles_scalar;
extern const quant_coder quant_coders_scalar[BLOCK_TYPES];
extern const quant_product quant_products_scalar[BLOCK_TYPES];

#endif
