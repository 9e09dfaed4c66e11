/* Makes codes of rows and of queries (screen.h) and high planes of codes, and gathers codes of rows from segment to segment.
 *
 * Sixteen lanes hold a row, as when it is packed. Its largest element must be known before the first code, so the packed row is
 * read twice; the second time it comes from the cache. Bound by memory.
 */
#include "kernels/screen/screen_limits.h"
#include "kernels/search/pack_row.h"

DEVICE float larger_magnitude(float largest, float x)
{
    const float magnitude = canon_bits_float(canon_float_bits(x) & 0x7fffffffu);
    return magnitude > largest ? magnitude : largest;
}

DEVICE float code_largest(bool active, const float *row, int32_t chunks)
{
    float largest = 0.0f;
    for (int32_t chunk = 0; active && chunk < chunks; chunk++) {
        const f32x4 x = load_f32x4(row + packed_at(chunks, chunk, group_lane()));
        largest = larger_magnitude(larger_magnitude(larger_magnitude(larger_magnitude(largest, x.x), x.y), x.z), x.w);
    }
    largest = larger_magnitude(largest, wave_shuffle_xor_f32(largest, 1));
    largest = larger_magnitude(largest, wave_shuffle_xor_f32(largest, 2));
    largest = larger_magnitude(largest, wave_shuffle_xor_f32(largest, 4));
    return larger_magnitude(largest, wave_shuffle_xor_f32(largest, 8));
}

DEVICE uint32_t code_byte(float x, float scale, float inverse, float *rest)
{
    const int32_t code = screen_code(x, inverse);
    *rest = screen_rest(x, scale, code);
    return (uint32_t)code & 0xffu;
}

/* Where this lane's word of a chunk of row `number` is. */
DEVICE size_t code_at(bool small_batch, int32_t chunks, uint32_t number, int32_t chunk)
{
    const uint32_t word = (uint32_t)group_lane();
    return small_batch ? ((size_t)number * (size_t)chunks + (size_t)chunk) * PACKED_GROUPS + word
                       : (size_t)screen_code_at(chunks, number, chunk, word / 4) + word % 4;
}

/* Writes the codes of a packed row as row `number`. Returns its scale and, in `residual`, R, in all lanes of the group. All
 * lanes of the wave call it; those of a group that is not `active` read and write nothing. */
DEVICE float code_row(bool active, const float *row, int32_t chunks, uint32_t *codes, bool small_batch, uint32_t number,
                      float *residual)
{
    const float largest = code_largest(active, row, chunks);
    const float scale = screen_scale(largest), inverse = screen_inverse(largest);
    f32x4 acc = F32X4_ZERO;
    for (int32_t chunk = 0; active && chunk < chunks; chunk++) {
        const f32x4 x = load_f32x4(row + packed_at(chunks, chunk, group_lane()));
        f32x4 rest;
        const uint32_t first = code_byte(x.x, scale, inverse, &rest.x), second = code_byte(x.y, scale, inverse, &rest.y);
        const uint32_t third = code_byte(x.z, scale, inverse, &rest.z), fourth = code_byte(x.w, scale, inverse, &rest.w);
        codes[code_at(small_batch, chunks, number, chunk)] = first | second << 8 | third << 16 | fourth << 24;
        acc = f32x4_fma(rest, rest, acc);
    }
    *residual = screen_residual(fold_row(acc), chunks * CANON_LANES);
    return scale;
}

KERNEL(screen_code, screen_code_args, SCREEN_THREADS)
{
    const uint32_t number = block_index() * (SCREEN_THREADS / PACKED_GROUPS) + group_index(), row = args.first + number;
    const bool active = number < args.count;
    float residual;
    const float scale =
        code_row(active, args.rows + row * (size_t)(args.chunks * CANON_LANES), args.chunks, args.codes, false, row, &residual);
    if (active && group_lane() == 0) {
        args.scales[row] = scale;
        args.residuals[row] = residual;
    }
}

/* Returns a word of a plane from the codes at the same place of two chunks. Adds the squares of the parts it drops to
 * `squares`. */
DEVICE uint32_t plane_word(uint32_t even, uint32_t odd, uint32_t *squares)
{
    uint32_t word = 0;
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        const int32_t first = (int32_t)(even << (24 - 8 * i)) >> 24, second = (int32_t)(odd << (24 - 8 * i)) >> 24;
        const int32_t high = screen_high(first), low = screen_high(second);
        const int32_t rest = first - 16 * high, other = second - 16 * low;
        word |= (((uint32_t)high << 4 & 0xf0u) | ((uint32_t)low & 0xfu)) << 8 * i;
        *squares += (uint32_t)(rest * rest + other * other);
    }
    return word;
}

KERNEL(screen_plane, screen_plane_args, SCREEN_THREADS)
{
    const uint32_t number = block_index() * (SCREEN_THREADS / PACKED_GROUPS) + group_index(), row = args.first + number;
    const bool active = number < args.count;
    const int32_t plane_chunks = screen_plane_chunks(args.chunks);
    uint32_t squares = 0;
    for (int32_t chunk = 0; active && chunk < plane_chunks; chunk++) {
        const uint32_t even = args.codes[code_at(false, args.chunks, row, 2 * chunk)];
        const uint32_t odd = 2 * chunk + 1 < args.chunks ? args.codes[code_at(false, args.chunks, row, 2 * chunk + 1)] : 0;
        args.highs[code_at(false, plane_chunks, row, chunk)] = plane_word(even, odd, &squares);
    }
    UNROLL
    for (uint32_t mask = 1; mask < PACKED_GROUPS; mask *= 2)
        squares += wave_shuffle_xor_u32(squares, mask);
    if (active && group_lane() == 0)
        args.high_residuals[row] = screen_high_residual(args.scales[row], args.residuals[row], (int32_t)squares);
}

KERNEL(screen_gather, screen_gather_args, SCREEN_THREADS)
{
    const uint32_t number = block_index() * (SCREEN_THREADS / PACKED_GROUPS) + group_index(), row = args.first + number;
    if (number >= args.count)
        return;
    const uint32_t source = (uint32_t)args.sources[number];
    for (int32_t chunk = 0; chunk < args.chunks; chunk++)
        args.to_codes[code_at(false, args.chunks, row, chunk)] = args.from_codes[code_at(false, args.chunks, source, chunk)];
    if (group_lane() == 0) {
        args.to_scales[row] = args.from_scales[source];
        args.to_residuals[row] = args.from_residuals[source];
    }
}

/* Returns the sum of the codes that the group has written, an integer below 2^24, in all lanes of the group. Each lane reads
 * the codes it wrote. */
DEVICE float code_sum(bool active, const uint32_t *codes, int32_t chunks, bool small_batch, uint32_t number)
{
    f32x4 acc = F32X4_ZERO;
    for (int32_t chunk = 0; active && chunk < chunks; chunk++) {
        const uint32_t four = codes[code_at(small_batch, chunks, number, chunk)];
        acc.x += (float)(int8_t)four;
        acc.y += (float)(int8_t)(four >> 8);
        acc.z += (float)(int8_t)(four >> 16);
        acc.w += (float)(int8_t)(four >> 24);
    }
    return fold_row(acc);
}

KERNEL(screen_prepare, screen_prepare_args, SCREEN_THREADS)
{
    const uint32_t query = block_index() * (SCREEN_THREADS / PACKED_GROUPS) + group_index();
    const bool active = query < args.queries.slots, real = query < args.queries.count;
    const int32_t chunks = packed_chunks(args.dim);
    float *packed = args.queries.packed + (size_t)query * (size_t)(chunks * CANON_LANES);
    /* A slot without a query becomes a query of zeros. */
    const float square =
        pack_row(active, args.from + (real ? query * (size_t)args.dim : 0), args.dim, real ? args.dim : 0, packed);
    screen_query numbers;
    numbers.scale = code_row(active, packed, chunks, args.queries.codes, args.small_batch, query, &numbers.residual);
    numbers.norm = sqrt_f32(square);
    numbers.offset = 0.0f;
    if (args.offset)
        numbers.offset =
            numbers.scale * ((float)ROW_U8_OFFSET * code_sum(active, args.queries.codes, chunks, args.small_batch, query));
    if (active && group_lane() == 0) {
        args.queries.numbers[query] = numbers;
        args.queries.thresholds[query] = real && args.thresholds ? args.thresholds[query] : CANON_KEY_WORST;
        args.queries.counts[query] = args.queries.before[query] = args.queries.scored[query] = 0;
        args.queries.blocks_ready[query] = 0;
        if (query == 0)
            args.queries.blocks_ready[args.queries.slots] = 0;
        screen_vector vector;
        vector.scale = numbers.scale;
        vector.residual = numbers.residual;
        vector.norm = numbers.norm;
        if (real && args.queries.rho) /* never negative, so its bits have the order of the numbers */
            atomic_max_u32(args.queries.rho, canon_float_bits(screen_rho(args.metric, chunks * CANON_LANES, vector)));
    }
}
