/* Rows of f16, bf16, i8 and u8 (arithmetic/row_types.h) on a GPU: where the four elements of a group are, and their floats.
 *
 * Halves stand as floats do (packed_layout.h), bytes in the places of the screen's codes (screen_code_at), because that is what
 * they are. Either way a word of 64 rows is one piece of memory, and everything here counts from where that begins.
 */
#ifndef WW_KERNELS_SEARCH_TYPED_ROWS_H
#define WW_KERNELS_SEARCH_TYPED_ROWS_H

#include "kernels/simt/simt.h"

#include "arithmetic/convert.h"
#include "arithmetic/row_types.h"
#include "arithmetic/screen.h"
#include "kernels/search/packed_layout.h"
#include "kernels/search/segments.h"

/* Words of 32 bits that 64 rows take. */
DEVICE size_t typed_word_words(int32_t type, int32_t chunks)
{
    return (size_t)chunks * (row_type_is_bytes(type) ? SCREEN_SLAB : 2 * SCREEN_SLAB);
}

/* Where the elements of `group` in `chunk` of row `row` of the 64 are, in words. */
DEVICE size_t typed_at(int32_t type, int32_t chunks, uint32_t row, int32_t chunk, int32_t group)
{
    if (row_type_is_bytes(type))
        return (size_t)chunk * SCREEN_SLAB + screen_piece(row, (uint32_t)group / 4) + (uint32_t)group % 4;
    return ((size_t)row * (size_t)(chunks * CANON_LANES) + (size_t)packed_at(chunks, chunk, group)) / 2;
}

/* The elements there: two words of halves, or one of bytes. */
DEVICE u32x2 typed_load(int32_t type, const uint32_t *at)
{
    if (!row_type_is_bytes(type))
        return load_u32x2_readonly(at);
    const u32x2 four = {load_u32_readonly(at), 0};
    return four;
}

DEVICE f32x4 typed_floats(int32_t type, u32x2 four)
{
    if (row_type_is_bytes(type)) /* stored as i8, of u8 128 less: with the sign bit turned it is 128 more than that */
        return bytes_f32x4(four.x ^ 0x80808080u, type == ROW_I8 ? 128.0f : 0.0f);
    if (type == ROW_F16)
        return make_f32x4(widen_f16((uint16_t)four.x), widen_f16((uint16_t)(four.x >> 16)), widen_f16((uint16_t)four.y),
                          widen_f16((uint16_t)(four.y >> 16)));
    return make_f32x4(canon_bits_float(four.x << 16), canon_bits_float(four.x & 0xffff0000u), canon_bits_float(four.y << 16),
                      canon_bits_float(four.y & 0xffff0000u));
}

#endif
