/* The types that the rows of a collection can have, by number as ww_vector_type has them, and the f32 values that they are.
 *
 * Rows are stored in their type and scored as f32: every value of the other types is one. Devices keep u8 as the i8 that is 128
 * less, so that bytes of either kind are codes of the screen (screen.h) as stored, with scale 1 and nothing lost: of u8
 * the product of codes is short by 128 times the sum of the query's codes. Padding is the number 0 in every type.
 */
#ifndef WW_ARITHMETIC_ROW_TYPES_H
#define WW_ARITHMETIC_ROW_TYPES_H

#include <stdbool.h>
#include <stddef.h>

#include "arithmetic/half.h"

enum { ROW_F32, ROW_F16, ROW_BF16, ROW_I8, ROW_U8, ROW_TYPES };

/* Taken off u8 where a device stores it. */
#define ROW_U8_OFFSET 128

CANON_FUNCTION size_t row_type_bytes(int32_t type)
{
    return type == ROW_F32 ? 4 : type == ROW_F16 || type == ROW_BF16 ? 2 : 1;
}

/* Are rows of this type their own codes? */
CANON_FUNCTION bool row_type_is_bytes(int32_t type)
{
    return type == ROW_I8 || type == ROW_U8;
}

/* What the codes of a row are less than its numbers. */
CANON_FUNCTION int32_t row_type_offset(int32_t type)
{
    return type == ROW_U8 ? ROW_U8_OFFSET : 0;
}

#endif
