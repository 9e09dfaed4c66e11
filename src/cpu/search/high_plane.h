/* High planes of codes (arithmetic/screen.h): made beside the codes of rows. */
#ifndef WW_CPU_SEARCH_HIGH_PLANE_H
#define WW_CPU_SEARCH_HIGH_PLANE_H

#include "arithmetic/screen.h"

/* Makes the plane of a row, padded / 2 bytes, from its codes; returns the plane's residual. */
float high_plane_make(const int8_t *codes, int32_t padded, screen_vector row, uint8_t *highs);

#endif
