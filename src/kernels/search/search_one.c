/* One query against rows of f32. */
#define ROW_TYPE(rows)     ROW_F32
#define ROWS_ELEMENT_BYTES 4
#include "kernels/search/search_one.h"

KERNEL_RESIDENT(search_one, search_one_args, SEARCH_THREADS, 2)
{
    one_search(args.rows.metric == CANON_COSINE ? CANON_COSINE : CANON_DOT, &args);
}

KERNEL_RESIDENT(search_one_l2, search_one_args, SEARCH_THREADS, 2)
{
    one_search(CANON_L2, &args);
}
