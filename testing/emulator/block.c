/* The threads of a block as fibers: starting, meeting, ending, and their order (block.h). */
#include "emulator/block.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "emulator/arena.h"

_Thread_local emulated_place *emulated_here;

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

bool block_create(struct block *block, struct launch *launch)
{
    const uint32_t threads = launch->shape.block;
    memset(block, 0, sizeof *block);
    block->launch = launch;
    block->wave_count = (threads + launch->shape.wave_size - 1) / launch->shape.wave_size;
    block->lanes = memory_alloc_zeroed(threads, sizeof *block->lanes);
    block->free_stack = memory_alloc_zeroed(threads + 1, sizeof *block->free_stack);
    block->stacks = arena_acquire();
    block->shared = block->stacks ? arena_shared(block->stacks) : NULL;
    return block->lanes && block->free_stack && block->stacks;
}

void block_release(struct block *block)
{
    /* After a fault, some fibers may not have ended. */
    arena_release(block->stacks, !atomic_load(&block->launch->faulted));
    memory_free(block->free_stack);
    memory_free(block->lanes);
}

/* ---- faults -------------------------------------------------------------------------------------------------------------- */

const char *file_and_line(const char *where)
{
    const char *slash = strrchr(where, '/');
    return slash ? slash + 1 : where;
}

void lane_fault(lane_state *lane, const char *format, ...)
{
    struct launch *launch = lane->wave->block->launch;
    if (!atomic_exchange(&launch->faulted, true)) {
        const emulated_place *at = &lane->place;
        const int used =
            snprintf(launch->fault, sizeof launch->fault, "kernel %s, block (%u,%u), thread %u: ", launch->kernel->name,
                     at->block_x, at->block_y, at->thread);
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(launch->fault + used, sizeof launch->fault - (size_t)used, format, arguments);
        va_end(arguments);
    }
    lane->ended = true;
    for (;;)
        fiber_leave(&lane->fiber, true);
}

/* ---- meeting ------------------------------------------------------------------------------------------------------------- */

static void wave_release(struct wave *wave)
{
    wave->arrived = 0;
    wave->completed++;
}

bool wave_complete(lane_state *lane)
{
    struct wave *wave = lane->wave;
    struct block *block = wave->block;
    if (wave->operation != OPERATION_BARRIER) {
        wave_release(wave);
        return true;
    }
    block->waves_waiting++;
    if (block->waves_waiting < block->wave_count)
        return false;
    block->waves_waiting = 0;
    block->threads_waiting = 0;
    for (uint32_t w = 0; w < block->wave_count; w++)
        wave_release(&block->waves[w]);
    return true;
}

/* ---- the life of a lane -------------------------------------------------------------------------------------------------- */

static void lane_end(lane_state *lane)
{
    struct wave *wave = lane->wave;
    struct block *block = wave->block;
    if (block->threads_waiting > 0)
        lane_fault(lane, "divergent barrier: ends, while thread %u waits at the barrier of %s", block->barrier_thread,
                   file_and_line(block->barrier_where));
    lane->ended = true;
    block->threads_ended++;
    wave->live--;
    if (wave->live > 0 && wave->arrived == wave->live)
        wave_complete(lane);
}

static void lane_main(void *argument)
{
    lane_state *lane = argument;
    const struct launch *launch = lane->wave->block->launch;
    launch->kernel->run(launch->args);
    lane_end(lane);
    fiber_leave(&lane->fiber, true);
}

/* Runs the lane until it waits or ends. It has a stack only from its start to its end, so a kernel without barriers and wave
 * operations needs a single stack. */
static void lane_run(lane_state *lane)
{
    struct block *block = lane->wave->block;
    if (!lane->started) {
        lane->started = true;
        fiber_prepare(&lane->fiber, block->free_stack[--block->free_stacks], lane_main, lane);
    }
    emulated_here = &lane->place;
    fiber_resume(&lane->fiber);
    if (!lane->ended)
        return;
    block->free_stack[block->free_stacks++] = lane->fiber.stack;
    if (!fiber_stack_intact(&lane->fiber) && !atomic_exchange(&block->launch->faulted, true))
        snprintf(block->launch->fault, sizeof block->launch->fault, "kernel %s, thread %u: more than %d bytes of stack",
                 block->launch->kernel->name, lane->place.thread, (int)FIBER_STACK_BYTES);
}

/* ---- order of execution -------------------------------------------------------------------------------------------------- */

/* Hashes x (the finalizer of MurmurHash3, with its constants). */
static uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ x >> 33;
}

static uint32_t block_random(struct block *block)
{
    block->random += 0x9e3779b97f4a7c15ull;
    return (uint32_t)(mix(block->random) >> 32);
}

static bool wave_can_run(const struct wave *wave)
{
    return wave->live > 0 && !(wave->arrived == wave->live && wave->operation == OPERATION_BARRIER);
}

/* Runs each lane of the wave once, as far as it can. The order is i -> a*i + b modulo the wave size, a power of two, with a
 * odd: a permutation that takes only two random numbers. */
static void wave_run(struct wave *wave)
{
    struct block *block = wave->block;
    const uint32_t size = block->launch->shape.wave_size;
    const bool shuffled = block->launch->shape.seed != 0;
    const uint32_t a = shuffled ? block_random(block) | 1 : 1;
    const uint32_t b = shuffled ? block_random(block) : 0;
    const uint32_t present = block->launch->shape.block - wave->lanes->place.thread;
    for (uint32_t i = 0; i < size; i++) {
        const uint32_t l = (a * i + b) & (size - 1);
        if (l >= present)
            continue;
        lane_state *lane = &wave->lanes[l];
        if (lane->ended || (lane->waiting && lane->ticket == wave->completed))
            continue;
        lane_run(lane);
        if (atomic_load_explicit(&block->launch->faulted, memory_order_relaxed))
            return;
    }
}

static void block_reset(struct block *block, uint64_t index)
{
    const emulator_shape *shape = &block->launch->shape;
    block->threads_ended = 0;
    block->threads_waiting = 0;
    block->waves_waiting = 0;
    block->random = mix(shape->seed ^ mix(index + 1));
    block->region_count = 0;
    block->shared_used = 0;
    block->free_stacks = 0;
    for (uint32_t t = shape->block + 1; t-- > 0;)
        block->free_stack[block->free_stacks++] = block->stacks + (size_t)t * FIBER_STACK_STRIDE;
    const emulated_place first_place = {.wave_size = shape->wave_size,
                                        .block_size = shape->block,
                                        .block_x = (uint32_t)(index % shape->grid_x),
                                        .block_y = (uint32_t)(index / shape->grid_x),
                                        .grid_x = shape->grid_x,
                                        .grid_y = shape->grid_y};
    for (uint32_t w = 0; w < block->wave_count; w++) {
        struct wave *wave = &block->waves[w];
        const uint32_t first = w * shape->wave_size;
        const uint32_t left = shape->block - first;
        wave->block = block;
        wave->lanes = block->lanes + first;
        wave->live = left < shape->wave_size ? left : shape->wave_size;
        wave->arrived = 0;
        wave->completed = 0;
        for (uint32_t l = 0; l < wave->live; l++) {
            lane_state *lane = &wave->lanes[l];
            lane->place = first_place;
            lane->place.thread = first + l;
            lane->place.lane = l;
            lane->wave = wave;
            lane->started = lane->ended = lane->waiting = false;
        }
    }
}

/* With seed 0, the first wave that can run does. With any other seed, a wave is chosen anew after every step. */
bool block_run(struct block *block, uint64_t index)
{
    block_reset(block, index);
    for (;;) {
        const uint32_t start = block->launch->shape.seed != 0 ? block_random(block) % block->wave_count : 0;
        struct wave *next = NULL;
        for (uint32_t i = 0; i < block->wave_count && !next; i++) {
            const uint32_t w = (start + i) % block->wave_count;
            next = wave_can_run(&block->waves[w]) ? &block->waves[w] : NULL;
        }
        if (!next)
            return true;
        wave_run(next);
        if (atomic_load_explicit(&block->launch->faulted, memory_order_relaxed))
            return false;
    }
}
