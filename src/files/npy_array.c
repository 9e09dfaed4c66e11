/* A .npy as an array of any rank.
 *
 * Callers always see C order. An array in Fortran order is rare, so it is read whole when it is opened, and reordered in
 * memory; all others stay in the file until they are read.
 */
#include <string.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "base/structs.h"
#include "files/array.h"
#include "files/npy.h"

struct ww_npy {
    file_source source;
    ww_array_info info;
    unsigned char *ordered; /* for an array in Fortran order: the elements in C order; otherwise NULL */
};

/* Returns true if the two orders differ: at least two sizes are larger than 1. */
static bool order_matters(const ww_array_info *info)
{
    int large = 0;
    for (int32_t i = 0; i < info->rank; i++)
        large += info->shape[i] > 1;
    return large > 1 && info->elements > 0;
}

/* Copies element by element in the order of the result; the index in the source counts like an odometer. */
static void put_in_order(const ww_array_info *info, const unsigned char *from, unsigned char *to)
{
    const size_t element = (size_t)ww_element_bytes(info->element);
    int64_t strides[WW_ARRAY_RANK_MAX] = {0}, at[WW_ARRAY_RANK_MAX] = {0}, place = 0, stride = 1;
    for (int32_t d = 0; d < info->rank; d++) {
        strides[d] = stride;
        stride *= info->shape[d];
    }
    for (int64_t i = 0; i < info->elements; i++) {
        memcpy(to + (size_t)i * element, from + (size_t)place * element, element);
        for (int32_t d = info->rank - 1; d >= 0; d--) {
            place += strides[d];
            if (++at[d] < info->shape[d])
                break;
            place -= strides[d] * info->shape[d];
            at[d] = 0;
        }
    }
}

static ww_status read_in_order(ww_npy *npy)
{
    const size_t bytes = (size_t)npy->info.bytes; /* not more than the file has */
    unsigned char *from = memory_alloc(bytes);
    npy->ordered = from ? memory_alloc(bytes) : NULL;
    ww_status status = npy->ordered ? WW_OK : memory_failed("an array in Fortran order, twice", 2 * bytes);
    if (status == WW_OK)
        status = source_read_parallel(&npy->source, npy->info.offset, from, bytes);
    if (status == WW_OK)
        put_in_order(&npy->info, from, npy->ordered);
    memory_free(from);
    return status;
}

static ww_status describe(ww_npy *npy)
{
    npy_header header;
    ww_array_info *info = &npy->info;
    const ww_status status = npy_header_read(&npy->source, &header);
    if (status != WW_OK)
        return status;
    if (header.rank > WW_ARRAY_RANK_MAX)
        return source_refuse(&npy->source, WW_UNSUPPORTED, header.shape_offset,
                             "the array has %d dimensions; the maximum is %d", header.rank, WW_ARRAY_RANK_MAX);
    *info = ww_array_info_default();
    info->element = header.element;
    memcpy(info->type, header.type, sizeof info->type);
    info->rank = header.rank;
    memcpy(info->shape, header.shape, sizeof info->shape);
    info->offset = header.data_offset;
    const int64_t left = npy->source.size - info->offset;
    if (!array_size(info))
        return source_refuse(&npy->source, WW_CORRUPT_FILE, header.shape_offset, "the shape does not fit into any file");
    if (info->bytes > left)
        return source_refuse(&npy->source, WW_CORRUPT_FILE, npy->source.size,
                             "the file is cut short: %lld elements of %s are %lld bytes, and %lld follow the header",
                             (long long)info->elements, ww_element_name(info->element), (long long)info->bytes,
                             (long long)left);
    if (info->bytes < left)
        return source_refuse(&npy->source, WW_CORRUPT_FILE, info->offset + info->bytes,
                             "%lld byte(s) too many: %lld elements of %s end here", (long long)(left - info->bytes),
                             (long long)info->elements, ww_element_name(info->element));
    return header.fortran_order && order_matters(info) ? read_in_order(npy) : WW_OK;
}

/* `source` is open, or over memory. It is closed with the array, and if this fails. */
static ww_status open_source(file_source *source, ww_npy **out)
{
    ww_npy *npy = memory_alloc_zeroed(1, sizeof *npy);
    if (!npy) {
        source_close(source);
        return memory_failed("opening a .npy file", sizeof *npy);
    }
    npy->source = *source;
    const ww_status status = describe(npy);
    if (status == WW_OK)
        *out = npy;
    else
        ww_npy_close(npy);
    return status;
}

ww_status ww_npy_open(const char *path, ww_npy **npy)
{
    FLOAT_GUARD();
    file_source source;
    if (!path || !npy)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_npy_open: %s is NULL", path ? "npy" : "path");
    const ww_status status = source_open(&source, path);
    return status == WW_OK ? open_source(&source, npy) : status;
}

ww_status npy_open_bytes(const char *name, const void *bytes, size_t size, ww_npy **npy)
{
    file_source source;
    source_over(&source, name, bytes, size);
    return open_source(&source, npy);
}

void ww_npy_close(ww_npy *npy)
{
    if (!npy)
        return;
    source_close(&npy->source);
    memory_free(npy->ordered);
    memory_free(npy);
}

ww_status ww_npy_describe(const ww_npy *npy, ww_array_info *info)
{
    FLOAT_GUARD();
    if (!npy || !info)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_npy_describe: %s is NULL", npy ? "info" : "npy");
    return struct_write(info, &npy->info, sizeof npy->info, "ww_npy_describe", "ww_array_info");
}

ww_status ww_npy_read(const ww_npy *npy, int64_t offset, void *to, size_t bytes)
{
    FLOAT_GUARD();
    if (!npy)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_npy_read: npy is NULL");
    const ww_status status = array_range_check("ww_npy_read", &npy->info, offset, to, bytes);
    if (status != WW_OK || bytes == 0)
        return status;
    if (!npy->ordered)
        return source_read_parallel(&npy->source, npy->info.offset + offset, to, bytes);
    memcpy(to, npy->ordered + offset, bytes);
    return WW_OK;
}
