/* The element types, with the same numbers as ww_dtype (static assertions in tensor/types.c check this), and their properties:
 * TYPE(NAME, name, C type of its bits, kind). To add a type, start here.
 *
 * The kind is what operations compute in: f32 for floats of up to 32 bits, f64, or i64 for integers. i64 holds every value of
 * all integer types, and results wrap when they are stored.
 */
#ifndef WW_ARITHMETIC_TYPES_H
#define WW_ARITHMETIC_TYPES_H

#include <stdint.h>

#include "arithmetic/function.h"

#define TYPES(TYPE)                                                                                                            \
    TYPE(U8, u8, uint8_t, I64)                                                                                                 \
    TYPE(U32, u32, uint32_t, I64)                                                                                              \
    TYPE(I16, i16, int16_t, I64)                                                                                               \
    TYPE(I32, i32, int32_t, I64)                                                                                               \
    TYPE(I64, i64, int64_t, I64)                                                                                               \
    TYPE(BF16, bf16, uint16_t, F32)                                                                                            \
    TYPE(F16, f16, uint16_t, F32)                                                                                              \
    TYPE(F32, f32, float, F32)                                                                                                 \
    TYPE(F64, f64, double, F64)                                                                                                \
    TYPE(F8E4M3, f8e4m3, uint8_t, F32)                                                                                         \
    TYPE(I8, i8, int8_t, I64)

enum {
#define TYPE(NAME, name, bits, kind) TYPE_##NAME,
    TYPES(TYPE)
#undef TYPE
        TYPE_COUNT
};

enum { KIND_F32, KIND_F64, KIND_I64, KIND_COUNT };

/* The kind of a type: KIND_F32, ... */
CANON_FUNCTION int32_t type_kind(int32_t type)
{
#define TYPE(NAME, name, bits, kind) type == TYPE_##NAME ? KIND_##kind:
    return TYPES(TYPE) KIND_F32; /* no other type exists */
#undef TYPE
}

#endif
