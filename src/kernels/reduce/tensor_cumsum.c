/* Running sums: one chunk of a line per thread (arithmetic/cumsum.h). Along the last dimension, neighbouring threads have
 * neighbouring chunks, 256 bytes of f32 each, which stay in the cache; otherwise they have neighbouring lines.
 */
#include "kernels/simt/simt.h"

#include "arithmetic/cumsum.h"

#define EACH_CHUNK                                                                                                             \
    for (int64_t i = (int64_t)block_index() * CUMSUM_THREADS + thread_index(); i < args.count;                                 \
         i += (int64_t)block_count() * CUMSUM_THREADS)

KERNEL(tensor_cumsum, cumsum_args, CUMSUM_THREADS)
{
    const int32_t kind = type_kind(args.type);
    if (kind == KIND_F32)
        EACH_CHUNK cumsum_chunk_f32(&args, i);
    else if (kind == KIND_F64)
        EACH_CHUNK cumsum_chunk_f64(&args, i);
    else
        EACH_CHUNK cumsum_chunk_i64(&args, i);
}
