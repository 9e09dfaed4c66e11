/* One query against rows of i8 and u8. */
#define ROW_TYPE(rows)     ((rows)->type == ROW_U8 ? ROW_U8 : ROW_I8)
#define ROWS_IN_FLIGHT     8
#define ROWS_ELEMENT_BYTES 1
#include "kernels/search/search_one.h"

SEARCH_ONE(search_one_bytes_cosine, CANON_COSINE)
SEARCH_ONE(search_one_bytes_l2, CANON_L2)
SEARCH_ONE(search_one_bytes_dot, CANON_DOT)
