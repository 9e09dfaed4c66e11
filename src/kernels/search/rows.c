/* Moves rows of every type: packs rows from the host, copies rows between segments, unpacks rows for a search.
 *
 * All kernels are bound by memory; sixteen lanes move a row. The norm is computed on the way, while the row is in registers. It
 * also shows whether the row is finite: an infinite or NaN element, or a square that overflows, makes it not finite. Rows of
 * another type are also written as floats if their codes are needed.
 */
#include "kernels/search/pack_row.h"
#include "kernels/search/rows_args.h"
#include "kernels/search/typed_rows.h"

/* An element's bits as the device stores it, or those of 0 beyond the row's end. */
DEVICE uint32_t typed_bits(const rows_pack_args *args, uint32_t row, int32_t element)
{
    const size_t at = (size_t)row * (size_t)args->dim + (size_t)element;
    const bool given = element < args->dim;
    if (!row_type_is_bytes(args->type))
        return given ? ((const uint16_t *)args->from)[at] : 0;
    const uint32_t bits = given ? ((const uint8_t *)args->from)[at] : 0;
    return args->type == ROW_U8 ? bits ^ 0x80u : bits;
}

DEVICE u32x2 typed_pack(const rows_pack_args *args, uint32_t row, int32_t first)
{
    const uint32_t a = typed_bits(args, row, first), b = typed_bits(args, row, first + 32),
                   c = typed_bits(args, row, first + 16), d = typed_bits(args, row, first + 48);
    const bool bytes = row_type_is_bytes(args->type);
    const u32x2 four = {bytes ? a | b << 8 | c << 16 | d << 24 : a | b << 16, bytes ? 0 : c | d << 16};
    return four;
}

DEVICE void typed_store(int32_t type, uint32_t *at, u32x2 four)
{
    at[0] = four.x;
    if (!row_type_is_bytes(type))
        at[1] = four.y;
}

/* Writes row `number`, of another type than f32, and returns dot(x,x), like pack_row(). */
DEVICE float pack_typed(bool active, const rows_pack_args *args, uint32_t number)
{
    const uint32_t row = args->first + number;
    const int32_t chunks = packed_chunks(args->dim), group = group_lane();
    uint32_t *to = (uint32_t *)args->to + row / 64 * typed_word_words(args->type, chunks);
    f32x4 acc = F32X4_ZERO;
    for (int32_t chunk = 0; active && chunk < chunks; chunk++) {
        const u32x2 four = typed_pack(args, number, chunk * CANON_LANES + packed_first(group));
        const f32x4 x = typed_floats(args->type, four);
        typed_store(args->type, to + typed_at(args->type, chunks, row % 64, chunk, group), four);
        if (args->wide)
            store_f32x4(args->wide + number * (size_t)(chunks * CANON_LANES) + packed_at(chunks, chunk, group), x);
        acc = f32x4_fma(x, x, acc);
    }
    return fold_row(acc);
}

KERNEL(rows_pack, rows_pack_args, ROWS_THREADS)
{
    const uint32_t number = block_index() * ROWS_PER_BLOCK + group_index(), row = args.first + number;
    const bool active = number < args.count;
    float sum;
    if (args.type == ROW_F32)
        sum = pack_row(active, (const float *)args.from + (size_t)number * (size_t)args.dim, args.dim, args.dim,
                       (float *)args.to + (size_t)row * (size_t)(packed_chunks(args.dim) * CANON_LANES));
    else
        sum = pack_typed(active, &args, number);
    if (!active || group_lane() != 0)
        return;
    args.norms[row] = sqrt_f32(sum);
    if (args.scales) {
        args.scales[row] = 1.0f;
        args.residuals[row] = 0.0f;
    }
    if (!(sum <= 3.40282347e+38f))
        atomic_min_u64(args.refused, args.number + number);
}

DEVICE void gather_floats(const rows_gather_args *args, uint32_t source, uint32_t row)
{
    const size_t floats = (size_t)args->chunks * CANON_LANES;
    const float *from = (const float *)args->from_rows + source * floats;
    float *to = (float *)args->to_rows + row * floats;
    for (size_t at = (size_t)group_lane() * 4; at < floats; at += CANON_LANES)
        store_f32x4(to + at, load_f32x4(from + at));
}

DEVICE void gather_typed(const rows_gather_args *args, uint32_t source, uint32_t row)
{
    const size_t words = typed_word_words(args->type, args->chunks);
    const uint32_t *from = (const uint32_t *)args->from_rows + source / 64 * words;
    uint32_t *to = (uint32_t *)args->to_rows + row / 64 * words;
    for (int32_t chunk = 0; chunk < args->chunks; chunk++)
        typed_store(args->type, to + typed_at(args->type, args->chunks, row % 64, chunk, group_lane()),
                    typed_load(args->type, from + typed_at(args->type, args->chunks, source % 64, chunk, group_lane())));
}

KERNEL(rows_gather, rows_gather_args, ROWS_THREADS)
{
    const uint32_t number = block_index() * ROWS_PER_BLOCK + group_index(), row = args.first + number;
    if (number >= args.count)
        return;
    const uint32_t source = (uint32_t)args.sources[number];
    if (args.type == ROW_F32)
        gather_floats(&args, source, row);
    else
        gather_typed(&args, source, row);
    if (group_lane() != 0)
        return;
    args.to_norms[row] = args.from_norms[source];
    if (args.to_scales) {
        args.to_scales[row] = args.from_scales[source];
        args.to_residuals[row] = args.from_residuals[source];
    }
}

DEVICE f32x4 unpack_floats(const rows_unpack_args *args, uint32_t row, int32_t chunk)
{
    const int32_t chunks = packed_chunks(args->dim), group = group_lane();
    if (args->type == ROW_F32)
        return load_f32x4((const float *)args->from + (size_t)row * (size_t)(chunks * CANON_LANES) +
                          packed_at(chunks, chunk, group));
    const uint32_t *word = (const uint32_t *)args->from + row / 64 * typed_word_words(args->type, chunks);
    return typed_floats(args->type, typed_load(args->type, word + typed_at(args->type, chunks, row % 64, chunk, group)));
}

DEVICE void unpack_element(const rows_unpack_args *args, float *to, int32_t element, float value)
{
    if (element < args->dim)
        to[element] = value;
}

KERNEL(rows_unpack, rows_unpack_args, ROWS_THREADS)
{
    const uint32_t number = block_index() * ROWS_PER_BLOCK + group_index();
    if (number >= args.count)
        return;
    const uint32_t row = (uint32_t)args.sources[number];
    float *to = args.to + (size_t)number * (size_t)args.dim;
    for (int32_t chunk = 0; chunk < packed_chunks(args.dim); chunk++) {
        const f32x4 x = unpack_floats(&args, row, chunk);
        const int32_t first = chunk * CANON_LANES + packed_first(group_lane());
        unpack_element(&args, to, first, x.x);
        unpack_element(&args, to, first + 32, x.y);
        unpack_element(&args, to, first + 16, x.z);
        unpack_element(&args, to, first + 48, x.w);
    }
}
