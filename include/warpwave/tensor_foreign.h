/* Tensors, continued: exchanging memory with other libraries, by address or by DLPack. Nothing is copied.
 *
 * Streams are the vendor's own handles (CUstream, hipStream_t). NULL is the vendor's default stream, WW_STREAM_NONE says that
 * there is nothing to wait for. Tensor operations are queued on a stream of the device, in the primary context of the GPU,
 * which other libraries use, too, so addresses are valid in both. On a CPU streams are ignored.
 */
#ifndef WARPWAVE_TENSOR_FOREIGN_H
#define WARPWAVE_TENSOR_FOREIGN_H

#include <warpwave/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* DLPack's: in warpwave/dlpack.h, or DLPack's own header. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;

/* No stream: nothing waits. */
#define WW_STREAM_NONE ((void *)-1)

/* ---- streams ------------------------------------------------------------------------------------------------------------- */

/* The stream of the device's tensor operations; NULL on a CPU. It belongs to the device: others may record events on it and
 * make it wait for events. */
WW_API ww_status ww_device_stream(ww_device *device, void **stream);

/* The first makes tensor operations that are queued from now on wait for what is on `stream` now. The second makes `stream`
 * wait for the tensor operations that are queued now. The host does not wait. */
WW_API ww_status ww_device_wait_stream(ww_device *device, void *stream);
WW_API ww_status ww_device_signal_stream(ww_device *device, void *stream);

/* ---- memory of others ---------------------------------------------------------------------------------------------------- */

/* Memory that another library owns; begin with ww_foreign_default(). */
typedef struct ww_foreign {
    size_t struct_size;
    void *data; /* on the device; on the host for a CPU. Aligned to the type */
    ww_dtype dtype;
    ww_layout layout;             /* element 0 of the storage is at `data` */
    int32_t read_only;            /* not 0: refused as a tensor that is written to */
    void *stream;                 /* on which it is being written: our work waits for what is queued there now */
    void (*release)(void *owner); /* may be NULL */
    void *owner;
} ww_foreign;

/* `stream` is WW_STREAM_NONE, everything else 0. */
WW_API ww_status ww_foreign_init(void *value, size_t struct_size);
static inline ww_foreign ww_foreign_default(void)
{
    ww_foreign value;
    ww_foreign_init(&value, sizeof value);
    return value;
}

/* Makes `out`, which must be empty, a tensor on that memory. When it and all views of it are released, the library
 * waits for the work queued on the device and calls `release` once, on the thread that released the last. A refused call does
 * not call it. */
WW_API ww_status ww_tensor_wrap(ww_device *device, const ww_foreign *foreign, ww_tensor *out);

/* The address of a tensor's first element, on its device. Before you use it, make your stream wait (ww_device_signal_stream());
 * before the next tensor operation uses what you wrote, make ours wait (ww_device_wait_stream()). Keep the tensor until then;
 * its memory is not reused before the device has finished with it. NULL for a tensor without elements. */
WW_API ww_status ww_tensor_data(const ww_tensor *x, void **data);

/* ---- DLPack ----------------------------------------------------------------------------------------------------------------
 *
 * Devices: cpu is kDLCPU (and takes kDLCUDAHost and kDLROCMHost), cuda kDLCUDA (and takes kDLCUDAManaged and kDLCUDAHost), rocm
 * kDLROCM (and takes kDLROCMHost), by their index; emulated devices are kDLExtDev. bool becomes u8. */

/* Gives a tensor to others: `stream`, the consumer's, waits for what is queued on the device. The export keeps storage and
 * device until its deleter is called, on any thread, also after ww_device_close(). An unversioned one cannot say that a tensor
 * is read-only: that is refused. */
WW_API ww_status ww_tensor_to_dlpack(const ww_tensor *x, void *stream, struct DLManagedTensorVersioned **managed);
WW_API ww_status ww_tensor_to_dlpack_unversioned(const ww_tensor *x, void *stream, struct DLManagedTensor **managed);

/* Makes `out`, which must be empty, a tensor on memory of others: our work waits for what is on `stream` now, the producer's
 * (or, if that was given our stream and waits there itself, WW_STREAM_NONE). The deleter is called as ww_tensor_wrap() says.
 * Refuses, with the reason, another version than 1.x, a device that is not this one, types that the library does not have,
 * lanes, negative strides, addresses that are not aligned to the type; `managed` then stays the caller's. */
WW_API ww_status ww_tensor_from_dlpack(ww_device *device, struct DLManagedTensorVersioned *managed, void *stream,
                                       ww_tensor *out);
WW_API ww_status ww_tensor_from_dlpack_unversioned(ww_device *device, struct DLManagedTensor *managed, void *stream,
                                                   ww_tensor *out);

/* For bindings to CPython, where exports are handed on in capsules called "dltensor_versioned" and "dltensor". The destructor
 * of such a capsule may run where no Python code can, for example at exit, so it is here: it calls the deleter of an export
 * that was not consumed. The library is not linked with Python: it is given Python's PyCapsule_IsValid and PyCapsule_GetPointer
 * first, once for the process. Refuses NULL. Before that, and for any other capsule, the destructor does nothing. */
WW_API ww_status ww_dlpack_capsules(int (*is_valid)(void *capsule, const char *name),
                                    void *(*get_pointer)(void *capsule, const char *name));
WW_API void ww_dlpack_capsule_destroy(void *capsule);

#ifdef __cplusplus
}
#endif

#endif
