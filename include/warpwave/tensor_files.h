/* Tensors, continued: from .npy and .safetensors files onto a device.
 *
 * The files are checked and read as warpwave/arrays.h says: large ones in pieces, each piece by several threads, so that the
 * host never holds more than a piece of an array. bool becomes u8. Types that tensors do not have (u16, u64, ...) are refused
 * by name. `out` is filled as by operations (tensor.h). If the file cannot be read to its end, an `out` with a storage may be
 * partly written.
 */
#ifndef WARPWAVE_TENSOR_FILES_H
#define WARPWAVE_TENSOR_FILES_H

#include <warpwave/arrays.h>
#include <warpwave/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The array in the .npy at `path`. Blocks. */
WW_API ww_status ww_tensor_load_npy(ww_device *device, const char *path, ww_tensor *out);

/* The tensor called `name` in the .safetensors at `path`. WW_NOT_FOUND if there is none. Blocks. */
WW_API ww_status ww_tensor_load_safetensors(ww_device *device, const char *path, const char *name, ww_tensor *out);

/* Tensor number `index` of an open file. Blocks. */
WW_API ww_status ww_safetensors_load(const ww_safetensors *file, int64_t index, ww_device *device, ww_tensor *out);

/* All tensors of an open file, in their order: `out` has room for ww_safetensors_count() of them. If one cannot be loaded,
 * those that were are released again. Blocks. */
WW_API ww_status ww_safetensors_load_all(const ww_safetensors *file, ww_device *device, ww_tensor *out);

#ifdef __cplusplus
}
#endif

#endif
