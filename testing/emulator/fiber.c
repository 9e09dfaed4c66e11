/* Fibers, with a hand-written switch of a dozen instructions (switch.S), or with ucontext on other machines. */
#include "emulator/fiber.h"

#include <stdint.h>
#include <string.h>

#ifdef FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

static const uint64_t stack_mark = 0x5fa7e57ac4b0770full;

#ifndef FIBER_UCONTEXT
void emulated_switch(void **from, void *to);
void emulated_begin(void);
#endif

/* The first function that runs on a fiber's own stack. */
static void fiber_main(void *argument)
{
    fiber *self = argument;
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(NULL, &self->resumer_stack, &self->resumer_stack_bytes);
#endif
    self->run(self->argument);
}

#ifdef FIBER_UCONTEXT
/* makecontext() passes ints. */
static void fiber_main_halves(unsigned high, unsigned low)
{
    fiber_main((void *)((uintptr_t)high << 16 << 16 | (uintptr_t)low));
}
#endif

void fiber_prepare(fiber *self, void *stack, void (*run)(void *argument), void *argument)
{
    self->stack = stack;
    self->run = run;
    self->argument = argument;
#ifdef FIBER_ASAN
    /* The outermost frames of the previous fiber on this stack never returned, so their red zones are still marked. */
    enum { OUTERMOST_BYTES = 4096 };
    __asan_unpoison_memory_region((char *)stack + FIBER_STACK_BYTES - OUTERMOST_BYTES, OUTERMOST_BYTES);
#endif
    memcpy(stack, &stack_mark, sizeof stack_mark);
#ifdef FIBER_UCONTEXT
    getcontext(&self->self);
    self->self.uc_stack.ss_sp = stack;
    self->self.uc_stack.ss_size = FIBER_STACK_BYTES;
    self->self.uc_link = NULL;
    makecontext(&self->self, (void (*)(void))fiber_main_halves, 2, (unsigned)((uintptr_t)self >> 16 >> 16),
                (unsigned)(uintptr_t)self);
#else
    /* The values that emulated_switch pops from the stack, lowest address first. */
    void **top = (void **)((char *)stack + FIBER_STACK_BYTES);
#if defined(__x86_64__)
    /* r15 r14 r13 r12 rbx rbp, the return address, and two words so that the stack is aligned at the call in emulated_begin. */
    top -= 9;
    memset(top, 0, 9 * sizeof *top);
    top[2] = (void *)fiber_main;
    top[3] = self;
    top[6] = (void *)emulated_begin;
#else
    /* x19 to x30, then d8 to d15 */
    top -= 20;
    memset(top, 0, 20 * sizeof *top);
    top[0] = self;
    top[1] = (void *)fiber_main;
    top[11] = (void *)emulated_begin;
#endif
    self->self = top;
#endif
}

void fiber_resume(fiber *self)
{
#ifdef FIBER_ASAN
    __sanitizer_start_switch_fiber(&self->resumer_shadow, self->stack, FIBER_STACK_BYTES);
#endif
#ifdef FIBER_UCONTEXT
    swapcontext(&self->resumer, &self->self);
#else
    emulated_switch(&self->resumer, self->self);
#endif
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(self->resumer_shadow, NULL, NULL);
#endif
}

void fiber_leave(fiber *self, bool last)
{
#ifdef FIBER_ASAN
    __sanitizer_start_switch_fiber(last ? NULL : &self->self_shadow, self->resumer_stack, self->resumer_stack_bytes);
#else
    (void)last;
#endif
#ifdef FIBER_UCONTEXT
    swapcontext(&self->self, &self->resumer);
#else
    emulated_switch(&self->self, self->resumer);
#endif
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(self->self_shadow, &self->resumer_stack, &self->resumer_stack_bytes);
#endif
}

bool fiber_stack_intact(const fiber *self)
{
    return memcmp(self->stack, &stack_mark, sizeof stack_mark) == 0;
}
