/* One block at a time: its threads, its waves, its shared memory, and the order in which they run.
 *
 * A lane runs until it arrives at an operation where it must wait for others, or ends. A wave operation is complete when all
 * lanes of the wave that still live have arrived; the last to arrive goes straight on. Lanes of a wave can be one operation
 * apart at most, so what they bring is kept in two buffers, alternating.
 */
#ifndef WW_EMULATOR_BLOCK_H
#define WW_EMULATOR_BLOCK_H

#include <stdatomic.h>

#include "emulator/emulator.h"
#include "emulator/fiber.h"

enum { MAX_WAVE = 64, MAX_WAVES = EMULATOR_MAX_THREADS / 32, MAX_REGIONS = 32 };

enum operation { OPERATION_BARRIER, OPERATION_WAVE_BARRIER, OPERATION_SHUFFLE, OPERATION_BALLOT, OPERATION_UNIFORM };

/* What the blocks of a launch have in common. */
struct launch {
    const emulated_kernel *kernel;
    const void *args;
    emulator_shape shape;
    atomic_ullong next_block; /* the first that no system thread has taken */
    atomic_bool faulted;      /* set once, by the thread that then writes the text */
    char fault[EMULATOR_FAULT_BYTES];
};

struct block;
struct wave;

typedef struct lane_state {
    emulated_place place; /* first: emulated_here points at it */
    struct wave *wave;
    fiber fiber;
    bool started, ended, waiting;
    uint32_t ticket; /* while waiting: how many operations the wave had completed on arrival */
} lane_state;

struct wave {
    struct block *block;
    lane_state *lanes;
    uint32_t live;      /* lanes that have not ended */
    uint32_t arrived;   /* lanes at the operation that is under way */
    uint32_t completed; /* operations so far */
    enum operation operation;
    const char *where;
    uint32_t first_thread; /* to arrive */
    uint64_t values[2][MAX_WAVE];
    uint64_t present[2]; /* a bit a lane that brought a value */
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
    char *stacks;      /* one more than threads, so that one is always free */
    void **free_stack; /* a stack of free ones */
    uint32_t free_stacks;
    struct wave waves[MAX_WAVES];
    uint32_t wave_count;
    uint32_t threads_ended;
    uint32_t threads_waiting; /* at the block's barrier */
    uint32_t waves_waiting;   /* at the barrier with all their lanes */
    const char *barrier_where;
    uint32_t barrier_thread; /* the first to arrive at it */
    uint64_t random;
    struct region regions[MAX_REGIONS];
    uint32_t region_count;
    size_t shared_used;
    char *shared;
};

/* Takes the memory for blocks of this launch; false without it. block_release() accepts one that failed or is zero. */
bool block_create(struct block *block, struct launch *launch);
void block_release(struct block *block);

/* Runs block number `index` of the grid; false if it, or another block meanwhile, has faulted. */
bool block_run(struct block *block, uint64_t index);

/* On a lane's fiber: ends the launch with this text after the names of the kernel, the block and the thread. */
__attribute__((format(printf, 2, 3), noreturn)) void lane_fault(lane_state *lane, const char *format, ...);

/* On a lane's fiber: all of its wave's lanes are at an operation; true if they may go on. */
bool wave_complete(lane_state *lane);

/* The file name and line of a place, without folders. */
const char *file_and_line(const char *where);

#endif
