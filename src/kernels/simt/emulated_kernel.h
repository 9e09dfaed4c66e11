/* What an emulated kernel is, and what it needs from the emulator: the interface between simt_emulated.h and testing/emulator.
 * It is separate from simt_emulated.h so that host code can refer to a kernel without including the kernel language. */
#ifndef WW_KERNELS_SIMT_EMULATED_KERNEL_H
#define WW_KERNELS_SIMT_EMULATED_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A kernel as the emulator runs it. */
typedef struct emulated_kernel {
    const char *name;
    void (*run)(const void *args); /* what one thread does */
    size_t args_bytes;
    uint32_t max_threads;
} emulated_kernel;

/* What the running thread can read without a call. */
typedef struct emulated_place {
    uint32_t thread, lane, wave_size;
    uint32_t block_size;
    uint32_t block_x, block_y, grid_x, grid_y;
} emulated_place;

extern _Thread_local emulated_place *emulated_here;

void emulated_barrier(const char *where);
void emulated_wave_barrier(const char *where);
uint32_t emulated_shuffle_u32(uint32_t value, uint32_t from, const char *where);
uint64_t emulated_shuffle_u64(uint64_t value, uint32_t from, const char *where);
uint64_t emulated_ballot(bool predicate, const char *where);
uint32_t emulated_uniform_u32(uint32_t value, const char *where);
/* The block's array that was declared at `site`: the same for all threads of the block. */
void *emulated_shared(const char *site, size_t bytes);
void *emulated_shared_dynamic(void);
/* Returns base + index * element_bytes if `count` elements from there lie in the shared array that contains `base`. Otherwise
 * it reports a fault and does not return. */
void *emulated_shared_at(const void *base, int64_t index, size_t element_bytes, size_t count, const char *where);

/* A kernel of a caller is a shared object (include/warpwave/kernel.h) that is compiled with WARPWAVE_OWN_KERNEL. It calls the
 * emulator through this table, which is set when the object is loaded (emulator/object.c). */
typedef struct emulated_calls {
    emulated_place *(*here)(void);
    void (*barrier)(const char *where);
    void (*wave_barrier)(const char *where);
    uint32_t (*shuffle_u32)(uint32_t value, uint32_t from, const char *where);
    uint64_t (*shuffle_u64)(uint64_t value, uint32_t from, const char *where);
    uint64_t (*ballot)(bool predicate, const char *where);
    uint32_t (*uniform_u32)(uint32_t value, const char *where);
    void *(*shared)(const char *site, size_t bytes);
    void *(*shared_dynamic)(void);
    void *(*shared_at)(const void *base, int64_t index, size_t element_bytes, size_t count, const char *where);
} emulated_calls;

#ifdef WARPWAVE_OWN_KERNEL
__attribute__((weak, visibility("default"))) const emulated_calls *warpwave_emulator;
#define emulated_here           (warpwave_emulator->here())
#define emulated_barrier        warpwave_emulator->barrier
#define emulated_wave_barrier   warpwave_emulator->wave_barrier
#define emulated_shuffle_u32    warpwave_emulator->shuffle_u32
#define emulated_shuffle_u64    warpwave_emulator->shuffle_u64
#define emulated_ballot         warpwave_emulator->ballot
#define emulated_uniform_u32    warpwave_emulator->uniform_u32
#define emulated_shared         warpwave_emulator->shared
#define emulated_shared_dynamic warpwave_emulator->shared_dynamic
#define emulated_shared_at      warpwave_emulator->shared_at
#endif

#endif
