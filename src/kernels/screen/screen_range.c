/* What the screen kept of rows of f32 within a range. */
#include "kernels/screen/screen_range.h"

SCREEN_RANGE(screen_range)
