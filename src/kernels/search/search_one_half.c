/* One query against rows of f16 and bf16. */
#define ROW_TYPE(rows)     ((rows)->type == ROW_F16 ? ROW_F16 : ROW_BF16)
#define ROWS_ELEMENT_BYTES 2
#include "kernels/search/search_one.h"

KERNEL_RESIDENT(search_one_half, search_one_args, SEARCH_THREADS, 2)
{
    one_search(args.rows.metric == CANON_COSINE ? CANON_COSINE : CANON_DOT, &args);
}

KERNEL_RESIDENT(search_one_half_l2, search_one_args, SEARCH_THREADS, 2)
{
    one_search(CANON_L2, &args);
}
