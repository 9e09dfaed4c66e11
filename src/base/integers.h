/* Integers: the smaller, the larger, and division that rounds up.
 *
 * A macro would evaluate its arguments twice and silently compare signed with unsigned, so there is one function for each type.
 * Host code only: kernels have their own in arithmetic/.
 */
#ifndef WW_BASE_INTEGERS_H
#define WW_BASE_INTEGERS_H

#include <stddef.h>
#include <stdint.h>

static inline int32_t min_i32(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static inline int32_t max_i32(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static inline int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* `n` / `unit`, rounded up; and the smallest multiple of `unit` that is at least `n`. `n` must not be negative, `unit` must be
 * positive, and n + unit - 1 must fit in the type. */
static inline int64_t divide_up_i64(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit;
}

static inline int64_t round_up_i64(int64_t n, int64_t unit)
{
    return divide_up_i64(n, unit) * unit;
}

static inline size_t round_up_size(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

#endif
