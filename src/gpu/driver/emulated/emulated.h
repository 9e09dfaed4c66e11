/* The emulator as a driver, in builds with tests: two devices, emulator:32 and emulator:64, that run the library's own kernels
 * on the host in waves of that size.
 *
 * It is stricter than a real driver, so that what would go wrong there now and then goes wrong here always: a call without a
 * current context is refused; queued work is not done before someone waits for it; copies must lie inside live memory and
 * their host side inside pinned memory; fresh memory is full of NaN; a kernel that faults breaks the context for good.
 * What it holds is taken with malloc, as a vendor's library would: it is not the library's memory, and neither counted nor
 * failed with it (base/memory.h); tests/support/faulty_driver.h fails its calls instead. WARPWAVE_EMULATOR_SEED, read when a
 * context is made, chooses the order in which waves run; WARPWAVE_EMULATOR_BLOCKS_X, _BLOCKS_Y and _THREADS_X make the largest
 * launch smaller than a chip's, and a larger one is refused.
 */
#ifndef WW_GPU_DRIVER_EMULATED_EMULATED_H
#define WW_GPU_DRIVER_EMULATED_EMULATED_H

#include "gpu/driver/driver.h"

#ifdef WARPWAVE_EMULATOR

extern const gpu_driver emulated_driver;

/* What is alive in the emulated driver, over all devices: all 0 when everything was given back. */
typedef struct emulated_counts {
    int64_t contexts;
    int64_t blocks; /* of device memory */
    int64_t bytes;
    int64_t pinned;
    int64_t streams;
    int64_t events;
    int64_t modules;
    int64_t graphs;
} emulated_counts;

void emulated_count(emulated_counts *out);

/* How much memory each device has from now on; 0 is the default, 4 GiB. */
void emulated_set_memory(size_t bytes);

/* As by a fault of the hardware: what is queued is not done any more, nor what streams that are alive are given later. */
void emulated_lose(void);

/* From now on the pages behind each piece of device memory may not be touched, for who executes machine code there. */
void emulated_guard_memory(void);

#endif
#endif
