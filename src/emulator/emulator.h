/* The emulator: runs a kernel on the host as a GPU would, block by block, wave by wave, lane by lane.
 *
 * Threads of a block are fibers, so that they can meet at barriers and wave operations; a thread runs until it has to wait. A
 * seed decides the order in which waves and lanes run: a kernel that forgot a barrier gives the right answer only for some
 * seeds. Errors that a GPU would not report (threads that diverge at a barrier or a wave operation, an index outside a shared
 * array) end the launch with a fault that names the kernel, the block, the thread and the line. Blocks may run on several
 * system threads. Not emulated: spinning until another thread of the grid writes (it would spin forever), and time.
 */
#ifndef WW_EMULATOR_EMULATOR_H
#define WW_EMULATOR_EMULATOR_H

#include "kernels/simt/emulated_kernel.h"

enum {
    EMULATOR_MAX_THREADS = 1024,   /* a block */
    EMULATOR_SHARED_BYTES = 65536, /* static and dynamic together: what every chip in the list has */
    EMULATOR_FAULT_BYTES = 512,    /* room for any fault's text */
    EMULATOR_MAX_GRID_Y = 65535,
};

typedef struct emulator_shape {
    uint32_t grid_x, grid_y; /* blocks; 0 in grid_y means 1 */
    uint32_t block;          /* threads */
    uint32_t wave_size;      /* 32 or 64 */
    size_t shared_bytes;     /* dynamic */
    uint64_t seed;           /* 0: in order. Any other: a different order, the same each time */
} emulator_shape;

/* The kernel of kernels.def called `name`, or NULL. */
const emulated_kernel *emulator_find(const char *name);

/* Runs the kernel over the whole grid; blocking. False, with the reason in `fault`, when the launch is refused (a shape or an
 * argument size that does not fit the kernel, no memory) or when the kernel faults; then part of the grid may have run. */
bool emulator_launch(const emulated_kernel *kernel, const void *args, size_t args_bytes, const emulator_shape *shape,
                     char fault[EMULATOR_FAULT_BYTES]);

#endif
