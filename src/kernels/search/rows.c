/* Rows into their place: packed as they come from the host, or gathered from other rows.
 *
 * Both are bound by memory; sixteen lanes carry a row. The norm is computed on the way, because the row is in registers then,
 * and tells at once whether the row is finite: an element that is not, or a square that overflows, shows in it.
 */
#include "kernels/search/pack_row.h"
#include "kernels/search/rows_args.h"

KERNEL(rows_pack, rows_pack_args, ROWS_THREADS)
{
    const uint32_t row = block_index() * ROWS_PER_BLOCK + group_index();
    const bool active = row < args.count;
    const float *from = args.from + (size_t)row * (size_t)args.dim;
    float *to = args.to + (size_t)row * (size_t)(packed_chunks(args.dim) * CANON_LANES);
    const float sum = pack_row(active, from, args.dim, args.dim, to);
    if (active && group_lane() == 0) {
        args.norms[row] = sqrt_f32(sum);
        if (!(sum <= 3.40282347e+38f))
            atomic_min_u64(args.refused, args.number + row);
    }
}

KERNEL(rows_gather, rows_gather_args, ROWS_THREADS)
{
    const uint32_t row = block_index() * ROWS_PER_BLOCK + group_index();
    if (row >= args.count)
        return;
    const size_t floats = (size_t)args.chunks * CANON_LANES;
    const size_t source = (size_t)args.sources[row];
    const float *from = args.from_rows + source * floats;
    float *to = args.to_rows + (size_t)row * floats;
    for (size_t at = (size_t)group_lane() * 4; at < floats; at += CANON_LANES)
        store_f32x4(to + at, load_f32x4(from + at));
    if (group_lane() == 0)
        args.to_norms[row] = args.from_norms[source];
}
