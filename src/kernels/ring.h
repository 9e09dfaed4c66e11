/* A ring of stages in shared memory that the copy engine fills while the block works: who fills waits for room, who works waits
 * for bytes, and the waves of a block need not go in step.
 *
 * One thread fills: stage number n goes to place n % stages, by ring_open, ring_expect and any number of ring_copy. All threads
 * use the stages in order, ring_take before and ring_give behind; a thread may be a few stages ahead of another.
 *
 * From sm_90 on by the bulk copy engine and its barriers, which count bytes that came and waves that went. Everywhere else, for
 * the emulator above all, the filling thread copies at once and the block meets instead.
 */
#ifndef WW_KERNELS_RING_H
#define WW_KERNELS_RING_H

#include "kernels/simt.h"

typedef struct ring {
    uint64_t *full, *empty; /* shared: `stages` of each */
    uint32_t stages;
} ring;

#if defined(__NVPTX__) && __CUDA_ARCH__ >= 900

DEVICE uint32_t ring_address(const void *shared)
{
    return (uint32_t)(uintptr_t)(const __attribute__((address_space(3))) char *)(const char *)shared;
}

DEVICE void ring_wait(const uint64_t *barrier_at, uint32_t parity)
{
    __asm__ volatile("{\n"
                     ".reg .pred done;\n"
                     "WAIT_%=:\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                     "@!done bra WAIT_%=;\n"
                     "}" ::"r"(ring_address(barrier_at)),
                     "r"(parity)
                     : "memory");
}

/* By all threads; ends with a barrier. */
DEVICE void ring_begin(const ring *r)
{
    if (thread_index() == 0) {
        for (uint32_t i = 0; i < r->stages; i++) {
            __asm__ volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(ring_address(&r->full[i])) : "memory");
            __asm__ volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(ring_address(&r->empty[i])), "r"(waves_per_block())
                             : "memory");
        }
        __asm__ volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    barrier();
}

/* Waits until stage `number` has its place. By the filling thread, as the next two. */
DEVICE void ring_open(const ring *r, uint32_t number)
{
    if (number >= r->stages)
        ring_wait(&r->empty[number % r->stages], (number / r->stages + 1) % 2);
}

/* How many bytes the stage will have, all its copies together; a multiple of 16. */
DEVICE void ring_expect(const ring *r, uint32_t number, uint32_t bytes)
{
    __asm__ volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(ring_address(&r->full[number % r->stages])),
                     "r"(bytes)
                     : "memory");
}

DEVICE void ring_copy(const ring *r, uint32_t number, void *to, const void *from, uint32_t bytes)
{
    __asm__ volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(ring_address(to)),
        "l"((const __attribute__((address_space(1))) char *)(const char *)from), "r"(bytes),
        "r"(ring_address(&r->full[number % r->stages]))
        : "memory");
}

DEVICE void ring_take(const ring *r, uint32_t number)
{
    ring_wait(&r->full[number % r->stages], number / r->stages % 2);
}

/* By a whole wave, when all its lanes have read what they want. */
DEVICE void ring_give(const ring *r, uint32_t number)
{
    wave_barrier();
    if (lane() == 0)
        __asm__ volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(ring_address(&r->empty[number % r->stages]))
                         : "memory");
}

#else

DEVICE void ring_begin(const ring *r)
{
    (void)r;
    barrier();
}

DEVICE void ring_open(const ring *r, uint32_t number)
{
    (void)r;
    (void)number;
}

DEVICE void ring_expect(const ring *r, uint32_t number, uint32_t bytes)
{
    (void)r;
    (void)number;
    (void)bytes;
}

DEVICE void ring_copy(const ring *r, uint32_t number, void *to, const void *from, uint32_t bytes)
{
    (void)r;
    (void)number;
    for (uint32_t at = 0; at < bytes / 16; at++)
        ((u32x4 *)to)[at] = load_u32x4((const uint32_t *)from + (size_t)at * 4);
}

/* Macros, so that in the emulator a barrier keeps the line where the kernel wrote it. */
#define ring_take(r, number) ((void)(r), (void)(number), barrier())
#define ring_give(r, number) ((void)(r), (void)(number), barrier())

#endif

#endif
