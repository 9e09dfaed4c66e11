/* Integers: the smaller, the larger, and division that rounds up.
 *
 * A macro would compute its arguments twice and compare signed with unsigned in silence, so there is one function for each
 * type. Host code only: kernels have their own in arithmetic/.
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

/* `n` / `unit`, rounded up, and the smallest multiple of `unit` that is not below `n`. `n` is not negative, `unit` is
 * positive, and n + unit - 1 must fit the type. */
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
