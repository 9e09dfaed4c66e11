/* A decimal number, and its nearest f32. */
#ifndef WW_BASE_JSON_DECIMAL_H
#define WW_BASE_JSON_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

enum { DECIMAL_DIGITS_MAX = 19 }; /* significant ones; any 19 fit in 64 bits */

typedef struct decimal {
    bool negative;
    bool exponent_known; /* false: the exponent in the text is too large to count */
    uint64_t digits;     /* the first significant ones, as an integer */
    int64_t exponent;    /* value = digits x 10^exponent, ignoring the digits that were left out */
} decimal;

/* Returns false if the nearest f32 is not certain: for one in fifty million random numbers, and for all tiny and huge ones.
 * They are for strtof, which is several times slower. */
bool decimal_to_f32(const decimal *d, float *value);

#endif
