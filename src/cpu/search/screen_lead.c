/* Bounds from the leading parts of codes. Plain C: memory is what bounds a search of few queries, and this reads little of it.
 *
 * Roundings: every float below is made by at most 8 operations on positive numbers, so a factor of 1 + 2^-20 = 1 + 16 u raises
 * it above the real one. The difference of squares is raised by that much of its first term before anything is taken off.
 */
#include "cpu/search/screen_lead.h"

#include <math.h>
#include <string.h>

static const float UP = 1.0f + 0x1p-20f;

static int32_t squares_of(const int8_t *codes, int32_t count)
{
    int32_t sum = 0; /* 65536 * 128^2 < 2^31 */
    for (int32_t i = 0; i < count; i++)
        sum += (int32_t)codes[i] * codes[i];
    return sum;
}

float lead_rest(const int8_t *codes, int32_t padded)
{
    return sqrtf((float)squares_of(codes + LEAD_CODES, padded - LEAD_CODES)) * UP;
}

/* More than the length of any codes, 128 * sqrt(65536): rows of i8 that are their own codes have -128, too. */
#define LENGTH_MAX (128.0f * 257.0f)

/* |codes| = |x^| / scale, and |x^| <= |x| + R. A row without a scale has no codes but 0. */
static float rest_of_row(float scale, float residual, float norm, float slack, int32_t leading_squares)
{
    if (!(scale > 0.0f))
        return 0.0f;
    const float found = (norm * (1.0f + slack) + SCREEN_VANISHED + residual) / scale;
    const float length = found < LENGTH_MAX ? found : LENGTH_MAX; /* for tiny rows the absolute errors would dominate */
    const float squares = length * length * UP - (float)leading_squares;
    return squares > 0.0f ? sqrtf(squares) * UP : 0.0f;
}

void lead_take(lead_rows *lead, const int8_t *codes, const screen_rows *rows, int32_t count, int32_t padded)
{
    int32_t squares[UNIT_ROWS];
    for (int32_t r = 0; r < count; r++) {
        memcpy(lead->codes + r * LEAD_CODES, codes + (int64_t)r * padded, LEAD_CODES);
        __builtin_prefetch(codes + (int64_t)(r + count) * padded);
        squares[r] = squares_of(lead->codes + r * LEAD_CODES, LEAD_CODES);
    }
    const float slack = screen_slack(padded);
    for (int32_t r = 0; r < count; r++)
        lead->rests[r] = rest_of_row(rows->scales[r], rows->residuals[r], rows->norms[r], slack, squares[r]);
}

/* Lengths are at most LENGTH_MAX and a little, so the product of two and the leading sum fit 31 bits. */
void lead_products(const lead_rows *lead, const screen_products *products, const int8_t *query, float rest, int32_t count,
                   int32_t *out)
{
    products->one(query, lead->codes, count, LEAD_CODES, out);
    for (int32_t r = 0; r < count; r++)
        out[r] += (int32_t)(rest * lead->rests[r] * UP) + 1;
}

void lead_of_group(const int8_t *codes, int32_t padded, int8_t leading[GROUP * LEAD_CODES])
{
    for (int32_t q = 0; q < GROUP; q++)
        memcpy(leading + q * LEAD_CODES, codes + (int64_t)q * padded, LEAD_CODES);
}

/* Scales differ more than lengths do, so each is multiplied by its own. */
void lead_rests_of_runs(const lead_rows *lead, const float *scales, int32_t count, float rests[SCREEN_STRIPS])
{
    for (int32_t run = 0; run < count / SCREEN_STRIP; run++) {
        float most = 0.0f;
        for (int32_t r = run * SCREEN_STRIP; r < (run + 1) * SCREEN_STRIP; r++)
            most = lead->rests[r] * scales[r] > most ? lead->rests[r] * scales[r] : most;
        rests[run] = most * UP;
    }
}
