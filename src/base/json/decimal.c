/* Decimal numbers to f32, correctly rounded.
 *
 * This computes in double: the first 19 digits as an integer, multiplied or divided by a power of ten. A double has 29 more
 * bits than an f32, and the error is small compared with those. So rounding to f32 is correct unless the double is next to a
 * halfway point between two floats.
 */
#include "base/json/decimal.h"

#include <string.h>

enum { POWER_MAX = 38 };

/* Returns true if the fast way applies and its result is certain.
 *
 * Digits, power and result are each rounded once, by at most 2^-53 of their value, and the digits that were left out are less
 * than 2^-59. Together that is less than 3.1 x 2^-53, at most 3.1 units in the last place of a double. So a double that is more
 * than 4 units from every halfway point is on the same side of it as the true value. */
bool decimal_to_f32(const decimal *d, float *value)
{
    static const double powers[POWER_MAX + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11, 1e12,
                                                 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23, 1e24, 1e25,
                                                 1e26, 1e27, 1e28, 1e29, 1e30, 1e31, 1e32, 1e33, 1e34, 1e35, 1e36, 1e37, 1e38};
    if (!d->exponent_known || d->exponent < -POWER_MAX || d->exponent > POWER_MAX)
        return false;
    double x = (double)d->digits;
    x = d->exponent < 0 ? x / powers[-d->exponent] : x * powers[d->exponent];
    if (x != 0.0 && (x < 0x1.1p-126 || x >= 0x1p127)) /* denormals have other halfway points; above 2^128 there are none */
        return false;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int64_t beyond_half = (int64_t)(bits & 0x1fffffff) - 0x10000000; /* of the 29 bits that an f32 does not have */
    if (x != 0.0 && beyond_half >= -4 && beyond_half <= 4)
        return false;
    *value = (float)(d->negative ? -x : x);
    return true;
}
