/* The tables of AMX: its files fill them, and amx.c combines them with those of AVX-512. */
#ifndef WW_CPU_ISA_AMX_AMX_H
#define WW_CPU_ISA_AMX_AMX_H

#include "cpu/isa/isa.h"
#include "cpu/matmul/matmul.h"
#include "cpu/quant/quant_set.h"
#include "cpu/tensor/element_loops.h"
#include "cpu/tensor/row_loops.h"

extern const screen_products products_amx;
extern const matmul_tiles matmul_tiles_amx;
extern const quant_product quant_products_amx[BLOCK_TYPES];

/* Called before a thread's first product of blocks of a format, and after its last. */
void quant_amx_begin(int32_t type);
void quant_amx_end(void);

#endif
