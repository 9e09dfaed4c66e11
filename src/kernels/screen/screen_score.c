/* Thresholds and results of rows of f32. */
#include "kernels/screen/screen_score.h"

SCREEN_PICK(screen_pick)
SCREEN_SCORE(screen_score)
