/* The emulator as a driver, in builds with tests: two devices, emulator:32 and emulator:64, that run the library's own kernels
 * on the host in waves of that size.
 *
 * It is stricter than a real driver, so that errors that are rare there always show here: a call without a current context is
 * refused; queued work is not done before a call waits for it; copies must be inside live memory and their host side inside
 * pinned memory; fresh memory is full of NaN; a kernel that faults breaks the context for good. It allocates with malloc, as a
 * vendor's library would, so that its memory is neither counted nor made to fail with the library's (base/memory.h);
 * tests/support/faulty_driver.h fails its calls instead. WARPWAVE_EMULATOR_SEED, read when a context is made, chooses the order
 * in which waves run; WARPWAVE_EMULATOR_BLOCKS_X, _BLOCKS_Y and _THREADS_X make the largest launch smaller than a chip's, and a
 * larger one is refused.
 */
#ifndef WW_EMULATED_EMULATED_H
#define WW_EMULATED_EMULATED_H

#include "device/backend.h"
#include "gpu/driver/driver.h"

extern const gpu_driver emulated_driver;
extern const backend backend_emulator; /* the GPU backend over it */

/* The objects that exist in the emulated driver, over all devices: all 0 when everything was freed. */
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

/* Sets the memory of each device; 0 is the default, 4 GiB. */
void emulated_set_memory(size_t bytes);

/* Simulates a hardware fault: queued work is not done, nor is later work on existing streams. */
void emulated_lose(void);

/* From now on the page after each piece of device memory is inaccessible, for tests that execute machine code. */
void emulated_guard_memory(void);

#endif
