/* A launch: checks the shape, then runs the blocks of the grid on several system threads if there is enough work. */
#include "emulator/emulator.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/system/threads.h"
#include "base/text.h"
#include "emulator/block.h"

/* Starting a thread takes as long as some thousand emulated ones. Under the thread sanitizer, which does not understand the
 * emulator, there is only one. */
enum { MAX_WORKERS = 16, WORTH_A_WORKER = 4096 };

static bool check_shape(const emulated_kernel *kernel, size_t args_bytes, const emulator_shape *shape, char *fault,
                        size_t bytes)
{
    int used = 0;
    if (args_bytes != kernel->args_bytes)
        used = snprintf(fault, bytes, "kernel %s takes %zu bytes of arguments, not %zu", kernel->name, kernel->args_bytes,
                        args_bytes);
    else if (shape->wave_size != 32 && shape->wave_size != 64)
        used = snprintf(fault, bytes, "kernel %s: a wave has 32 or 64 lanes, not %u", kernel->name, shape->wave_size);
    else if (shape->block == 0 || shape->block > kernel->max_threads || shape->block > EMULATOR_MAX_THREADS)
        used = snprintf(fault, bytes, "kernel %s: a block of %u threads; it was compiled for 1 to %u", kernel->name,
                        shape->block, kernel->max_threads);
    else if (shape->grid_x == 0 || shape->grid_x > INT32_MAX || shape->grid_y > EMULATOR_MAX_GRID_Y)
        used = snprintf(fault, bytes, "kernel %s: a grid of %u by %u blocks; x is 1 to 2^31-1, y at most %d", kernel->name,
                        shape->grid_x, shape->grid_y, (int)EMULATOR_MAX_GRID_Y);
    else if (shape->shared_bytes > EMULATOR_SHARED_BYTES)
        used = snprintf(fault, bytes, "kernel %s: %zu bytes of shared memory; a block has %d", kernel->name,
                        shape->shared_bytes, (int)EMULATOR_SHARED_BYTES);
    return used == 0;
}

/* With a seed, blocks run backwards or forwards, starting with any of them. */
static uint64_t block_number(const emulator_shape *shape, uint64_t blocks, uint64_t i)
{
    if (shape->seed == 0)
        return i;
    const uint64_t along = (shape->seed & 1) ? blocks - 1 - i : i;
    return (along + shape->seed / 2 % blocks) % blocks;
}

static void *run_blocks(void *argument)
{
    struct launch *launch = argument;
    const uint64_t blocks = (uint64_t)launch->shape.grid_x * launch->shape.grid_y;
    struct block block;
    bool good = block_create(&block, launch);
    if (!good && !atomic_exchange(&launch->faulted, true))
        snprintf(launch->fault, sizeof launch->fault, "kernel %s: no memory for the stacks of %u threads", launch->kernel->name,
                 launch->shape.block);
    while (good) {
        const uint64_t i = atomic_fetch_add(&launch->next_block, 1);
        if (i >= blocks)
            break;
        good = block_run(&block, block_number(&launch->shape, blocks, i));
    }
    block_release(&block);
    emulated_here = NULL;
    return NULL;
}

static uint32_t worker_count(const emulator_shape *shape)
{
#ifdef WARPWAVE_THREAD_SANITIZER
    (void)shape;
    return 1;
#else
    const uint64_t blocks = (uint64_t)shape->grid_x * shape->grid_y;
    uint64_t count = blocks * shape->block / WORTH_A_WORKER;
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (processors > 0 && count > (uint64_t)processors)
        count = (uint64_t)processors;
    if (count > blocks)
        count = blocks;
    return count > MAX_WORKERS ? MAX_WORKERS : count < 1 ? 1 : (uint32_t)count;
#endif
}

bool emulator_launch(const emulated_kernel *kernel, const void *args, size_t args_bytes, const emulator_shape *shape,
                     char fault[EMULATOR_FAULT_BYTES])
{
    struct launch launch = {.kernel = kernel, .args = args, .shape = *shape};
    if (launch.shape.grid_y == 0)
        launch.shape.grid_y = 1;
    if (!check_shape(kernel, args_bytes, &launch.shape, fault, EMULATOR_FAULT_BYTES))
        return false;

    /* If a worker cannot be started, the others run its blocks. */
    pthread_t workers[MAX_WORKERS];
    uint32_t started = 0;
    const uint32_t wanted = worker_count(&launch.shape) - 1;
    while (started < wanted && thread_start(&workers[started], "ww-emulator", run_blocks, &launch) == 0)
        started++;
    run_blocks(&launch);
    for (uint32_t w = 0; w < started; w++)
        pthread_join(workers[w], NULL);

    if (atomic_load(&launch.faulted)) {
        text_copy(fault, EMULATOR_FAULT_BYTES, launch.fault);
        return false;
    }
    return true;
}
