/* Bounds from the leading parts of codes. Plain C is fast enough: searches of few queries are bound by memory, and this reads
 * little of it.
 *
 * Roundings: every float below results from at most 8 operations on positive numbers, so a factor of 1 + 2^-20 = 1 + 16 u makes
 * it larger than the real number. A difference of squares is increased by that factor of its first term before the subtraction.
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

/* An upper bound for the length of any codes: 128 * sqrt(65536) plus a margin. Rows of i8 are their own codes and can have
 * -128. */
#define LENGTH_MAX (128.0f * 257.0f)

/* |codes| = |x^| / scale, and |x^| <= |x| + R. A row with scale 0 has only codes 0. */
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

/* Lengths are at most LENGTH_MAX plus a little, so the product of two lengths plus the leading sum fits in 31 bits. */
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

/* Scales differ more than lengths do, so each length is multiplied by its own scale. */
void lead_rests_of_runs(const lead_rows *lead, const float *scales, int32_t count, float rests[SCREEN_STRIPS])
{
    for (int32_t run = 0; run < count / SCREEN_STRIP; run++) {
        float rest_max = 0.0f;
        for (int32_t r = run * SCREEN_STRIP; r < (run + 1) * SCREEN_STRIP; r++)
            rest_max = lead->rests[r] * scales[r] > rest_max ? lead->rests[r] * scales[r] : rest_max;
        rests[run] = rest_max * UP;
    }
}
