/* The emulator: runs a kernel on the host as a GPU would, block by block, wave by wave, lane by lane.
 *
 * Threads of a block are fibers, so that they can meet at barriers and wave operations; a thread runs until it has to wait. A
 * seed decides the order in which waves and lanes run: a kernel that forgot a barrier gives the right answer only for some
 * seeds. Errors that a GPU would not report (threads that diverge at a barrier or a wave operation, an index outside a shared
 * array) end the launch with a fault that names the kernel, the block, the thread and the line. Blocks may run on several
 * system threads. Not emulated: time, and spinning until another thread of the grid writes, which would never end.
 */
#ifndef WW_EMULATOR_EMULATOR_H
#define WW_EMULATOR_EMULATOR_H

#include "kernels/simt/emulated_kernel.h"

enum {
    EMULATOR_MAX_THREADS = 1024,   /* a block */
    EMULATOR_SHARED_BYTES = 65536, /* static and dynamic together; every supported chip has this much */
    EMULATOR_FAULT_BYTES = 512,    /* enough for every message about a fault */
    EMULATOR_MAX_GRID_Y = 65535,
};

typedef struct emulator_shape {
    uint32_t grid_x, grid_y; /* blocks; 0 in grid_y means 1 */
    uint32_t block;          /* threads */
    uint32_t wave_size;      /* 32 or 64 */
    size_t shared_bytes;     /* dynamic */
    uint64_t seed;           /* 0: in order; any other seed: a different order, but always the same one */
} emulator_shape;

/* Returns the kernel of kernels.def with this name, or NULL. */
const emulated_kernel *emulator_find(const char *name);

/* Runs the kernel over the whole grid. Blocking. Returns false, with the reason in `fault`, if the launch is refused (its shape
 * or argument size does not fit the kernel, or there is not enough memory) or if the kernel faults; then part of the grid may
 * have run. */
bool emulator_launch(const emulated_kernel *kernel, const void *args, size_t args_bytes, const emulator_shape *shape,
                     char fault[EMULATOR_FAULT_BYTES]);

#endif
