/* The words a kernel is written in: one C source for AMD GPUs, NVIDIA GPUs and the emulator on the host.
 *
 * A kernel is C11 that is valid C++ too (clang compiles it as HIP and as CUDA): void pointers are cast, initialisers are
 * positional. It needs no vendor header: simt_amd.h and simt_nvidia.h use only clang's builtins, simt_emulated.h uses
 * testing/emulator. Each defines the same words; what they share is here. docs/design/kernels.md is the guide.
 *
 *   KERNEL(name, args_type, max_threads) { ... }   an entry point; its one argument is the struct `args`, by value
 *   KERNEL_RESIDENT(name, args_type, max_threads, blocks) { ... }   the same, with the registers that let a compute unit hold
 *                                                  this many of its blocks, no fewer and no more
 *   KERNEL_MATRIX(name, args_type, max_threads) { ... }   the same for matrix instructions: at least two waves per SIMD
 *   DEVICE int32_t helper(int32_t x) { ... }       a function for kernels, always inlined
 *   SHARED(type, name, count);                     an array shared by the block, uninitialised
 *   SHARED_DYNAMIC(type, name);                    the same, of the size given at launch; all declarations name one region
 *   AT(array, index)                               an element of a shared array; the emulator checks the bounds
 *   AT_RANGE(array, index, count)                  a pointer to `count` elements from there, checked in the same way
 *   IN_GLOBAL(type, pointer)                       `pointer`, which was read from memory and points to global memory
 *   IN_CONSTANT(type, pointer)                     `pointer`, equal in all lanes, to memory that nothing writes during
 *                                                  the kernel: the scalar unit reads `->field` and `[index]` of it
 *   SETTLE(variable)                               computes a 32-bit variable now: computing it later would keep all its
 *                                                  operands in registers
 *   SETTLE_UNIFORM(variable)                       the same for 32 or 64 bits that are equal in all lanes
 *   LOAD_GLOBAL(type, address)                     the value at an address of global memory, a uint64_t
 *   SCHEDULE_APART()                               the compiler moves no instruction across this
 *   UNROLL, UNROLL_BY(n)                           before a loop: unrolls all of it, or n iterations
 *
 *   thread_index() block_size() block_index() block_count() block_index_y() block_count_y()
 *   lane() wave_size() wave_index() waves_per_block()
 *
 *   barrier()                 all threads of the block meet; then all see what they wrote to shared and global memory
 *   barrier_shared()          the same, but only for shared memory
 *   wave_barrier()            like barrier(), for the lanes of a wave
 *   memory_fence_device()     the device sees this thread's earlier writes before its later ones
 *   prefetch_line(from)       prefetches the 128 bytes around a global address into the second-level cache, if the chip
 *                             can; writes of other threads in the meantime are seen
 *   launches_wait()           waits until the work queued on the stream before this kernel has ended; its writes are then
 *                             seen. Only a kernel that is launched early (gpu/launch.h) needs it: all its threads must call it,
 *                             on every path, before they write, and before they read what earlier work may still write
 *   launches_next()           this block allows a kernel that is launched early to start
 *   launches_meet(&met)       both, unless `met` is set, and sets it: when the next kernel starts early, only this one can
 *                             still be running
 *
 *   wave_shuffle_{u32,f32,u64}(value, from)        the value of lane `from`; undefined if that lane has ended
 *   wave_shuffle_xor_{u32,f32,u64}(value, mask)    the value of lane() ^ mask; best with a constant mask
 *   wave_ballot(predicate) wave_any(..) wave_all(..)   bit i is lane i's; lanes that have ended do not count
 *   wave_sum_up_to_u32(value)                      the sum over this lane and the lanes before it; all lanes must run
 *   wave_uniform_u32(value)                        `value`, which is the same in all lanes, for the chip's scalar unit
 *
 *   atomic_add_{u32,u64} atomic_min_u64 atomic_max_u32 atomic_cas_{u32,u64} atomic_exchange_u32: relaxed, on shared or global
 *   memory, return the old value; atomic_load_{u32,u64}, atomic_store_{u32,u64}: never torn, never cached by the compiler
 *   store_host_u64(to, value)                      never torn; visible to a host that polls while the kernel runs
 *
 *   min_f64 max_f64 min_negated_f64(x, y): for numbers that are neither NaN nor zero; the last is min_f64(x, -y)
 *   fma_f32 sqrt_f32 div_f32: one correct rounding, denormals kept, on every target
 *   f32x4 with load_f32x4, load_f32x4_streaming, load_f32x4_readonly, store_f32x4 (16-byte aligned), f32x4_fma
 *   f32x2 with load_f32x2 (8-byte aligned)
 *   f32x4_copy with f32x4_copy_begin(&copy, to, from), f32x4_copy_end(&copy, to): 16 bytes from global to shared memory. A copy
 *   belongs to a group as below and is complete when the thread has waited for the group; all threads see it after a barrier.
 *   copies_in_background() returns true if several copies can be in flight together
 *   u32x4 with load_u32x4, load_u32x4_streaming, load_u32x4_readonly: the same for four words
 *   u32x2 with load_u32x2_readonly (8-byte aligned), load_u32_readonly: the same for two words and for one
 *   bytes_f32x4(word, less): the four bytes of a word, 0 to 255, as floats, each minus `less`, a small integer
 *   copy_16(to, from), copy_8(to, from): 16 or 8 bytes, aligned to that, from global to shared memory, in the background if
 *   the chip can do that. copies_commit() ends a group of them; copies_wait(n), n 0..6, waits for all groups of this thread
 *   except its last n; other threads of the block see them after a barrier
 *   dot4_i8(a, b, sum): sum and the products of four pairs of signed bytes
 *   lookup_nibbles(table, word): a table of 16 bytes, indexed by the low halves of a word's bytes, and by the high halves
 *
 * A wave operation (shuffle, ballot, wave_barrier) must be reached by all running lanes of the wave together, a barrier by all
 * threads of the block. Inside a branch that some of them do not take they are an error, which the emulator reports.
 */
#ifndef WW_KERNELS_SIMT_SIMT_H
#define WW_KERNELS_SIMT_SIMT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arithmetic/function.h"

/* Four floats in 16 aligned bytes: the widest access every chip has. */
typedef struct __attribute__((aligned(16))) f32x4 {
    float x, y, z, w;
} f32x4;

/* Two floats in 8 aligned bytes. */
typedef struct __attribute__((aligned(8))) u32x2 {
    uint32_t x, y;
} u32x2;

typedef struct __attribute__((aligned(8))) f32x2 {
    float x, y;
} f32x2;

/* May alias any four words: copies use this type. */
typedef struct __attribute__((aligned(16), may_alias)) u32x4 {
    uint32_t x, y, z, w;
} u32x4;

/* f32x4_copy for a chip without a copy engine: the bytes wait in registers. */
#define SIMT_COPY_THROUGH_REGISTERS                                                                                            \
    typedef struct f32x4_copy {                                                                                                \
        f32x4 value;                                                                                                           \
    } f32x4_copy;                                                                                                              \
    DEVICE void f32x4_copy_begin(f32x4_copy *copy, float *to, const float *from)                                               \
    {                                                                                                                          \
        (void)to;                                                                                                              \
        copy->value = load_f32x4(from);                                                                                        \
    }                                                                                                                          \
    DEVICE void f32x4_copy_end(f32x4_copy *copy, float *to)                                                                    \
    {                                                                                                                          \
        store_f32x4(to, copy->value);                                                                                          \
    }                                                                                                                          \
    DEVICE bool copies_in_background(void)                                                                                     \
    {                                                                                                                          \
        return false;                                                                                                          \
    }

/* copy_16 and copy_8 for such a chip: they copy at once. */
#define SIMT_COPY_AT_ONCE                                                                                                      \
    DEVICE void copy_16(uint32_t *to, const uint32_t *from)                                                                    \
    {                                                                                                                          \
        *(u32x4 *)to = load_u32x4(from);                                                                                       \
    }                                                                                                                          \
    DEVICE void copy_8(uint64_t *to, const uint64_t *from)                                                                     \
    {                                                                                                                          \
        *to = *from;                                                                                                           \
    }                                                                                                                          \
    DEVICE void copies_commit(void)                                                                                            \
    {                                                                                                                          \
    }                                                                                                                          \
    DEVICE void copies_wait(int32_t left)                                                                                      \
    {                                                                                                                          \
        (void)left;                                                                                                            \
    }

/* The launches_ words for a chip that runs the kernels of a stream one after the other. */
#define SIMT_LAUNCHES_IN_ORDER                                                                                                 \
    DEVICE void launches_wait(void)                                                                                            \
    {                                                                                                                          \
    }                                                                                                                          \
    DEVICE void launches_next(void)                                                                                            \
    {                                                                                                                          \
    }

#if defined(__AMDGCN__)
#include "kernels/simt/simt_amd.h"
#elif defined(__NVPTX__)
#include "kernels/simt/simt_nvidia.h"
#else
#include "kernels/simt/simt_emulated.h"
#endif

#include "arithmetic/canon.h"

DEVICE uint32_t waves_per_block(void)
{
    return (block_size() + wave_size() - 1) / wave_size();
}

DEVICE void launches_meet(bool *met)
{
    if (*met)
        return;
    launches_wait();
    launches_next();
    *met = true;
}

/* ---- arithmetic: each of these rounds once ------------------------------------------------------------------------------- */

DEVICE float fma_f32(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}

DEVICE float sqrt_f32(float x)
{
    return CANON_SQRT(x);
}

DEVICE float div_f32(float a, float b)
{
    return a / b;
}

DEVICE f32x4 make_f32x4(float x, float y, float z, float w)
{
    f32x4 value;
    value.x = x;
    value.y = y;
    value.z = z;
    value.w = w;
    return value;
}

#define F32X4_ZERO make_f32x4(0.0f, 0.0f, 0.0f, 0.0f)

DEVICE f32x4 f32x4_fma(f32x4 a, f32x4 b, f32x4 c)
{
    return make_f32x4(fma_f32(a.x, b.x, c.x), fma_f32(a.y, b.y, c.y), fma_f32(a.z, b.z, c.z), fma_f32(a.w, b.w, c.w));
}

DEVICE f32x4 f32x4_add(f32x4 a, f32x4 b)
{
    return make_f32x4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

DEVICE f32x4 f32x4_sub(f32x4 a, f32x4 b)
{
    return make_f32x4(a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w);
}

/* dot4_i8 for chips without an instruction for it. */
DEVICE int32_t dot4_i8_plain(uint32_t a, uint32_t b, int32_t sum)
{
    for (uint32_t shift = 0; shift < 32; shift += 8)
        sum += (int32_t)(int8_t)(a >> shift) * (int32_t)(int8_t)(b >> shift);
    return sum;
}

typedef struct nibble_bytes {
    uint32_t low, high;
} nibble_bytes;

/* lookup_nibbles for chips without an instruction for it. */
DEVICE nibble_bytes lookup_nibbles_plain(u32x4 table, uint32_t word)
{
    nibble_bytes found = {0, 0};
    for (uint32_t shift = 0; shift < 32; shift += 8)
        for (uint32_t high = 0; high < 2; high++) {
            const uint32_t code = word >> (shift + 4 * high) & 15u;
            const uint32_t four = code < 8 ? code < 4 ? table.x : table.y : code < 12 ? table.z : table.w;
            *(high ? &found.high : &found.low) |= (four >> code % 4 * 8 & 255u) << shift;
        }
    return found;
}

DEVICE nibble_bytes lookup_nibbles(u32x4 table, uint32_t word)
{
#if defined(SIMT_SELECT_BYTES) /* (a, b, selectors): four bytes select from the eight bytes of b and a, 0..7 each */
    nibble_bytes found;
    for (uint32_t high = 0; high < 2; high++) {
        const uint32_t codes = word >> 4 * high, places = codes & 0x07070707u;
        const uint32_t lower = SIMT_SELECT_BYTES(table.y, table.x, places), upper = SIMT_SELECT_BYTES(table.w, table.z, places);
        const uint32_t bytes = SIMT_SELECT_BYTES(upper, lower, (codes >> 1 & 0x04040404u) | 0x03020100u);
        *(high ? &found.high : &found.low) = bytes;
    }
    return found;
#elif defined(SIMT_SELECT_NIBBLES) /* (a, b, selectors): four nibbles select bytes of a and b, 0..7 each */
    const uint32_t places = word & 0x77777777u, halves = (word >> 1 & 0x44444444u) | 0x32103210u;
    const uint32_t first = SIMT_SELECT_NIBBLES(SIMT_SELECT_NIBBLES(table.x, table.y, places),
                                               SIMT_SELECT_NIBBLES(table.z, table.w, places), halves);
    const uint32_t second = SIMT_SELECT_NIBBLES(SIMT_SELECT_NIBBLES(table.x, table.y, places >> 16),
                                                SIMT_SELECT_NIBBLES(table.z, table.w, places >> 16), halves >> 16);
    const nibble_bytes found = {SIMT_SELECT_NIBBLES(first, second, 0x6420u), SIMT_SELECT_NIBBLES(first, second, 0x7531u)};
    return found;
#else
    return lookup_nibbles_plain(table, word);
#endif
}

#ifndef SIMT_DOT4
#define SIMT_DOT4         dot4_i8_plain
#define SIMT_DOT4_IS_LONG /* about 15 instructions: loops around it should not be unrolled */
#endif

DEVICE int32_t dot4_i8(uint32_t a, uint32_t b, int32_t sum)
{
    return SIMT_DOT4(a, b, sum);
}

DEVICE int32_t dot16_i8(u32x4 a, u32x4 b, int32_t sum)
{
    return dot4_i8(a.w, b.w, dot4_i8(a.z, b.z, dot4_i8(a.y, b.y, dot4_i8(a.x, b.x, sum))));
}

/* ---- shuffles of other types, from the 32-bit ones ----------------------------------------------------------------------- */
/* Macros, so that the emulator knows the line of the kernel that called them. */

#define wave_shuffle_f32(value, from)     canon_bits_float(wave_shuffle_u32(canon_float_bits(value), (from)))
#define wave_shuffle_xor_f32(value, mask) canon_bits_float(wave_shuffle_xor_u32(canon_float_bits(value), (mask)))

/* The sum of the values of this lane and the lanes before it. */
#ifndef SIMT_SUMS_UP_TO
DEVICE uint32_t wave_sum_up_to_u32(uint32_t value)
{
    for (uint32_t apart = 1; apart < wave_size(); apart *= 2) {
        const uint32_t other = wave_shuffle_u32(value, lane() >= apart ? lane() - apart : lane());
        value += lane() >= apart ? other : 0;
    }
    return value;
}
#endif

/* For numbers that are not NaN. */
#ifndef SIMT_MIN_F64
DEVICE double min_f64(double x, double y)
{
    return x < y ? x : y;
}

DEVICE double max_f64(double x, double y)
{
    return x < y ? y : x;
}

DEVICE double min_negated_f64(double x, double y)
{
    return min_f64(x, -y);
}
#endif

#define wave_any(predicate) (wave_ballot(predicate) != 0)

#ifndef KERNEL_MATRIX
#define KERNEL_MATRIX(name, args_type, max_threads) KERNEL(name, args_type, max_threads)
#endif
#define wave_all(predicate) (wave_ballot(!(predicate)) == 0)

#endif
