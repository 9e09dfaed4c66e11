/* The floating-point environment inside the library is the default one, whatever the caller's is.
 *
 * A program may round upwards, flush denormals (linking with -ffast-math does that to the whole process) or trap on inexact
 * results; any of that would change canonical bits. So every public call that may compute starts with FLOAT_GUARD(), which
 * reads the control registers and, if they are not the default, sets them until the call returns. If they are the default, that
 * takes one read of each and one comparison. Callbacks run with the caller's environment: progress_tell().
 */
#ifndef WW_BASE_FLOAT_GUARD_H
#define WW_BASE_FLOAT_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <warpwave/status.h>

#if defined(__x86_64__)
/* SSE's control and status word, and above it x87's control word. Our arithmetic does not use x87, but glibc's strtof(),
 * strtod() and printf() read the rounding mode there, and fesetround() sets both. */
static inline uint64_t float_control(void)
{
    uint32_t sse;
    uint16_t x87;
    __asm__ volatile("stmxcsr %0" : "=m"(sse));
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    return (uint64_t)x87 << 32 | sse;
}
/* The state in which a process starts: no traps, to nearest, denormals kept, and x87's 64 bits of precision. */
#define FLOAT_CONTROL_DEFAULT (UINT64_C(0x037f) << 32 | UINT64_C(0x1f80))
/* SSE's exception flags, and a bit of x87's word without meaning: they do not change results. */
#define FLOAT_CONTROL_FLAGS (UINT64_C(0x0040) << 32 | UINT64_C(0x3f))
#elif defined(__aarch64__)
static inline uint64_t float_control(void)
{
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
}
#define FLOAT_CONTROL_DEFAULT UINT64_C(0)
#define FLOAT_CONTROL_FLAGS   UINT64_C(0)
#else
#error "float_guard.h needs this processor's control register for floats"
#endif

static inline bool float_control_is_default(void)
{
    return ((float_control() ^ FLOAT_CONTROL_DEFAULT) & ~FLOAT_CONTROL_FLAGS) == 0;
}

typedef struct float_guard {
    bool changed;
    uint64_t callers;   /* the caller's control registers */
    bool outer_changed; /* if a callback made this call: the state of the call around it */
    uint64_t outer_callers;
} float_guard;

/* Only for FLOAT_GUARD(). */
float_guard float_guard_change(void);
void float_guard_restore(const float_guard *guard);

static inline float_guard float_guard_enter(void)
{
    return __builtin_expect(float_control_is_default(), 1) ? (float_guard){.changed = false} : float_guard_change();
}

static inline void float_guard_leave(const float_guard *guard)
{
    if (__builtin_expect(guard->changed, 0))
        float_guard_restore(guard);
}

/* Holds until the end of the block. The first line of a public function. */
#define FLOAT_GUARD() const float_guard guard_ __attribute__((cleanup(float_guard_leave))) = float_guard_enter()

/* Calls `progress`, if it is not NULL, with the caller's environment. Returns true if it, or the call's token (cancel.h), asks
 * to stop. */
bool progress_tell(ww_progress progress, void *user, int64_t done, int64_t total);
/* The same for a callback with text. */
bool text_tell(int (*callback)(const char *text, size_t bytes, void *user), void *user, const char *text, size_t bytes);

#endif
