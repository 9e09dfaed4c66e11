/* High planes in plain C, which compilers vectorize: it takes less time than making the codes. */
#include "cpu/search/high_plane.h"

float high_plane_make(const int8_t *codes, int32_t padded, screen_vector row, uint8_t *highs)
{
    const int32_t half = padded / 2;
    int32_t squares = 0;
    for (int32_t i = 0; i < half; i++) {
        const int32_t first = screen_high(codes[i]), second = screen_high(codes[half + i]);
        const int32_t rest = codes[i] - 16 * first, other = codes[half + i] - 16 * second;
        highs[i] = (uint8_t)((uint32_t)first << 4 | ((uint32_t)second & 15));
        squares += rest * rest + other * other;
    }
    return screen_high_residual(row.scale, row.residual, squares);
}
