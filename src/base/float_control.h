/* Writes the control registers for floats: rounding, flushing, traps. float_guard.h reads them and says who may change them.
 */
#ifndef WW_BASE_FLOAT_CONTROL_H
#define WW_BASE_FLOAT_CONTROL_H

#include <stdint.h>

static inline void float_control_set(uint64_t control)
{
#if defined(__x86_64__)
    const uint32_t sse = (uint32_t)control;
    const uint16_t x87 = (uint16_t)(control >> 32);
    uint16_t x87_now, x87_happened;
    __asm__ volatile("ldmxcsr %0" ::"m"(sse) : "memory");
    /* Loading x87's control word takes longer than reading it. If an exception happened while it was masked, the next waiting
     * x87 instruction after unmasking would raise it, so pending exceptions are cleared before their traps are enabled. */
    __asm__ volatile("fnstcw %0" : "=m"(x87_now));
    if (x87_now != x87) {
        __asm__ volatile("fnstsw %0" : "=m"(x87_happened));
        if ((x87_happened & ~x87 & 0x3f) != 0)
            __asm__ volatile("fnclex");
        __asm__ volatile("fldcw %0" ::"m"(x87) : "memory");
    }
#else
    __asm__ volatile("msr fpcr, %0" ::"r"(control) : "memory");
#endif
}

#endif
