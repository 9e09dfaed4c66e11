/* Tiles of rows of f16, bf16, i8 and u8. */
#define ROW_TYPE(rows) ((rows)->type)
#include "kernels/search/range_tile.h"

RANGE_TILE(range_tile_typed_cosine, CANON_COSINE)
RANGE_TILE(range_tile_typed_l2, CANON_L2)
RANGE_TILE(range_tile_typed_dot, CANON_DOT)
