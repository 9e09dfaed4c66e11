/* Calls with a floating-point environment that is not the default: another rounding mode, flushed denormals, traps. */
#ifndef TESTS_FLOAT_CONTROL_H
#define TESTS_FLOAT_CONTROL_H

#include "base/float_control.h"
#include "base/float_guard.h"
#include "support/check.h"

enum { ENVIRONMENTS = 16 };

/* Number 0 is the default; then every rounding mode, with and without flushing, with and without traps. */
static inline uint64_t environment(int number)
{
    const uint64_t rounding = (uint64_t)number & 3;
    const bool flush = number & 4, traps = number & 8;
#if defined(__x86_64__)
    const uint64_t x87 = (traps ? 0x0340u : 0x037fu) | rounding << 10;
    return x87 << 32 | (traps ? 0 : 0x1f80u) | rounding << 13 | (flush ? 0x8040u : 0);
#else
    return (traps ? 0x1f00u : 0) | rounding << 22 | (flush ? 1u << 24 | 1u << 19 : 0);
#endif
}

static uint64_t hostile; /* the environment for the next call */

/* What the register contains after `hostile` was written: a processor without traps ignores their bits. */
static inline uint64_t taken(void)
{
    float_control_set(hostile);
    const uint64_t control = float_control();
    float_control_set(FLOAT_CONTROL_DEFAULT);
    return control;
}

static inline ww_status back(uint64_t expected, ww_status status)
{
    const uint64_t control = float_control();
    float_control_set(FLOAT_CONTROL_DEFAULT);
    assert_true(((control ^ expected) & ~(uint64_t)FLOAT_CONTROL_FLAGS) == 0);
    return status;
}

/* Only the call runs in that environment, not the test's own arithmetic. */
#define UNDER(call)                                                                                                            \
    do {                                                                                                                       \
        const uint64_t expected_ = taken();                                                                                    \
        float_control_set(hostile);                                                                                            \
        CHECK_OK(back(expected_, (call)));                                                                                     \
    } while (0)

#endif
