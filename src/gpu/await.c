/* Waiting for a kernel's answer by polling.
 *
 * A driver reports the end of a kernel some microseconds after its last word is in host memory, which is a large part of a
 * short search. So the thread polls the words themselves, for as long as that matters. It then waits with the driver, which
 * handles a lost device, a kernel that takes longer, and memory that the host only sees after the kernel has ended.
 */

#include "base/clock.h"
#include "gpu/stream.h"

enum {
    POLL_NANOSECONDS = 300 * 1000, /* after that, a few microseconds are less than a hundredth of the wait */
    POLLS_PER_CLOCK = 32           /* polls between two readings of the clock */
};

static void rest(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Skips the words that were written. Returns true if all were. */
static bool all_written(const uint64_t *words, int64_t count, int64_t *seen)
{
    while (*seen < count && __atomic_load_n(&words[*seen], __ATOMIC_ACQUIRE) != 0)
        ++*seen;
    return *seen == count;
}

ww_status gpu_await(gpu_stream *stream, const uint64_t *words, int64_t count)
{
    gpu_device *device = stream->device;
    int64_t seen = 0;
    const int64_t until = device->driver->kernels_run_unwaited ? clock_nanoseconds() + POLL_NANOSECONDS : 0;
    while (until > 0 && clock_nanoseconds() < until)
        for (int32_t looks = 0; looks < POLLS_PER_CLOCK; looks++) {
            if (all_written(words, count, &seen)) {
                atomic_store(&stream->state, STREAM_ANSWERED);
                return WW_OK;
            }
            rest();
        }
    return gpu_synchronize(stream);
}
