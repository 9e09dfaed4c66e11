/* One query against rows of f32. */
#include "kernels/search/search_one.h"

SEARCH_ONE(search_one_cosine, CANON_COSINE)
SEARCH_ONE(search_one_l2, CANON_L2)
SEARCH_ONE(search_one_dot, CANON_DOT)
