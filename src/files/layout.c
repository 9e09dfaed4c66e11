/* Elements: their names, sizes and conversion; and the check that a file is exactly as long as its header says. */
#include "files/layout.h"

#include <string.h>

#include "arithmetic/half.h"

static const struct {
    const char *name;
    int64_t bytes;
} elements[] = {
    [WW_ELEMENT_F32] = {"f32", 4},   [WW_ELEMENT_F64] = {"f64", 8},       [WW_ELEMENT_F16] = {"f16", 2},
    [WW_ELEMENT_I8] = {"i8", 1},     [WW_ELEMENT_U8] = {"u8", 1},         [WW_ELEMENT_I32] = {"i32", 4},
    [WW_ELEMENT_BF16] = {"bf16", 2}, [WW_ELEMENT_I16] = {"i16", 2},       [WW_ELEMENT_I64] = {"i64", 8},
    [WW_ELEMENT_U16] = {"u16", 2},   [WW_ELEMENT_U32] = {"u32", 4},       [WW_ELEMENT_U64] = {"u64", 8},
    [WW_ELEMENT_BOOL] = {"bool", 1}, [WW_ELEMENT_F8E4M3] = {"f8e4m3", 1}, [WW_ELEMENT_F8E5M2] = {"f8e5m2", 1},
};

static bool element_known(ww_element element)
{
    return (unsigned)element < sizeof elements / sizeof *elements;
}

const char *ww_element_name(ww_element element)
{
    return element_known(element) ? elements[element].name : NULL;
}

int64_t ww_element_bytes(ww_element element)
{
    return element_known(element) ? elements[element].bytes : 0;
}

bool element_of_matrix(ww_element element)
{
    return (unsigned)element <= WW_ELEMENT_I32;
}

ww_status layout_fills(const file_layout *layout, const file_source *source)
{
    const char *type = ww_element_name(layout->element);
    const int64_t left = source->size - layout->offset;
    int64_t row_bytes, bytes;
    if (layout->dim < 1)
        return source_refuse(source, WW_CORRUPT_FILE, layout->offset, "the rows have no elements");
    if (__builtin_mul_overflow(layout->dim, ww_element_bytes(layout->element), &row_bytes) ||
        __builtin_mul_overflow(layout->rows, row_bytes, &bytes))
        return source_refuse(source, WW_CORRUPT_FILE, layout->offset, "%lld rows of %lld %s do not fit into any file",
                             (long long)layout->rows, (long long)layout->dim, type);
    if (bytes > left)
        return source_refuse(source, WW_CORRUPT_FILE, source->size,
                             "the file is cut short: %lld rows of %lld %s are %lld bytes, and %lld follow the header",
                             (long long)layout->rows, (long long)layout->dim, type, (long long)bytes, (long long)left);
    if (bytes < left)
        return source_refuse(source, WW_CORRUPT_FILE, layout->offset + bytes,
                             "%lld byte(s) too many: %lld rows of %lld %s end here", (long long)(left - bytes),
                             (long long)layout->rows, (long long)layout->dim, type);
    return WW_OK;
}

/* Loads go through memcpy because a row of a .bvecs can start at any address; compilers make plain (vector) loads of it. */
#define CONVERT(type, result, expression)                                                                                      \
    for (int64_t i = 0; i < count; i++) {                                                                                      \
        type x;                                                                                                                \
        memcpy(&x, (const char *)from + i * (int64_t)sizeof x, sizeof x);                                                      \
        to[i] = (result)(expression);                                                                                          \
    }

void elements_to_f32(ww_element element, const void *from, float *to, int64_t count)
{
    switch (element) {
    case WW_ELEMENT_F32:
        memcpy(to, from, (size_t)count * sizeof *to);
        break;
    case WW_ELEMENT_F64:
        CONVERT(double, float, x)
        break;
    case WW_ELEMENT_F16:
        CONVERT(uint16_t, float, f32_from_f16(x))
        break;
    case WW_ELEMENT_I8:
        CONVERT(int8_t, float, x)
        break;
    case WW_ELEMENT_U8:
        CONVERT(uint8_t, float, x)
        break;
    case WW_ELEMENT_I32:
        CONVERT(int32_t, float, x)
        break;
    default:
        break; /* element_of_matrix() refuses these */
    }
}

void elements_to_i32(ww_element element, const void *from, int32_t *to, int64_t count)
{
    switch (element) {
    case WW_ELEMENT_I8:
        CONVERT(int8_t, int32_t, x)
        break;
    case WW_ELEMENT_U8:
        CONVERT(uint8_t, int32_t, x)
        break;
    case WW_ELEMENT_I32:
        memcpy(to, from, (size_t)count * sizeof *to);
        break;
    default:
        break; /* the caller refuses these */
    }
}
