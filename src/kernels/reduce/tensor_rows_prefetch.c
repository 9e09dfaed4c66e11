/* softmax and norms of rows of 16-bit types in parts of 1024, small enough for many waves to have registers
 * (rows_prefetch.h). */
#define PAIR_PART ROW_PART
#include "kernels/reduce/rows_prefetch.h"

KERNEL_RESIDENT(tensor_rows_prefetch, row_args, ROW_PAIR_THREADS, ROW_PREFETCH_RESIDENT / ROW_PAIR_THREADS)
{
    PAIR_ROOM(ROW_PAIR_THREADS);
    SHARED_DYNAMIC(uint32_t, staged);
    if (args.op == ROW_SOFTMAX)
        rows_prefetch(PREFETCH_SOFTMAX, &args, &shared, staged);
    else
        rows_prefetch(PREFETCH_NORM, &args, &shared, staged);
}
