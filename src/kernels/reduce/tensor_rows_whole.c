/* softmax of rows of 16-bit types of more than 2048 elements, a run of 4096 by 32 lanes (rows_ahead.h): what a row takes
 * besides its exponentials is done by fewer waves, and none waits for another to add.
 */
#define PAIR_PART ROW_WHOLE
#include "kernels/reduce/rows_ahead.h"

SOFTMAX_AHEAD(tensor_softmax_whole, ROW_WHOLE_THREADS, ROW_WHOLE_RESIDENT)
