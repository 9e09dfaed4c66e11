/* A fiber: a stack of its own that can be left and resumed. It never moves to another system thread. */
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

/* Which sanitizer this is compiled for. Fibers are annotated for address checks; thread checks ignore the emulator. */
#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN
#endif
#endif

#ifdef FIBER_ASAN
enum { FIBER_STACK_BYTES = 96 << 10 }; /* large, because sanitizers add red zones to frames */
#else
enum { FIBER_STACK_BYTES = 64 << 10 };
#endif

/* The distance between stacks. The extra lines spread their tops over the sets of the cache. */
enum { FIBER_STACK_STRIDE = FIBER_STACK_BYTES + 5 * 64 };

typedef struct fiber {
    char *stack; /* its lowest byte */
#ifdef FIBER_UCONTEXT
    ucontext_t self, resumer;
#else
    void *self, *resumer; /* the tops of both stacks; that of the running one is unused */
#endif
    void (*run)(void *argument);
    void *argument;
#ifdef FIBER_ASAN
    void *self_shadow, *resumer_shadow;
    const void *resumer_stack;
    size_t resumer_stack_bytes;
#endif
} fiber;

/* Prepares a fiber whose first resume calls `run(argument)`. `run` ends with fiber_leave(self, true) and does not return.
 * `stack` has FIBER_STACK_BYTES, is aligned to 16 and not in use, and no fiber was abandoned on it. */
void fiber_prepare(fiber *self, void *stack, void (*run)(void *argument), void *argument);

/* Continues the fiber until it leaves. */
void fiber_resume(fiber *self);

/* Called on the fiber: returns to where it was resumed; with `last` it has ended. */
void fiber_leave(fiber *self, bool last);

/* Returns false if the fiber has used its whole stack, and so has written outside it. Checks a mark at the stack's low end. */
bool fiber_stack_intact(const fiber *self);

#endif
