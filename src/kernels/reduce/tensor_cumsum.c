/* Running sums: a thread has a chunk of a line (arithmetic/cumsum.h). Neighbours have neighbouring lines where the dimension is
 * not the last, and neighbouring chunks where it is: 256 bytes of f32 each, which the cache holds meanwhile.
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
