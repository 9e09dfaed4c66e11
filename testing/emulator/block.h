/* One block at a time: its threads, its waves, its shared memory, and the order in which they run.
 *
 * A lane runs until it arrives at an operation where it must wait for others, or ends. A wave operation is complete when all
 * lanes of the wave that have not ended have arrived; the last one continues at once. Lanes of a wave can be at most one
 * operation apart, so their values are stored in two alternating buffers.
 */
#ifndef WW_EMULATOR_BLOCK_H
#define WW_EMULATOR_BLOCK_H

#include <stdatomic.h>

#include "emulator/emulator.h"
#include "emulator/fiber.h"

enum { MAX_WAVE = 64, MAX_WAVES = EMULATOR_MAX_THREADS / 32, MAX_REGIONS = 32 };

enum operation { OPERATION_BARRIER, OPERATION_WAVE_BARRIER, OPERATION_SHUFFLE, OPERATION_BALLOT, OPERATION_UNIFORM };

/* Shared by the blocks of a launch. */
struct launch {
    const emulated_kernel *kernel;
    const void *args;
    emulator_shape shape;
    atomic_ullong next_block; /* the first one that no system thread has taken */
    atomic_bool faulted;      /* set once, by the thread that then writes the message */
    char fault[EMULATOR_FAULT_BYTES];
};

struct block;
struct wave;

typedef struct lane_state {
    emulated_place place; /* first, because emulated_here points to it */
    struct wave *wave;
    fiber fiber;
    bool started, ended, waiting;
    uint32_t ticket; /* while waiting: how many operations the wave had completed when this lane arrived */
} lane_state;

struct wave {
    struct block *block;
    lane_state *lanes;
    uint32_t live;      /* lanes that have not ended */
    uint32_t arrived;   /* lanes that have arrived at the current operation */
    uint32_t completed; /* operations completed so far */
    enum operation operation;
    const char *where;
    uint32_t first_thread; /* the first one to arrive */
    uint64_t values[2][MAX_WAVE];
    uint64_t present[2]; /* one bit per lane that has provided a value */
    uint64_t ballot[2];
};

/* A piece of shared memory: a SHARED array or the dynamic region (site NULL). */
struct region {
    const char *site;
    char *base;
    size_t bytes;
};

struct block {
    struct launch *launch;
    lane_state *lanes;
    char *stacks;      /* one more than threads, so that one stack is always free */
    void **free_stack; /* a stack (LIFO) of free stacks */
    uint32_t free_stacks;
    struct wave waves[MAX_WAVES];
    uint32_t wave_count;
    uint32_t threads_ended;
    uint32_t threads_waiting; /* at the block's barrier */
    uint32_t waves_waiting;   /* waves whose lanes are all at the barrier */
    const char *barrier_where;
    uint32_t barrier_thread; /* the first thread to arrive there */
    uint64_t random;
    struct region regions[MAX_REGIONS];
    uint32_t region_count;
    size_t shared_used;
    char *shared;
};

/* Allocates the memory for blocks of this launch. Returns false if there is not enough. block_release() also accepts a block
 * that failed or is zero. */
bool block_create(struct block *block, struct launch *launch);
void block_release(struct block *block);

/* Runs block number `index` of the grid. Returns false if it, or another block in the meantime, has faulted. */
bool block_run(struct block *block, uint64_t index);

/* Called on a lane's fiber: ends the launch with this text after the names of the kernel, the block and the thread. */
__attribute__((format(printf, 2, 3), noreturn)) void lane_fault(lane_state *lane, const char *format, ...);

/* Called on a lane's fiber when all lanes of its wave are at an operation. Returns true if they may continue. */
bool wave_complete(lane_state *lane);

/* Returns the file name and line of a place, without folders. */
const char *file_and_line(const char *where);

#endif
