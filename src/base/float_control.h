/* Writing the control register for floats: rounding, flushing, traps. float_guard.h reads it and says who may change it. */
#ifndef WW_BASE_FLOAT_CONTROL_H
#define WW_BASE_FLOAT_CONTROL_H

#include <stdint.h>

static inline void float_control_set(uint64_t control)
{
#if defined(__x86_64__)
    const uint32_t word = (uint32_t)control;
    __asm__ volatile("ldmxcsr %0" ::"m"(word) : "memory");
#else
    __asm__ volatile("msr fpcr, %0" ::"r"(control) : "memory");
#endif
}

#endif
