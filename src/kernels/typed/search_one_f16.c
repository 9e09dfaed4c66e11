/* One query against rows of f16. */
#define ROW_TYPE(rows)     ROW_F16
#define ROWS_IN_FLIGHT     4
#define ROWS_ELEMENT_BYTES 2
#include "kernels/search/search_one.h"

SEARCH_ONE(search_one_f16_cosine, CANON_COSINE)
SEARCH_ONE(search_one_f16_l2, CANON_L2)
SEARCH_ONE(search_one_f16_dot, CANON_DOT)
