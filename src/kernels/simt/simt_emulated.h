/* simt.h for the emulator: the host's compiler, and functions of testing/emulator that know which thread is running.
 *
 * Operations at which threads meet are macros that pass their place in the source. If threads meet at different places, they
 * have diverged, and the emulator's fault names both. Lookups go through one thread-local pointer; a fiber never changes its
 * system thread.
 */
#ifndef WW_KERNELS_SIMT_SIMT_EMULATED_H
#define WW_KERNELS_SIMT_SIMT_EMULATED_H

#include <stdatomic.h>
#include <string.h>

#include "kernels/simt/emulated_kernel.h"

#define DEVICE CANON_FUNCTION
#define UNROLL
#define UNROLL_BY(n)

#define SIMT_TEXT(x)       #x
#define SIMT_LINE(file, n) file ":" SIMT_TEXT(n)
#define SIMT_WHERE         SIMT_LINE(__FILE__, __LINE__)

/* NOLINTBEGIN(bugprone-macro-parentheses): a type cannot be in parentheses */
#define KERNEL(name, args_type, max_threads)                                                                                   \
    static void name##_body(const args_type args);                                                                             \
    static void name##_run(const void *bytes)                                                                                  \
    {                                                                                                                          \
        args_type args;                                                                                                        \
        memcpy(&args, bytes, sizeof args);                                                                                     \
        name##_body(args);                                                                                                     \
    }                                                                                                                          \
    extern const emulated_kernel emulated_##name;                                                                              \
    const emulated_kernel emulated_##name = {#name, name##_run, sizeof(args_type), max_threads};                               \
    static void name##_body(const args_type args)

#define KERNEL_RESIDENT(name, args_type, max_threads, blocks) KERNEL(name, args_type, max_threads)

#define SHARED(type, name, count)                                                                                              \
    static const char name##_site[] = #name;                                                                                   \
    type *const name = (type *)emulated_shared(name##_site, sizeof(type) * (size_t)(count))
#define SHARED_DYNAMIC(type, name) type *const name = (type *)emulated_shared_dynamic()
/* NOLINTEND(bugprone-macro-parentheses) */
#define IN_GLOBAL(type, pointer)   (pointer)
#define IN_CONSTANT(type, pointer) ((const type *)(pointer))
#define LOAD_GLOBAL(type, address) (*(const type *)(uintptr_t)(address))
#define SETTLE(variable)           ((void)(variable))
#define SETTLE_UNIFORM(variable)   ((void)(variable))
#define SCHEDULE_APART()           ((void)0)
#define arguments_again(args)      (args)
#define AT(array, index)                                                                                                       \
    (*(__typeof__(&(array)[0]))emulated_shared_at((array), (int64_t)(index), sizeof((array)[0]), 1, SIMT_WHERE))
#define AT_RANGE(array, index, count)                                                                                          \
    ((__typeof__(&(array)[0]))emulated_shared_at((array), (int64_t)(index), sizeof((array)[0]), (size_t)(count), SIMT_WHERE))

/* ---- who am I ------------------------------------------------------------------------------------------------------------ */

DEVICE uint32_t thread_index(void)
{
    return emulated_here->thread;
}

DEVICE uint32_t block_size(void)
{
    return emulated_here->block_size;
}

DEVICE uint32_t block_index(void)
{
    return emulated_here->block_x;
}

DEVICE uint32_t block_index_y(void)
{
    return emulated_here->block_y;
}

DEVICE uint32_t block_count(void)
{
    return emulated_here->grid_x;
}

DEVICE uint32_t block_count_y(void)
{
    return emulated_here->grid_y;
}

DEVICE uint32_t wave_size(void)
{
    return emulated_here->wave_size;
}

DEVICE uint32_t lane(void)
{
    return emulated_here->lane;
}

DEVICE uint32_t wave_index(void)
{
    return emulated_here->thread / emulated_here->wave_size;
}

/* ---- meeting, and wave operations ---------------------------------------------------------------------------------------- */

#define barrier()        emulated_barrier(SIMT_WHERE)
#define barrier_shared() emulated_barrier(SIMT_WHERE)
#define wave_barrier()   emulated_wave_barrier(SIMT_WHERE)

DEVICE void memory_fence_device(void)
{
    atomic_thread_fence(memory_order_seq_cst);
}

SIMT_LAUNCHES_IN_ORDER

DEVICE void prefetch_line(const void *from)
{
    (void)from;
}

#define wave_shuffle_u32(value, from)     emulated_shuffle_u32((value), (from), SIMT_WHERE)
#define wave_shuffle_xor_u32(value, mask) emulated_shuffle_u32((value), lane() ^ (mask), SIMT_WHERE)
#define wave_shuffle_u64(value, from)     emulated_shuffle_u64((value), (from), SIMT_WHERE)
#define wave_shuffle_xor_u64(value, mask) emulated_shuffle_u64((value), lane() ^ (mask), SIMT_WHERE)
#define wave_ballot(predicate)            emulated_ballot((predicate), SIMT_WHERE)
#define wave_uniform_u32(value)           emulated_uniform_u32((value), SIMT_WHERE)

/* ---- atomics: real ones, since blocks run on several threads ------------------------------------------------------------- */

/* NOLINTBEGIN(bugprone-macro-parentheses, readability-non-const-parameter): types, as above; and the builtins do write */
#define SIMT_ATOMIC_ACCESS(suffix, type)                                                                                       \
    DEVICE type atomic_add_##suffix(type *target, type operand)                                                                \
    {                                                                                                                          \
        return __atomic_fetch_add(target, operand, __ATOMIC_RELAXED);                                                          \
    }                                                                                                                          \
    DEVICE type atomic_cas_##suffix(type *target, type expected, type desired)                                                 \
    {                                                                                                                          \
        __atomic_compare_exchange_n(target, &expected, desired, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);                        \
        return expected;                                                                                                       \
    }                                                                                                                          \
    DEVICE type atomic_load_##suffix(const type *from)                                                                         \
    {                                                                                                                          \
        return __atomic_load_n(from, __ATOMIC_RELAXED);                                                                        \
    }                                                                                                                          \
    DEVICE void atomic_store_##suffix(type *to, type value)                                                                    \
    {                                                                                                                          \
        __atomic_store_n(to, value, __ATOMIC_RELAXED);                                                                         \
    }
SIMT_ATOMIC_ACCESS(u32, uint32_t)
SIMT_ATOMIC_ACCESS(u64, uint64_t)
#undef SIMT_ATOMIC_ACCESS

DEVICE void store_host_u64(uint64_t *to, uint64_t value)
{
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
}

DEVICE uint64_t atomic_min_u64(uint64_t *target, uint64_t operand)
{
    uint64_t old = __atomic_load_n(target, __ATOMIC_RELAXED);
    while (operand < old && !__atomic_compare_exchange_n(target, &old, operand, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    return old;
}

DEVICE uint32_t atomic_max_u32(uint32_t *target, uint32_t operand)
{
    uint32_t old = __atomic_load_n(target, __ATOMIC_RELAXED);
    while (operand > old && !__atomic_compare_exchange_n(target, &old, operand, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    return old;
}

DEVICE uint32_t atomic_exchange_u32(uint32_t *target, uint32_t value)
{
    return __atomic_exchange_n(target, value, __ATOMIC_RELAXED);
}

/* NOLINTEND(bugprone-macro-parentheses, readability-non-const-parameter) */

/* ---- 16 bytes at a time -------------------------------------------------------------------------------------------------- */
/* With the alignment of their types, so that UBSan reports an address on which a GPU would fault. */

DEVICE f32x2 load_f32x2(const float *from)
{
    return *(const f32x2 *)from;
}

DEVICE f32x4 load_f32x4(const float *from)
{
    return *(const f32x4 *)from;
}

DEVICE f32x4 load_f32x4_streaming(const float *from)
{
    return *(const f32x4 *)from;
}

DEVICE f32x4 load_f32x4_readonly(const float *from)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): not null if the kernel's arguments promise it */
    return *(const f32x4 *)from;
}

DEVICE void store_f32x4(float *to, f32x4 value)
{
    *(f32x4 *)to = value;
}

/* Copies at once: a chip with asynchronous copies may do that, too. */
typedef struct f32x4_copy {
    char nothing;
} f32x4_copy;

DEVICE void f32x4_copy_begin(f32x4_copy *copy, float *to, const float *from)
{
    (void)copy;
    store_f32x4(to, load_f32x4(from));
}

DEVICE void f32x4_copy_end(f32x4_copy *copy, float *to)
{
    (void)copy;
    (void)to;
}

DEVICE bool copies_in_background(void)
{
    return true;
}

DEVICE u32x4 load_u32x4(const uint32_t *from)
{
    return *(const u32x4 *)from;
}

DEVICE u32x4 load_u32x4_streaming(const uint32_t *from)
{
    return *(const u32x4 *)from;
}

DEVICE u32x4 load_u32x4_readonly(const uint32_t *from)
{
    return *(const u32x4 *)from;
}

DEVICE u32x2 load_u32x2_readonly(const uint32_t *from)
{
    return *(const u32x2 *)from;
}

DEVICE uint32_t load_u32_readonly(const uint32_t *from)
{
    return *from;
}

DEVICE f32x4 bytes_f32x4(uint32_t word, float less)
{
    const f32x4 value = {(float)(word & 255u) - less, (float)(word >> 8 & 255u) - less, (float)(word >> 16 & 255u) - less,
                         (float)(word >> 24) - less};
    return value;
}

SIMT_COPY_AT_ONCE

#endif
