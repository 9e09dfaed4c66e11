/* A ring of stages in shared memory that the copy engine fills while the block works: the filling thread waits for room, the
 * working waves wait for bytes, and the waves of a block need not go in step.
 *
 * One thread fills the stages in order, with ring_acquire, ring_expect and any number of ring_copy each; or several do, each
 * its share. The working waves use them in the same order, with ring_await before and ring_release after; a wave may be a few
 * stages ahead of another. Each side has its own position in the ring, a ring_cursor that starts as {0, 0}.
 *
 * From sm_90 on this uses the bulk copy engine and its barriers, which count bytes that came and waves that left. On all other
 * chips, and in the emulator, the filling thread copies at once and the block meets instead: twice per stage, when it is
 * awaited and when it is released, so every wave that does not work must call ring_pass once for each stage.
 */
#ifndef WW_KERNELS_SIMT_RING_H
#define WW_KERNELS_SIMT_RING_H

#include "kernels/simt/simt.h"

typedef struct ring {
    uint64_t *full, *empty; /* shared: `stages` of each */
    uint32_t stages;
} ring;

typedef struct ring_cursor {
    uint32_t stage; /* below ring.stages */
    uint32_t phase; /* how often all stages were used; barriers know whether that is even or odd */
} ring_cursor;

DEVICE void ring_next(const ring *r, ring_cursor *cursor)
{
    cursor->stage++;
    if (cursor->stage == r->stages) {
        cursor->stage = 0;
        cursor->phase++;
    }
}

/* Divides a block's registers again, for 128 threads at a time: many for threads that work, few for threads that feed. */
#if defined(__NVPTX__) && defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define RING_REGISTERS_MORE(count)  __asm__ volatile("setmaxnreg.inc.sync.aligned.u32 " #count ";")
#define RING_REGISTERS_FEWER(count) __asm__ volatile("setmaxnreg.dec.sync.aligned.u32 " #count ";")
#else
#define RING_REGISTERS_MORE(count)  ((void)0)
#define RING_REGISTERS_FEWER(count) ((void)0)
#endif

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

DEVICE void ring_init(const uint64_t *barrier_at, uint32_t arrivals)
{
    __asm__ volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(ring_address(barrier_at)), "r"(arrivals) : "memory");
}

/* `fillers` threads fill and `waves` waves work; 0 waves if the block has barriers instead of releases, and there is no
 * ring->empty. All threads call it; it ends with a barrier. */
DEVICE void ring_begin(const ring *r, uint32_t fillers, uint32_t waves)
{
    if (thread_index() == 0) {
        for (uint32_t i = 0; i < r->stages; i++) {
            ring_init(&r->full[i], fillers);
            if (waves > 0)
                ring_init(&r->empty[i], waves);
        }
        __asm__ volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    barrier();
}

/* Waits until there is room. Filling threads call this and ring_expect(). */
DEVICE void ring_acquire(const ring *r, ring_cursor at)
{
    if (at.phase > 0)
        ring_wait(&r->empty[at.stage], (at.phase + 1) % 2);
}

/* How many bytes the thread will copy, all its copies together; a multiple of 16. */
DEVICE void ring_expect(const ring *r, ring_cursor at, uint32_t bytes)
{
    __asm__ volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(ring_address(&r->full[at.stage])),
                     "r"(bytes)
                     : "memory");
}

DEVICE void ring_copy(const ring *r, ring_cursor at, void *to, const void *from, uint32_t bytes)
{
    __asm__ volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(ring_address(to)),
        "l"((const __attribute__((address_space(1))) char *)(const char *)from), "r"(bytes),
        "r"(ring_address(&r->full[at.stage]))
        : "memory");
}

/* Makes what this thread has seen others write visible to copies that it begins after this. */
DEVICE void ring_sees_writes(void)
{
    __asm__ volatile("fence.proxy.async.global;" ::: "memory");
}

DEVICE void ring_pass(const ring *r)
{
    (void)r;
}

DEVICE void ring_await(const ring *r, ring_cursor at)
{
    ring_wait(&r->full[at.stage], at.phase % 2);
    wave_barrier();
}

/* A whole wave calls it when all its lanes have finished reading. */
DEVICE void ring_release(const ring *r, ring_cursor at)
{
    wave_barrier();
    if (lane() == 0)
        __asm__ volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(ring_address(&r->empty[at.stage])) : "memory");
}

/* For asynchronous work. Each stage is released late, while the next is worked on: `now` releases the stage before it, if there
 * `is_one`; the last stage is released at the end. If the block meets instead, work is done at once, and `now` itself is
 * released. */
DEVICE void ring_release_before(const ring *r, ring_cursor now)
{
    ring_cursor before = now;
    before.stage = (now.stage == 0 ? r->stages : now.stage) - 1;
    ring_release(r, before);
}

DEVICE void ring_release_late(const ring *r, ring_cursor now, bool is_one)
{
    if (is_one)
        ring_release_before(r, now);
}

DEVICE void ring_release_last(const ring *r, ring_cursor now)
{
    ring_release_before(r, now);
}

#else

DEVICE void ring_acquire(const ring *r, ring_cursor at)
{
    (void)r;
    (void)at;
}

DEVICE void ring_expect(const ring *r, ring_cursor at, uint32_t bytes)
{
    (void)r;
    (void)at;
    (void)bytes;
}

DEVICE void ring_copy(const ring *r, ring_cursor at, void *to, const void *from, uint32_t bytes)
{
    (void)r;
    (void)at;
    for (uint32_t i = 0; i < bytes / 16; i++)
        ((u32x4 *)to)[i] = load_u32x4((const uint32_t *)from + (size_t)i * 4);
}

/* One place in the source at which all waves meet: the emulator detects divergence by the place. */
DEVICE void ring_meet(void)
{
    barrier();
}

#define ring_begin(r, fillers, waves)     ((void)(r), (void)(fillers), (void)(waves), ring_meet())
#define ring_await(r, at)                 ((void)(r), (void)(at), ring_meet())
#define ring_release(r, at)               ((void)(r), (void)(at), ring_meet())
#define ring_release_late(r, now, is_one) ((void)(is_one), ring_release(r, now))
#define ring_release_last(r, now)         ((void)(r), (void)(now))

DEVICE void ring_pass(const ring *r)
{
    (void)r;
    ring_meet();
    ring_meet();
}

#endif

#endif
