/* Quantized matrices on a GPU: the table of device/quant_jobs.h. */
#ifndef WW_GPU_QUANT_QUANT_H
#define WW_GPU_QUANT_QUANT_H

#include "device/quant_jobs.h"

extern const quant_backend gpu_quants;

ww_status gpu_quant_product(ww_device *base, const quant_product_job *job);
bool gpu_quant_takes(const quant_product_job *job);
bool gpu_quant_fuses(ww_device *base, const quant_product_job *job);

#endif
