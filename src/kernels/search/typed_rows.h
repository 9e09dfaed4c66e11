/* Rows of f16, bf16, i8 and u8 (arithmetic/row_types.h) on a GPU: where the four elements of a group are, and their values as
 * floats.
 *
 * f16 and bf16 rows have the layout of floats (packed_layout.h). Byte rows have the layout of the screen's codes
 * (screen_code_at), because they are their own codes. In both cases a word of 64 rows is contiguous, and all offsets here are
 * relative to its start.
 */
#ifndef WW_KERNELS_SEARCH_TYPED_ROWS_H
#define WW_KERNELS_SEARCH_TYPED_ROWS_H

#include "kernels/simt/simt.h"

#include "arithmetic/convert.h"
#include "arithmetic/row_types.h"
#include "arithmetic/screen.h"
#include "kernels/search/packed_layout.h"
#include "kernels/search/segments.h"

/* The number of 32-bit words that 64 rows take. */
DEVICE size_t typed_word_words(int32_t type, int32_t chunks)
{
    return (size_t)chunks * (row_type_is_bytes(type) ? SCREEN_SLAB : 2 * SCREEN_SLAB);
}

/* The offset of the elements of `group` in `chunk` of row `row` of the 64, in 32-bit words. */
DEVICE size_t typed_at(int32_t type, int32_t chunks, uint32_t row, int32_t chunk, int32_t group)
{
    if (row_type_is_bytes(type))
        return (size_t)chunk * SCREEN_SLAB + screen_piece(row, (uint32_t)group / 4) + (uint32_t)group % 4;
    return ((size_t)row * (size_t)(chunks * CANON_LANES) + (size_t)packed_at(chunks, chunk, group)) / 2;
}

/* Loads the elements: two words for f16 and bf16, one for bytes. */
DEVICE u32x2 typed_load(int32_t type, const uint32_t *at)
{
    if (!row_type_is_bytes(type))
        return load_u32x2_readonly(at);
    const u32x2 four = {load_u32_readonly(at), 0};
    return four;
}

DEVICE f32x4 typed_floats(int32_t type, u32x2 four)
{
    if (row_type_is_bytes(type)) /* u8 is stored as i8, minus 128; flipping the sign bit adds 128 */
        return bytes_f32x4(four.x ^ 0x80808080u, type == ROW_I8 ? 128.0f : 0.0f);
    if (type == ROW_F16)
        return make_f32x4(widen_f16((uint16_t)four.x), widen_f16((uint16_t)(four.x >> 16)), widen_f16((uint16_t)four.y),
                          widen_f16((uint16_t)(four.y >> 16)));
    return make_f32x4(canon_bits_float(four.x << 16), canon_bits_float(four.x & 0xffff0000u), canon_bits_float(four.y << 16),
                      canon_bits_float(four.y & 0xffff0000u));
}

#endif
