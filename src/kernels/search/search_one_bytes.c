/* One query against rows of i8 and u8. */
#define ROW_TYPE(rows)     ((rows)->type == ROW_U8 ? ROW_U8 : ROW_I8)
#define ROWS_ELEMENT_BYTES 1
#include "kernels/search/search_one.h"

KERNEL_RESIDENT(search_one_bytes, search_one_args, SEARCH_THREADS, 2)
{
    one_search(args.rows.metric == CANON_COSINE ? CANON_COSINE : CANON_DOT, &args);
}

KERNEL_RESIDENT(search_one_bytes_l2, search_one_args, SEARCH_THREADS, 2)
{
    one_search(CANON_L2, &args);
}
