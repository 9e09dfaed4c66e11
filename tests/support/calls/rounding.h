/* Calls under another rounding mode, set as programs do with fesetround(), which on x86-64 changes the control words of SSE and
 * x87.
 */
#ifndef TESTS_ROUNDING_H
#define TESTS_ROUNDING_H

#include <fenv.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/float_guard.h"
#include "support/check.h"

/* The first one is to nearest, the reference for the others. */
static const int ROUNDINGS[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
enum { ROUNDING_COUNT = sizeof ROUNDINGS / sizeof *ROUNDINGS };

static int rounding; /* the mode for the next call */
static uint64_t rounding_control;

static inline void rounding_begin(void)
{
    assert_int_equal(fesetround(rounding), 0);
    rounding_control = float_control() & ~FLOAT_CONTROL_FLAGS;
}

/* Back to nearest, for the test's own arithmetic. The call must not have changed any control word. */
static inline void rounding_end(void)
{
    const int mode = fegetround();
    const uint64_t control = float_control() & ~FLOAT_CONTROL_FLAGS;
    fesetround(FE_TONEAREST);
    assert_int_equal(mode, rounding);
    assert_true(control == rounding_control);
}

static inline ww_status rounding_back(ww_status status)
{
    rounding_end();
    return status;
}

#define ROUNDED(call) (rounding_begin(), rounding_back(call))

/* Numbers whose f32 or f64 depends on the rounding mode, as texts: decimal fractions, long ones next to halfway points, tiny
 * ones. */
enum { HARD_NUMBERS = 240, HARD_NUMBER_BYTES = 64 };
static inline void hard_number(int index, char text[HARD_NUMBER_BYTES])
{
    const double unit = 1.0 + index / 256.0;
    switch (index % 4) {
    case 0:
        snprintf(text, HARD_NUMBER_BYTES, "%s%d.%d", index % 8 ? "-" : "", index, index * 7 + 1);
        break;
    case 1: /* halfway between two floats, and a little more or less */
        snprintf(text, HARD_NUMBER_BYTES, "%.24f%d", unit + 0x1p-24, index % 8 == 1);
        break;
    case 2: /* no normal float */
        snprintf(text, HARD_NUMBER_BYTES, "%d.%de-4%d", index, index * 3 + 1, 0);
        break;
    default:
        snprintf(text, HARD_NUMBER_BYTES, "%.17ge%d", unit / 3.0, index % 30 - 15);
    }
}

#endif
