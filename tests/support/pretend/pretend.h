/* Makes devices pretend: an emulated GPU to be a chip whose kernels it would not choose, and any GPU to have constants small
 * enough for a test's rows. On a CPU only pretend_screen() has an effect. None of this is in the library: it overwrites what
 * src/gpu/chip.c says of the chip.
 */
#ifndef TESTS_PRETEND_H
#define TESTS_PRETEND_H

#include <stdbool.h>
#include <stdint.h>

#include <warpwave/vectors.h>

#include "device/tuning.h"

/* The settings of a device, for reading and writing; all zero means that it chooses. */
device_tuning *pretend_tuning(ww_device *device);

/* Screens every search that has codes, even with few rows, with the smallest sample and with high planes; false: no longer. */
void pretend_screen(ww_device *device, bool always);

/* Makes screens use three stages, even with few rows. */
void pretend_three_stages(ww_device *device, bool always);

/* wgmma and the copy engine; a real device has them only if it does. */
void pretend_sm_90a(ww_device *device, bool has);

/* Blocks of any size for the kernels that the copy engine feeds, and from one query on. */
void pretend_small_streams(ww_device *device);

/* MFMA with waves of any size. */
void pretend_mfma(ww_device *device, bool has);

/* Enables the kernels that code the one column that they multiply. */
void pretend_gemv_one(ww_device *device, bool has);

/* Number of thread blocks that share a row of a quantized gemv; 0: the fastest choice. */
void pretend_gemv_splits(ww_device *device, int32_t splits);

/* No convolutions as each output sees them, as on AMD's chips. */
void pretend_no_mma(ww_device *device);

/* Treats every tensor as too large for 32-bit indices. */
void pretend_large_tensors(ww_device *device, bool large);

/* Makes the device what it really is. */
void pretend_nothing(ww_device *device);

/* Multiplies the screen's bound for each row of a collection by a factor below 1. */
void shrink_bounds(ww_collection *collection, float factor);

#endif
