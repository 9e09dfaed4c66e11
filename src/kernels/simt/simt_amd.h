/* simt.h for AMD GPUs: clang's amdgcn builtins, no device library. GCN and CDNA run waves of 64, RDNA waves of 32. */
#ifndef WW_KERNELS_SIMT_SIMT_AMD_H
#define WW_KERNELS_SIMT_SIMT_AMD_H

#include "kernels/simt/amd_families.h"

#define DEVICE            CANON_FUNCTION
#define UNROLL            _Pragma("unroll")
#define UNROLL_BY(n)      SIMT_PRAGMA(unroll n)
#define SIMT_PRAGMA(text) _Pragma(#text)
#define KERNEL(name, args_type, max_threads)                                                                                   \
    extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, max_threads))) void name(const args_type args)

/* AMD's compilers balance registers against waves themselves. */
#define KERNEL_RESIDENT(name, args_type, max_threads, blocks) KERNEL(name, args_type, max_threads)

/* Kernels with matrix instructions. Limited to half of the registers, the compiler keeps sums where every instruction can use
 * them. With all registers it keeps sums in the other half (AGPRs), and copies them whenever another instruction needs them. On
 * gfx90a half is too few for some of these kernels. */
#if defined(SIMT_CDNA3)
#define KERNEL_MATRIX(name, args_type, max_threads)                                                                            \
    extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, max_threads), amdgpu_waves_per_eu(2))) void name(         \
        const args_type args)
#endif

#define SHARED(type, name, count)     __attribute__((shared)) type name[count]
#define SHARED_DYNAMIC(type, name)    type *const name = (type *)simt_dynamic_shared
#define AT(array, index)              ((array)[index])
#define AT_RANGE(array, index, count) (&(array)[index])
#define IN_GLOBAL(type, pointer)      ((type *)(__attribute__((address_space(1))) type *)(pointer))
#define LOAD_GLOBAL(type, address)    (*(const __attribute__((address_space(1))) type *)(address))
#define SETTLE(variable)              __asm__ volatile("" : "+v"(variable))
#if __clang_major__ >= 17
#define SETTLE_UNIFORM(variable) __asm__ volatile("" : "+s"(variable))
#else /* the compiler does not always recognize uniform values and could not copy them to scalar registers */
#define SETTLE_UNIFORM(variable) ((void)(variable))
#endif
#define SCHEDULE_APART() __builtin_amdgcn_sched_barrier(0)
extern __attribute__((shared, aligned(16))) unsigned char simt_dynamic_shared[];

/* The kernel's arguments, read again: then a value that is needed only after a loop takes no register during the loop. */
static __inline__ __attribute__((device, always_inline)) const void *arguments_again(const void *args)
{
    const __attribute__((address_space(4))) void *from =
        (const __attribute__((address_space(4))) void *)__builtin_amdgcn_kernarg_segment_ptr();
    (void)args;
    __asm__ volatile("" : "+s"(from));
    return (const void *)from;
}

/* ---- who am I ------------------------------------------------------------------------------------------------------------ */
/* Sizes come from the arguments that the runtime appends to the kernel's own (code object version 5): the block counts are the
 * first three words. The launch packet has them too, but reading it crosses the bus. hipRTC chooses its code object version
 * itself, so kernels that it compiles read the packet. */

DEVICE uint32_t thread_index(void)
{
    return __builtin_amdgcn_workitem_id_x();
}

DEVICE uint32_t block_index(void)
{
    return __builtin_amdgcn_workgroup_id_x();
}

DEVICE uint32_t block_index_y(void)
{
    return __builtin_amdgcn_workgroup_id_y();
}

#ifdef __HIPCC_RTC__

/* An AQL packet: 16-bit sizes of a block from byte 4 on, 32-bit sizes of the grid in threads from byte 12 on. */
#define SIMT_PACKET(type, byte)                                                                                                \
    (*(const __attribute__((address_space(4)))                                                                                 \
       type *)((const __attribute__((address_space(4))) char *)__builtin_amdgcn_dispatch_ptr() + (byte)))

DEVICE uint32_t block_size(void)
{
    return SIMT_PACKET(uint16_t, 4);
}

DEVICE uint32_t block_count(void)
{
    return SIMT_PACKET(uint32_t, 12) / SIMT_PACKET(uint16_t, 4);
}

DEVICE uint32_t block_count_y(void)
{
    return SIMT_PACKET(uint32_t, 16) / SIMT_PACKET(uint16_t, 6);
}

#undef SIMT_PACKET

#else

DEVICE uint32_t block_size(void)
{
    return __builtin_amdgcn_workgroup_size_x();
}

DEVICE uint32_t block_count(void)
{
    return ((const __attribute__((address_space(4))) uint32_t *)__builtin_amdgcn_implicitarg_ptr())[0];
}

DEVICE uint32_t block_count_y(void)
{
    return ((const __attribute__((address_space(4))) uint32_t *)__builtin_amdgcn_implicitarg_ptr())[1];
}

#endif

/* A constant: clang's own builtin becomes one too late for the optimizer. tools/check-kernels.c checks that the two agree. */
#if defined(__GFX6__) || defined(__GFX7__) || defined(__GFX8__) || defined(__GFX9__)
#define SIMT_WAVE_SIZE 64u
#else
#define SIMT_WAVE_SIZE 32u
#endif

DEVICE uint32_t wave_size(void)
{
    return SIMT_WAVE_SIZE;
}

DEVICE uint32_t lane(void)
{
    const uint32_t low = __builtin_amdgcn_mbcnt_lo(~0u, 0u);
    return SIMT_WAVE_SIZE == 64 ? __builtin_amdgcn_mbcnt_hi(~0u, low) : low;
}

/* In a scalar register, so that the scalar unit does the arithmetic with it. */
DEVICE uint32_t wave_index(void)
{
    return __builtin_amdgcn_readfirstlane(thread_index() / SIMT_WAVE_SIZE);
}

/* ---- meeting ------------------------------------------------------------------------------------------------------------- */

DEVICE void barrier(void)
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

/* No fence for global memory, which would invalidate RDNA's first-level cache. Older compilers have only that fence. */
DEVICE void barrier_shared(void)
{
#if __clang_major__ >= 19
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
#else
    barrier();
#endif
}

DEVICE void wave_barrier(void)
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

DEVICE void memory_fence_device(void)
{
    __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
}

SIMT_LAUNCHES_IN_ORDER

DEVICE void prefetch_line(const void *from)
{
    (void)from;
}

/* ---- wave operations ----------------------------------------------------------------------------------------------------- */

DEVICE uint32_t wave_shuffle_u32(uint32_t value, uint32_t from)
{
    return (uint32_t)__builtin_amdgcn_ds_bpermute((int)(from * 4), (int)value);
}

/* A constant mask below 32 needs no address. Below 16 it does not use the LDS: DPP reads the other lane's value as an operand.
 * Within four lanes DPP has any order. Rotating 16 lanes by 8 is an exclusive or with 8, and reversing 8 lanes is one with 7,
 * which is 4 after 3. Lanes 16 away are in another row: RDNA has an instruction for that (permlanex16), other chips use the
 * LDS crossbar, without accessing LDS memory. */
#define SIMT_DPP(value, control) ((uint32_t)__builtin_amdgcn_update_dpp(0, (int)(value), control, 0xf, 0xf, true))
enum {
    SIMT_QUAD_XOR_1 = 0xb1, /* quad_perm:[1,0,3,2] */
    SIMT_QUAD_XOR_2 = 0x4e, /* quad_perm:[2,3,0,1] */
    SIMT_QUAD_XOR_3 = 0x1b, /* quad_perm:[3,2,1,0] */
    SIMT_ROTATE_8 = 0x128,  /* row_ror:8 */
    SIMT_XOR_7 = 0x141,     /* row_half_mirror */
    SIMT_XOR_15 = 0x140     /* row_mirror */
};

DEVICE uint32_t wave_shuffle_xor_u32(uint32_t value, uint32_t mask)
{
    if (__builtin_constant_p(mask))
        switch (mask) {
        case 1:
            return SIMT_DPP(value, SIMT_QUAD_XOR_1);
        case 2:
            return SIMT_DPP(value, SIMT_QUAD_XOR_2);
        case 3:
            return SIMT_DPP(value, SIMT_QUAD_XOR_3);
        case 4:
            return SIMT_DPP(SIMT_DPP(value, SIMT_QUAD_XOR_3), SIMT_XOR_7);
        case 7:
            return SIMT_DPP(value, SIMT_XOR_7);
        case 8:
            return SIMT_DPP(value, SIMT_ROTATE_8);
        case 15:
            return SIMT_DPP(value, SIMT_XOR_15);
        case 16:
#if SIMT_WAVE_SIZE == 32
            return (uint32_t)__builtin_amdgcn_permlanex16((int)value, (int)value, 0x76543210, (int)0xfedcba98u, false, false);
#else
            return (uint32_t)__builtin_amdgcn_ds_swizzle((int)value, 0x1f | 16 << 10);
#endif
        }
    return wave_shuffle_u32(value, lane() ^ mask);
}

/* The arguments are never NaN. The compiler does not know that and would add instructions for NaN. */
#define SIMT_MIN_F64
DEVICE double min_f64(double x, double y)
{
    double result;
    __asm__("v_min_f64 %0, %1, %2" : "=v"(result) : "v"(x), "v"(y));
    return result;
}

DEVICE double max_f64(double x, double y)
{
    double result;
    __asm__("v_max_f64 %0, %1, %2" : "=v"(result) : "v"(x), "v"(y));
    return result;
}

DEVICE double min_negated_f64(double x, double y)
{
    double result;
    __asm__("v_min_f64 %0, %1, -%2" : "=v"(result) : "v"(x), "v"(y));
    return result;
}

/* Sums rows of 16 lanes by DPP, whose shifts insert 0. Then the scalar unit adds the totals of the earlier rows. */
#define SIMT_SUMS_UP_TO
DEVICE uint32_t wave_sum_up_to_u32(uint32_t value)
{
    enum { ROW_SHIFT = 0x110, ROW_LANES = 16 };
    value += SIMT_DPP(value, ROW_SHIFT + 1);
    value += SIMT_DPP(value, ROW_SHIFT + 2);
    value += SIMT_DPP(value, ROW_SHIFT + 4);
    value += SIMT_DPP(value, ROW_SHIFT + 8);
    uint32_t before = 0, rows = 0;
    UNROLL for (uint32_t row = 1; row < SIMT_WAVE_SIZE / ROW_LANES; row++)
    {
        rows += (uint32_t)__builtin_amdgcn_readlane((int)value, (int)(row * ROW_LANES - 1));
        before = lane() >= row * ROW_LANES ? rows : before;
    }
    return value + before;
}

#undef SIMT_DPP

DEVICE uint64_t wave_shuffle_u64(uint64_t value, uint32_t from)
{
    return (uint64_t)wave_shuffle_u32((uint32_t)(value >> 32), from) << 32 | wave_shuffle_u32((uint32_t)value, from);
}

DEVICE uint64_t wave_shuffle_xor_u64(uint64_t value, uint32_t mask)
{
    return (uint64_t)wave_shuffle_xor_u32((uint32_t)(value >> 32), mask) << 32 | wave_shuffle_xor_u32((uint32_t)value, mask);
}

#if !__has_builtin(__builtin_amdgcn_ballot_w64) /* the clang of ROCm 5: "not equal" is its comparison 33 */
#define __builtin_amdgcn_ballot_w64(predicate) __builtin_amdgcn_uicmp((uint32_t)(predicate), 0u, 33)
#endif

DEVICE uint64_t wave_ballot(bool predicate)
{
    return SIMT_WAVE_SIZE == 64 ? __builtin_amdgcn_ballot_w64(predicate) : (uint32_t)__builtin_amdgcn_ballot_w64(predicate);
}

DEVICE uint32_t wave_uniform_u32(uint32_t value)
{
    return __builtin_amdgcn_readfirstlane(value);
}

/* Loads with the scalar unit. Only a launch empties its cache, so nothing may write this memory during the kernel. */
DEVICE uint64_t simt_uniform(const void *pointer)
{
    const uint64_t bits = (uint64_t)pointer;
    return (uint64_t)wave_uniform_u32((uint32_t)(bits >> 32)) << 32 | wave_uniform_u32((uint32_t)bits);
}

#define IN_CONSTANT(type, pointer) ((const __attribute__((address_space(4))) type *)simt_uniform(pointer))

/* ---- atomics ------------------------------------------------------------------------------------------------------------- */

#define SIMT_ATOMIC(name, type, builtin)                                                                                       \
    DEVICE type name(type *target, type operand)                                                                               \
    {                                                                                                                          \
        return builtin(target, operand, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);                                           \
    }
SIMT_ATOMIC(atomic_add_u32, uint32_t, __hip_atomic_fetch_add)
SIMT_ATOMIC(atomic_add_u64, uint64_t, __hip_atomic_fetch_add)
SIMT_ATOMIC(atomic_min_u64, uint64_t, __hip_atomic_fetch_min)
SIMT_ATOMIC(atomic_max_u32, uint32_t, __hip_atomic_fetch_max)
SIMT_ATOMIC(atomic_exchange_u32, uint32_t, __hip_atomic_exchange)
#undef SIMT_ATOMIC

#define SIMT_ATOMIC_ACCESS(suffix, type)                                                                                       \
    DEVICE type atomic_cas_##suffix(type *target, type expected, type desired)                                                 \
    {                                                                                                                          \
        __hip_atomic_compare_exchange_strong(target, &expected, desired, __ATOMIC_RELAXED, __ATOMIC_RELAXED,                   \
                                             __HIP_MEMORY_SCOPE_AGENT);                                                        \
        return expected;                                                                                                       \
    }                                                                                                                          \
    DEVICE type atomic_load_##suffix(const type *from)                                                                         \
    {                                                                                                                          \
        return __hip_atomic_load(from, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);                                            \
    }                                                                                                                          \
    DEVICE void atomic_store_##suffix(type *to, type value)                                                                    \
    {                                                                                                                          \
        __hip_atomic_store(to, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);                                             \
    }
SIMT_ATOMIC_ACCESS(u32, uint32_t)
SIMT_ATOMIC_ACCESS(u64, uint64_t)
#undef SIMT_ATOMIC_ACCESS

DEVICE void store_host_u64(uint64_t *to, uint64_t value)
{
    __hip_atomic_store(to, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}

/* Two adjacent numbers, so that chips with instructions for two numbers (gfx90a and CDNA 3) use them. */
typedef float simt_two __attribute__((ext_vector_type(2)));
#if defined(__gfx90a__) || defined(SIMT_CDNA3)
#define SETTLE_TWO(first, second)                                                                                              \
    do {                                                                                                                       \
        simt_two simt_both = {first, second};                                                                                  \
        __asm__ volatile("" : "+v"(simt_both));                                                                                \
        first = simt_both.x;                                                                                                   \
        second = simt_both.y;                                                                                                  \
    } while (0)
#endif

/* ---- arithmetic in fewer steps ------------------------------------------------------------------------------------------- */
/* The chip's inverse, which AMD's manuals say is less than one unit in the last place off, and one step of Newton's method. The
 * inverse of d must be a normal number. */
DEVICE float simt_short_inverse(float d)
{
    const float near = __builtin_amdgcn_rcpf(d);
    return __builtin_fmaf(__builtin_fmaf(-d, near, 1.0f), near, near);
}

#define MATH_SHORT_INVERSE_F32(d) simt_short_inverse(d)

/* narrow_f16() for a number that is not NaN. */
DEVICE uint16_t simt_narrow_number_f16(float x)
{
    __asm__("" : "+v"(x));
    return __builtin_bit_cast(uint16_t, (_Float16)x);
}

#define SIMT_NARROW_NUMBER_F16(x) simt_narrow_number_f16(x)

/* ---- 16 bytes at a time -------------------------------------------------------------------------------------------------- */
/* Through a vector type: then the access is a single instruction, regardless of what the optimizer does with the struct. */

typedef float simt_vector __attribute__((ext_vector_type(4)));
typedef float simt_pair __attribute__((ext_vector_type(2)));

DEVICE f32x2 load_f32x2(const float *from)
{
    const simt_pair v = *(const simt_pair *)from;
    const f32x2 value = {v.x, v.y};
    return value;
}

DEVICE f32x4 load_f32x4(const float *from)
{
    const simt_vector v = *(const simt_vector *)from;
    const f32x4 value = {v.x, v.y, v.z, v.w};
    return value;
}

DEVICE f32x4 load_f32x4_streaming(const float *from)
{
    const simt_vector v = __builtin_nontemporal_load((const simt_vector *)from);
    const f32x4 value = {v.x, v.y, v.z, v.w};
    return value;
}

DEVICE f32x4 load_f32x4_readonly(const float *from)
{
    return load_f32x4(from);
}

DEVICE void store_f32x4(float *to, f32x4 value)
{
    const simt_vector v = {value.x, value.y, value.z, value.w};
    *(simt_vector *)to = v;
}

SIMT_COPY_THROUGH_REGISTERS

typedef uint32_t simt_words __attribute__((ext_vector_type(4)));

DEVICE u32x4 load_u32x4(const uint32_t *from)
{
    const simt_words v = *(const simt_words *)from;
    const u32x4 value = {v.x, v.y, v.z, v.w};
    return value;
}

DEVICE u32x4 load_u32x4_streaming(const uint32_t *from)
{
    const simt_words v = __builtin_nontemporal_load((const simt_words *)from);
    const u32x4 value = {v.x, v.y, v.z, v.w};
    return value;
}

DEVICE u32x4 load_u32x4_readonly(const uint32_t *from)
{
    return load_u32x4(from);
}

DEVICE u32x2 load_u32x2_readonly(const uint32_t *from)
{
    typedef uint32_t simt_words_2 __attribute__((ext_vector_type(2)));
    const simt_words_2 v = *(const simt_words_2 *)from;
    const u32x2 value = {v.x, v.y};
    return value;
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

/* ---- four products of bytes ---------------------------------------------------------------------------------------------- */

#if defined(__GFX11__) || defined(__GFX12__)
#define SIMT_DOT4(a, b, sum) __builtin_amdgcn_sudot4(true, (int)(a), true, (int)(b), (sum), false)
#elif defined(__gfx906__) || defined(SIMT_MFMA) || defined(__gfx1030__)
#define SIMT_DOT4(a, b, sum) __builtin_amdgcn_sdot4((int)(a), (int)(b), (sum), false)
#endif

/* ---- two products of f16 ------------------------------------------------------------------------------------------------- */

/* v_dot2_f32_f16, for the chips whose fast products use it. */
#if defined(__gfx906__) || defined(__gfx1030__) || defined(__gfx1031__) || defined(__gfx1032__) || defined(__gfx1033__) ||     \
    defined(__gfx1034__) || defined(__gfx1035__) || defined(__gfx1036__) || defined(__gfx10_3_generic__) ||                    \
    defined(FAST_BY_DOT2)
typedef _Float16 simt_halves __attribute__((ext_vector_type(2)));
#define SIMT_DOT2_F16(a, b, sum)                                                                                               \
    __builtin_amdgcn_fdot2(__builtin_bit_cast(simt_halves, a), __builtin_bit_cast(simt_halves, b), sum, false)
#endif

/* Selectors 0..3 mean the bytes of the second operand. */
#define SIMT_SELECT_BYTES(a, b, selectors) __builtin_amdgcn_perm(a, b, selectors)

#endif
