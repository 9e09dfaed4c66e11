/* softmax of rows of more than 2048 elements of 16-bit types: 32 lanes hold a chunk of 4096 (rows_prefetch.h). Fewer waves
 * repeat the work of a row other than its exponentials, and no wave waits for the sums of another.
 */
#define PAIR_PART ROW_PART_4096
#include "kernels/reduce/rows_prefetch.h"

KERNEL_RESIDENT(tensor_softmax_prefetch_4096, row_args, ROW_PART_4096_THREADS, ROW_PART_4096_RESIDENT / ROW_PART_4096_THREADS)
{
    PAIR_ROOM(ROW_PART_4096_THREADS);
    SHARED_DYNAMIC(uint32_t, staged);
    rows_prefetch(PREFETCH_SOFTMAX, &args, &shared, staged);
}
