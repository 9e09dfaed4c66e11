/* Tiles of rows of f16, bf16, i8 and u8. */
#define ROW_TYPE(rows) ((rows)->type)
#include "kernels/search/search_tile.h"

SEARCH_TILE(search_tile_typed_cosine, CANON_COSINE)
SEARCH_TILE(search_tile_typed_l2, CANON_L2)
SEARCH_TILE(search_tile_typed_dot, CANON_DOT)
