/* Tiles of rows of f32. */
#include "kernels/search/range_tile.h"

RANGE_TILE(range_tile_cosine, CANON_COSINE)
RANGE_TILE(range_tile_l2, CANON_L2)
RANGE_TILE(range_tile_dot, CANON_DOT)
