/* DLPack: converts tensors to and from the structs with which libraries exchange memory, versioned and unversioned. */
#include <warpwave/dlpack.h>

#include <string.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "tensor/foreign.h"

enum { FLOAT8_E4M3FN = 10, READ_ONLY = 1 }; /* numbers of DLPack */

/* ---- types and devices --------------------------------------------------------------------------------------------------- */

static const struct {
    ww_dtype ours;
    uint8_t code, bits;
} types[] = {
    {WW_U8, kDLUInt, 8},      {WW_U32, kDLUInt, 32},         {WW_I16, kDLInt, 16},
    {WW_I32, kDLInt, 32},     {WW_I64, kDLInt, 64},          {WW_I8, kDLInt, 8},
    {WW_F16, kDLFloat, 16},   {WW_F32, kDLFloat, 32},        {WW_F64, kDLFloat, 64},
    {WW_BF16, kDLBfloat, 16}, {WW_F8E4M3, FLOAT8_E4M3FN, 8}, {WW_U8, kDLBool, 8}, /* only imported: u8 comes first */
};

static bool type_of_dlpack(DLDataType from, ww_dtype *out)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].code == from.code && types[i].bits == from.bits && from.lanes == 1) {
            *out = types[i].ours;
            return true;
        }
    return false;
}

static DLDataType type_to_dlpack(ww_dtype from)
{
    size_t i = 0;
    while (types[i].ours != from)
        i++;
    return (DLDataType){.code = types[i].code, .bits = types[i].bits, .lanes = 1};
}

static DLDevice device_to_dlpack(const ww_device *device)
{
    const char *kind = device->backend->name;
    if (strcmp(kind, "cpu") == 0)
        return (DLDevice){kDLCPU, 0};
    const DLDeviceType type = strcmp(kind, "cuda") == 0 ? kDLCUDA : strcmp(kind, "rocm") == 0 ? kDLROCM : kDLExtDev;
    return (DLDevice){type, device->info.index};
}

/* Pinned memory belongs to the host and every GPU, managed memory to every NVIDIA GPU. */
static bool device_takes(const ww_device *device, DLDevice from)
{
    const DLDevice own = device_to_dlpack(device);
    switch ((int)from.device_type) {
    case kDLCPU:
        return own.device_type == kDLCPU;
    case kDLCUDAHost:
        return own.device_type == kDLCPU || own.device_type == kDLCUDA;
    case kDLROCMHost:
        return own.device_type == kDLCPU || own.device_type == kDLROCM;
    case kDLCUDAManaged:
        return own.device_type == kDLCUDA;
    default:
        return from.device_type == own.device_type && from.device_id == own.device_id;
    }
}

/* ---- exporting ----------------------------------------------------------------------------------------------------------- */

/* An export: the struct that others see, versioned or not, and what it points to. */
typedef struct export
{
    union {
        DLManagedTensorVersioned versioned;
        DLManagedTensor plain;
    } managed;
    ww_storage *storage; /* retained */
    int64_t shape[WW_RANK_MAX], strides[WW_RANK_MAX];
}
export;

static void export_end(export *e)
{
    ww_storage_release(e->storage);
    memory_free(e);
}

static void delete_versioned(struct DLManagedTensorVersioned *self)
{
    if (self)
        export_end(self->manager_ctx);
}

static void delete_plain(struct DLManagedTensor *self)
{
    if (self)
        export_end(self->manager_ctx);
}

/* Fills in everything except the struct around the tensor. */
static ww_status export_begin(const char *operation, const ww_tensor *x, void *stream, export **out, DLTensor *made)
{
    void *data;
    ww_status status = check_tensor(operation, "x", x);
    if (status != WW_OK)
        return status;
    export *e = memory_alloc_zeroed(1, sizeof *e);
    if (!e)
        return memory_failed("an export", sizeof *e);
    ww_device *device = x->storage->device;
    status = ww_tensor_data(x, &data);
    if (status == WW_OK)
        status = tensors_of(device)->signal_stream(device, stream);
    if (status != WW_OK) {
        memory_free(e);
        return status;
    }
    e->storage = ww_storage_retain(x->storage);
    memcpy(e->shape, x->layout.shape, sizeof e->shape);
    memcpy(e->strides, x->layout.strides, sizeof e->strides);
    *made = (DLTensor){.data = data,
                       .device = device_to_dlpack(device),
                       .ndim = x->layout.rank,
                       .dtype = type_to_dlpack(x->storage->dtype),
                       .shape = e->shape,
                       .strides = e->strides};
    *out = e;
    return WW_OK;
}

ww_status ww_tensor_to_dlpack(const ww_tensor *x, void *stream, struct DLManagedTensorVersioned **managed)
{
    FLOAT_GUARD();
    export *e;
    DLTensor tensor;
    if (!managed)
        return ww_fail(WW_INVALID_ARGUMENT, "to_dlpack: managed is NULL");
    *managed = NULL;
    const ww_status status = export_begin("to_dlpack", x, stream, &e, &tensor);
    if (status != WW_OK)
        return status;
    e->managed.versioned = (DLManagedTensorVersioned){.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
                                                      .manager_ctx = e,
                                                      .deleter = delete_versioned,
                                                      .flags = x->storage->read_only ? READ_ONLY : 0,
                                                      .dl_tensor = tensor};
    *managed = &e->managed.versioned;
    return WW_OK;
}

ww_status ww_tensor_to_dlpack_unversioned(const ww_tensor *x, void *stream, struct DLManagedTensor **managed)
{
    FLOAT_GUARD();
    export *e;
    DLTensor tensor;
    if (!managed)
        return ww_fail(WW_INVALID_ARGUMENT, "to_dlpack_unversioned: managed is NULL");
    *managed = NULL;
    ww_status status = check_tensor("to_dlpack_unversioned", "x", x);
    if (status == WW_OK && x->storage->read_only)
        status = ww_fail(WW_UNSUPPORTED, "to_dlpack_unversioned: x is read-only, which only a versioned struct can say");
    if (status == WW_OK)
        status = export_begin("to_dlpack_unversioned", x, stream, &e, &tensor);
    if (status != WW_OK)
        return status;
    e->managed.plain = (DLManagedTensor){.dl_tensor = tensor, .manager_ctx = e, .deleter = delete_plain};
    *managed = &e->managed.plain;
    return WW_OK;
}

/* ---- importing ----------------------------------------------------------------------------------------------------------- */

/* Fills in `foreign`, except for the owner. */
static ww_status read_tensor(const char *operation, const ww_device *device, const DLTensor *from, ww_foreign *foreign)
{
    if (!device_takes(device, from->device))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the tensor is on DLPack's device %d:%d, which is not %s (%d:%d)", operation,
                       (int)from->device.device_type, (int)from->device.device_id, device->info.id,
                       (int)device_to_dlpack(device).device_type, (int)device_to_dlpack(device).device_id);
    if (!type_of_dlpack(from->dtype, &foreign->dtype))
        return ww_fail(WW_UNSUPPORTED, "%s: elements of DLPack's type %d with %d bits and %d lanes; there is no such type here",
                       operation, (int)from->dtype.code, (int)from->dtype.bits, (int)from->dtype.lanes);
    if (from->ndim < 0 || from->ndim > WW_RANK_MAX || (from->ndim > 0 && !from->shape))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the tensor has rank %d%s; it must be 0 to %d", operation, (int)from->ndim,
                       from->ndim > 0 && !from->shape ? " and no shape" : "", WW_RANK_MAX);
    foreign->layout = ww_layout_contiguous(from->ndim, from->shape);
    const bool none = ww_layout_elements(&foreign->layout) == 0;
    for (int32_t d = 0; d < from->ndim && from->strides && !none; d++) {
        if (from->strides[d] < 0 && from->shape[d] > 1)
            return ww_fail(WW_UNSUPPORTED, "%s: the tensor has shape %s and strides %s; strides must not be negative",
                           operation, shape_to_text(from->ndim, from->shape).text,
                           shape_to_text(from->ndim, from->strides).text);
        foreign->layout.strides[d] = from->shape[d] > 1 ? from->strides[d] : foreign->layout.strides[d];
    }
    foreign->data = from->data ? (char *)from->data + from->byte_offset : NULL;
    return WW_OK;
}

static void release_versioned(void *owner)
{
    struct DLManagedTensorVersioned *managed = owner;
    if (managed->deleter)
        managed->deleter(managed);
}

static void release_plain(void *owner)
{
    struct DLManagedTensor *managed = owner;
    if (managed->deleter)
        managed->deleter(managed);
}

static ww_status check_import(const char *operation, const ww_device *device, const void *managed, const ww_tensor *out)
{
    if (!device || !managed)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", operation, device ? "managed" : "device");
    return check_out(operation, out);
}

ww_status ww_tensor_from_dlpack(ww_device *device, struct DLManagedTensorVersioned *managed, void *stream, ww_tensor *out)
{
    FLOAT_GUARD();
    ww_foreign foreign = {.stream = stream, .release = release_versioned, .owner = managed};
    ww_status status = check_import("from_dlpack", device, managed, out);
    if (status != WW_OK)
        return status;
    if (managed->version.major != DLPACK_MAJOR_VERSION)
        return ww_fail(WW_UNSUPPORTED, "from_dlpack: the tensor is of DLPack %u.%u; 1.x is what can be read",
                       (unsigned)managed->version.major, (unsigned)managed->version.minor);
    foreign.read_only = (managed->flags & READ_ONLY) != 0;
    status = read_tensor("from_dlpack", device, &managed->dl_tensor, &foreign);
    return status == WW_OK ? wrap_memory("from_dlpack", device, &foreign, out) : status;
}

ww_status ww_tensor_from_dlpack_unversioned(ww_device *device, struct DLManagedTensor *managed, void *stream, ww_tensor *out)
{
    FLOAT_GUARD();
    ww_foreign foreign = {.stream = stream, .release = release_plain, .owner = managed};
    ww_status status = check_import("from_dlpack_unversioned", device, managed, out);
    if (status == WW_OK)
        status = read_tensor("from_dlpack_unversioned", device, &managed->dl_tensor, &foreign);
    return status == WW_OK ? wrap_memory("from_dlpack_unversioned", device, &foreign, out) : status;
}
