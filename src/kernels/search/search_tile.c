/* Tiles of rows of f32. */
#include "kernels/search/search_tile.h"

SEARCH_TILE(search_tile_cosine, CANON_COSINE)
SEARCH_TILE(search_tile_l2, CANON_L2)
SEARCH_TILE(search_tile_dot, CANON_DOT)
