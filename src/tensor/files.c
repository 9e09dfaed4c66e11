/* Reads arrays of files as tensors: in pieces, through a host buffer, which are copied to the device one after the other. */
#include <warpwave/tensor_files.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "tensor/tensor.h"

enum { PIECE_BYTES = 32 << 20 }; /* large enough for several reading threads, small compared with the tensors */

/* An array in a file: which one, and how its bytes are read. */
typedef struct source {
    const char *operation;
    const ww_npy *npy; /* one of the two */
    const ww_safetensors *file;
    int64_t index;
    ww_array_info info;
} source;

static ww_status read_bytes(const source *from, int64_t offset, void *to, size_t bytes)
{
    return from->npy ? ww_npy_read(from->npy, offset, to, bytes)
                     : ww_safetensors_read(from->file, from->index, offset, to, bytes);
}

static bool type_of_element(ww_element element, ww_dtype *out)
{
    static const struct {
        ww_element theirs;
        ww_dtype ours;
    } types[] = {
        {WW_ELEMENT_F32, WW_F32}, {WW_ELEMENT_F64, WW_F64}, {WW_ELEMENT_F16, WW_F16},   {WW_ELEMENT_I8, WW_I8},
        {WW_ELEMENT_U8, WW_U8},   {WW_ELEMENT_I32, WW_I32}, {WW_ELEMENT_BF16, WW_BF16}, {WW_ELEMENT_I16, WW_I16},
        {WW_ELEMENT_I64, WW_I64}, {WW_ELEMENT_U32, WW_U32}, {WW_ELEMENT_BOOL, WW_U8},   {WW_ELEMENT_F8E4M3, WW_F8E4M3},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].theirs == element) {
            *out = types[i].ours;
            return true;
        }
    return false;
}

/* Reads a whole array into a dense tensor. */
static ww_status fill(const source *from, const ww_tensor *to)
{
    ww_device *device = to->storage->device;
    const buffer all = dense_bytes(to);
    const size_t piece_bytes = all.bytes < PIECE_BYTES ? all.bytes : PIECE_BYTES;
    if (all.bytes == 0)
        return WW_OK;
    char *piece = memory_alloc(piece_bytes);
    if (!piece)
        return memory_failed("a piece of an array", piece_bytes);
    ww_status status = WW_OK;
    for (size_t done = 0; done < all.bytes && status == WW_OK; done += piece_bytes) {
        const buffer part = {.data = (char *)all.data + done,
                             .bytes = all.bytes - done < piece_bytes ? all.bytes - done : piece_bytes};
        status = read_bytes(from, (int64_t)done, piece, part.bytes);
        if (status == WW_OK)
            status = tensors_of(device)->write(device, &part, piece);
    }
    memory_free(piece);
    return status;
}

static ww_status load(const source *from, ww_device *device, ww_tensor *out)
{
    const ww_array_info *info = &from->info;
    ww_dtype dtype = WW_U8;
    ww_status status = check_out(from->operation, out);
    if (status == WW_OK)
        status = check_new(from->operation, device, dtype, 0);
    if (status != WW_OK)
        return status;
    if (!type_of_element(info->element, &dtype))
        return ww_fail(WW_UNSUPPORTED, "%s: %s%s%sis of type %s, which tensors do not have", from->operation,
                       info->name[0] ? "'" : "", info->name, info->name[0] ? "' " : "the array ", info->type);
    if (info->rank > WW_RANK_MAX)
        return ww_fail(WW_UNSUPPORTED, "%s: %s has rank %d; the maximum is %d", from->operation,
                       info->name[0] ? info->name : "the array", (int)info->rank, WW_RANK_MAX);
    result r = {.operation = from->operation, .out = out};
    status = result_begin(&r, device, dtype, info->rank, info->shape);
    if (status == WW_OK && info->bytes != (int64_t)dense_bytes(&r.at).bytes)
        status = ww_fail(WW_CORRUPT_FILE, "%s: %lld bytes for shape %s of %s", from->operation, (long long)info->bytes,
                         shape_to_text(info->rank, info->shape).text, ww_dtype_name(dtype));
    if (status == WW_OK)
        status = fill(from, &r.at);
    return result_end(&r, status);
}

ww_status ww_tensor_load_npy(ww_device *device, const char *path, ww_tensor *out)
{
    FLOAT_GUARD();
    source from = {.operation = "ww_tensor_load_npy", .info = ww_array_info_default()};
    ww_npy *npy = NULL;
    if (!path)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_tensor_load_npy: path is NULL");
    ww_status status = ww_npy_open(path, &npy);
    if (status == WW_OK)
        status = ww_npy_describe(npy, &from.info);
    from.npy = npy;
    if (status == WW_OK)
        status = load(&from, device, out);
    ww_npy_close(npy);
    return status;
}

ww_status ww_safetensors_load(const ww_safetensors *file, int64_t index, ww_device *device, ww_tensor *out)
{
    FLOAT_GUARD();
    source from = {.operation = "ww_safetensors_load", .file = file, .index = index, .info = ww_array_info_default()};
    if (!file)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_safetensors_load: file is NULL");
    const ww_status status = ww_safetensors_at(file, index, &from.info);
    return status == WW_OK ? load(&from, device, out) : status;
}

ww_status ww_safetensors_load_all(const ww_safetensors *file, ww_device *device, ww_tensor *out)
{
    FLOAT_GUARD();
    const int64_t count = ww_safetensors_count(file);
    if (!file || (!out && count > 0))
        return ww_fail(WW_INVALID_ARGUMENT, "ww_safetensors_load_all: %s is NULL", file ? "out" : "file");
    for (int64_t i = 0; i < count; i++)
        out[i] = (ww_tensor){0};
    ww_status status = WW_OK;
    for (int64_t i = 0; i < count && status == WW_OK; i++)
        status = ww_safetensors_load(file, i, device, &out[i]);
    for (int64_t i = 0; i < count && status != WW_OK; i++)
        ww_tensor_release(&out[i]);
    return status;
}

ww_status ww_tensor_load_safetensors(ww_device *device, const char *path, const char *name, ww_tensor *out)
{
    FLOAT_GUARD();
    ww_safetensors *file = NULL;
    int64_t index = 0;
    if (!path || !name)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_tensor_load_safetensors: %s is NULL", path ? "name" : "path");
    ww_status status = ww_safetensors_open(path, &file);
    if (status == WW_OK)
        status = ww_safetensors_find(file, name, &index);
    if (status == WW_OK)
        status = ww_safetensors_load(file, index, device, out);
    ww_safetensors_close(file);
    return status;
}
