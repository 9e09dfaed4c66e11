/* Quantized storage on the CPU: what its files share. */
#ifndef WW_CPU_QUANT_QUANT_H
#define WW_CPU_QUANT_QUANT_H

#include "cpu/cpu.h"
#include "cpu/quant/quant_set.h"
#include "device/quant_jobs.h"

extern const quant_backend cpu_quants;

/* Returns the best way to work on blocks that an instruction set has and this machine supports. */
const quant_set *quant_set_choose(const instruction_set *set);

ww_status cpu_quant_product(ww_device *device, const quant_product_job *job);

/* The same with a given way instead of the device's, for tests. */
ww_status quant_product_with(cpu_device *cpu, const quant_set *set, const quant_product_job *job);

#endif
