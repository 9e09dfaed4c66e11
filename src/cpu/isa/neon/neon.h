/* The tables of NEON: its files fill them, and neon.c combines them. Also finds the optional instructions of Arm processors. */
#ifndef WW_CPU_ISA_NEON_NEON_H
#define WW_CPU_ISA_NEON_NEON_H

#include "cpu/attention/attention_loops.h"
#include "cpu/isa/isa.h"
#include "cpu/matmul/matmul.h"
#include "cpu/quant/quant_set.h"
#include "cpu/tensor/element_loops.h"
#include "cpu/tensor/row_loops.h"

extern const screen_products products_neon, products_dotprod, products_i8mm;
extern const element_loops element_loops_neon;
extern const row_loops row_loops_neon;
extern const attention_loops attention_loops_neon;
extern const matmul_tiles matmul_tiles_neon;
extern const quant_coder quant_coders_neon[BLOCK_TYPES];
extern const quant_product quant_products_neon[BLOCK_TYPES], quant_products_dotprod[BLOCK_TYPES],
    quant_products_i8mm[BLOCK_TYPES];

/* Return true if this machine has SDOT, and SMMLA. */
bool neon_has_dotprod(void);
bool neon_has_i8mm(void);

#endif
