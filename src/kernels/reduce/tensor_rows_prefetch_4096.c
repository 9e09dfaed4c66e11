/* softmax of rows of 16-bit types of more than 2048 elements, a chunk of 4096 by 32 lanes (rows_prefetch.h): what a row takes
 * besides its exponentials is done by fewer waves, and none waits for another to add.
 */
#define PAIR_PART ROW_PART_4096
#include "kernels/reduce/rows_prefetch.h"

KERNEL_RESIDENT(tensor_softmax_prefetch_4096, row_args, ROW_PART_4096_THREADS, ROW_PART_4096_RESIDENT / ROW_PART_4096_THREADS)
{
    PAIR_ROOM(ROW_PART_4096_THREADS);
    SHARED_DYNAMIC(uint32_t, staged);
    rows_prefetch(PREFETCH_SOFTMAX, &args, &shared, staged);
}
