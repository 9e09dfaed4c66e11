/* The element types of collection rows, with the same numbers as ww_vector_type, and their f32 values.
 *
 * Rows are stored in their type and scored as f32, which holds every value of the other types. Devices store u8 as the i8 that
 * is 128 less, so stored bytes of both types are exact codes for the screen (screen.h) with scale 1. For u8 the product of
 * codes is too small by 128 times the sum of the query's codes. Padding is the number 0 in every type.
 */
#ifndef WW_ARITHMETIC_ROW_TYPES_H
#define WW_ARITHMETIC_ROW_TYPES_H

#include <stdbool.h>
#include <stddef.h>

#include "arithmetic/half.h"

enum { ROW_F32, ROW_F16, ROW_BF16, ROW_I8, ROW_U8, ROW_TYPES };

/* Subtracted from u8 values stored on a device. */
#define ROW_U8_OFFSET 128

CANON_FUNCTION size_t row_type_bytes(int32_t type)
{
    return type == ROW_F32 ? 4 : type == ROW_F16 || type == ROW_BF16 ? 2 : 1;
}

/* Whether rows of this type are their own codes. */
CANON_FUNCTION bool row_type_is_bytes(int32_t type)
{
    return type == ROW_I8 || type == ROW_U8;
}

/* How much smaller the codes of a row are than its numbers. */
CANON_FUNCTION int32_t row_type_offset(int32_t type)
{
    return type == ROW_U8 ? ROW_U8_OFFSET : 0;
}

#endif
