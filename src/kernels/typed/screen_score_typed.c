/* Exact scores of what the screen kept, and of its samples, of rows of f16, bf16 and i8. */
#define ROW_TYPE(rows) ((rows)->type)
#include "kernels/screen/screen_range.h"
#include "kernels/screen/screen_score.h"

SCREEN_PICK(screen_pick_typed)
SCREEN_SCORE(screen_score_typed)
SCREEN_RANGE(screen_range_typed)
