/* A fiber: a stack of its own that can be left and gone back to. It never moves to another system thread. */
#ifndef WW_EMULATOR_FIBER_H
#define WW_EMULATOR_FIBER_H

#include <stdbool.h>
#include <stddef.h>

#if !defined(__x86_64__) && !defined(__aarch64__) && !defined(FIBER_UCONTEXT)
#define FIBER_UCONTEXT
#endif
#ifdef FIBER_UCONTEXT
#include <ucontext.h>
#endif

/* For which sanitizer this is compiled. Address checks follow fibers by annotation; thread checks leave the emulator out. */
#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN
#endif
#endif

#ifdef FIBER_ASAN
enum { FIBER_STACK_BYTES = 96 << 10 }; /* frames have red zones */
#else
enum { FIBER_STACK_BYTES = 64 << 10 };
#endif

/* Stacks lie this far apart: the odd lines spread their tops over the sets of the cache. */
enum { FIBER_STACK_STRIDE = FIBER_STACK_BYTES + 5 * 64 };

typedef struct fiber {
    char *stack; /* its lowest byte */
#ifdef FIBER_UCONTEXT
    ucontext_t self, resumer;
#else
    void *self, *resumer; /* the tops of the two stacks, of whichever is not running */
#endif
    void (*run)(void *argument);
    void *argument;
#ifdef FIBER_ASAN
    void *self_shadow, *resumer_shadow;
    const void *resumer_stack;
    size_t resumer_stack_bytes;
#endif
} fiber;

/* Makes `run(argument)` what the first resume enters; it ends with fiber_leave(self, true) and does not return. `stack` has
 * FIBER_STACK_BYTES, aligned to 16, and is not in use,
 * and no fiber was abandoned on it. */
void fiber_prepare(fiber *self, void *stack, void (*run)(void *argument), void *argument);

/* Goes on in the fiber until it leaves. */
void fiber_resume(fiber *self);

/* Called on the fiber: goes back to where it was resumed, for good if `last`. */
void fiber_leave(fiber *self, bool last);

/* False if the fiber has used its whole stack, and so written outside it. Looks at a mark at the stack's low end. */
bool fiber_stack_intact(const fiber *self);

#endif
