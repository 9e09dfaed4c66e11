/* Products of f32, f16 and bf16 weights with f32 activations: canonical dot products (canon.h).
 *
 * Sixteen threads hold the 64 accumulators of a result: thread t those of elements t, t + 16, t + 32, t + 48.
 */
#include "kernels/quant/quant.h"
#include "kernels/simt/simt.h"

#include "arithmetic/blocks/decode.h"

KERNEL(quant_float_product, quant_float_args, QUANT_THREADS)
{
    const uint64_t thread = (uint64_t)block_index() * QUANT_THREADS + thread_index();
    const uint64_t row = thread / 16, column = args.first_column + block_index_y();
    const bool exists = row < args.rows;
    const uint64_t first = args.first_rows ? args.first_rows[column] : 0;
    const uint8_t *weights = args.weights + (first + (exists ? row : 0)) * args.weights_stride;
    const float *x = args.x + column * args.cols;
    const uint64_t bytes = (uint64_t)block_bytes(args.type);
    float acc[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (uint64_t chunk = 0; exists && chunk < args.cols; chunk += CANON_LANES) {
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            const uint64_t at = chunk + thread % 16 + 16 * i;
            const float w = at < args.cols ? decode_element(args.type, weights + at * bytes, 0) : 0.0f;
            acc[i] = fma_f32(w, at < args.cols ? x[at] : 0.0f, acc[i]);
        }
    }
    float sum = (acc[0] + acc[2]) + (acc[1] + acc[3]);
    sum = sum + wave_shuffle_xor_f32(sum, 8);
    sum = sum + wave_shuffle_xor_f32(sum, 4);
    sum = sum + wave_shuffle_xor_f32(sum, 2);
    sum = sum + wave_shuffle_xor_f32(sum, 1);
    if (exists && thread % 16 == 0)
        args.y[column * args.rows + row] = sum;
}
