/* simt.h for NVIDIA GPUs: clang's nvptx builtins, no CUDA header. Waves are warps, of 32. */
#ifndef WW_KERNELS_SIMT_SIMT_NVIDIA_H
#define WW_KERNELS_SIMT_SIMT_NVIDIA_H

#define DEVICE            CANON_FUNCTION
#define UNROLL            _Pragma("unroll")
#define UNROLL_BY(n)      SIMT_PRAGMA(unroll n)
#define SIMT_PRAGMA(text) _Pragma(#text)
#define KERNEL(name, args_type, max_threads)                                                                                   \
    extern "C" __attribute__((global, launch_bounds(max_threads))) void name(const args_type args)

#if __CUDA_ARCH__ >= 800
#define KERNEL_RESIDENT(name, args_type, max_threads, blocks)                                                                  \
    extern "C" __attribute__((global, launch_bounds(max_threads, blocks))) void name(const args_type args)
#else /* with fewer registers the older back end would spill, which is worse than one block per unit */
#define KERNEL_RESIDENT(name, args_type, max_threads, blocks)                                                                  \
    extern "C" __attribute__((global, launch_bounds(max_threads, 1))) void name(const args_type args)
#endif

#define SHARED(type, name, count)     __attribute__((shared)) type name[count]
#define SHARED_DYNAMIC(type, name)    type *const name = (type *)simt_dynamic_shared
#define AT(array, index)              ((array)[index])
#define AT_RANGE(array, index, count) (&(array)[index])
#define IN_GLOBAL(type, pointer)      ((type *)(__attribute__((address_space(1))) type *)(pointer))
#define IN_CONSTANT(type, pointer)    ((const type *)(pointer))
#define LOAD_GLOBAL(type, address)    (*(const __attribute__((address_space(1))) type *)(address))
#define SETTLE(variable)              __asm__ volatile("" : "+f"(variable))
#define SETTLE_UNIFORM(variable)      ((void)(variable))
#define SCHEDULE_APART()              ((void)0)
#define arguments_again(args)         (args)
extern __attribute__((shared, aligned(16))) unsigned char simt_dynamic_shared[];

/* ---- who am I ------------------------------------------------------------------------------------------------------------ */

DEVICE uint32_t thread_index(void)
{
    return (uint32_t)__nvvm_read_ptx_sreg_tid_x();
}

DEVICE uint32_t block_size(void)
{
    return (uint32_t)__nvvm_read_ptx_sreg_ntid_x();
}

DEVICE uint32_t block_index(void)
{
    return (uint32_t)__nvvm_read_ptx_sreg_ctaid_x();
}

DEVICE uint32_t block_index_y(void)
{
    return (uint32_t)__nvvm_read_ptx_sreg_ctaid_y();
}

DEVICE uint32_t block_count(void)
{
    return (uint32_t)__nvvm_read_ptx_sreg_nctaid_x();
}

DEVICE uint32_t block_count_y(void)
{
    return (uint32_t)__nvvm_read_ptx_sreg_nctaid_y();
}

DEVICE uint32_t wave_size(void)
{
    return 32;
}

/* Blocks are one-dimensional, so the lane follows from the thread index. Unlike %laneid, the compiler can reason about it. */
DEVICE uint32_t lane(void)
{
    return thread_index() & 31u;
}

DEVICE uint32_t wave_index(void)
{
    return thread_index() / 32u;
}

/* ---- meeting ------------------------------------------------------------------------------------------------------------- */

#define SIMT_WHOLE_WARP 0xffffffffu

DEVICE void barrier(void)
{
#if __has_builtin(__syncthreads)
    __syncthreads();
#else
    __nvvm_barrier_cta_sync_aligned_all(0);
#endif
}

DEVICE void barrier_shared(void)
{
    barrier();
}

DEVICE void wave_barrier(void)
{
    __nvvm_bar_warp_sync(SIMT_WHOLE_WARP);
}

DEVICE void memory_fence_device(void)
{
    __nvvm_membar_gl();
}

DEVICE void prefetch_line(const void *from)
{
    __asm__ volatile("prefetch.global.L2 [%0];" ::"l"(from));
}

#if __CUDA_ARCH__ >= 900
DEVICE void launches_wait(void)
{
    __asm__ volatile("griddepcontrol.wait;" ::: "memory");
}

DEVICE void launches_next(void)
{
    __asm__ volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
#else
SIMT_LAUNCHES_IN_ORDER
#endif

/* ---- wave operations ----------------------------------------------------------------------------------------------------- */

DEVICE uint32_t wave_shuffle_u32(uint32_t value, uint32_t from)
{
    return (uint32_t)__nvvm_shfl_sync_idx_i32(SIMT_WHOLE_WARP, (int)value, (int)from, 31);
}

DEVICE uint32_t wave_shuffle_xor_u32(uint32_t value, uint32_t mask)
{
    return (uint32_t)__nvvm_shfl_sync_bfly_i32(SIMT_WHOLE_WARP, (int)value, (int)mask, 31);
}

DEVICE uint64_t wave_shuffle_u64(uint64_t value, uint32_t from)
{
    return (uint64_t)wave_shuffle_u32((uint32_t)(value >> 32), from) << 32 | wave_shuffle_u32((uint32_t)value, from);
}

DEVICE uint64_t wave_shuffle_xor_u64(uint64_t value, uint32_t mask)
{
    return (uint64_t)wave_shuffle_xor_u32((uint32_t)(value >> 32), mask) << 32 | wave_shuffle_xor_u32((uint32_t)value, mask);
}

DEVICE uint64_t wave_ballot(bool predicate)
{
    return (uint32_t)__nvvm_vote_ballot_sync(SIMT_WHOLE_WARP, predicate);
}

DEVICE uint32_t wave_uniform_u32(uint32_t value)
{
    return value;
}

/* ---- atomics ------------------------------------------------------------------------------------------------------------- */

#define SIMT_ATOMIC(name, type, builtin, builtin_type)                                                                         \
    DEVICE type name(type *target, type operand)                                                                               \
    {                                                                                                                          \
        return (type)builtin((builtin_type *)target, (builtin_type)operand);                                                   \
    }
SIMT_ATOMIC(atomic_add_u32, uint32_t, __nvvm_atom_add_gen_i, int)
SIMT_ATOMIC(atomic_add_u64, uint64_t, __nvvm_atom_add_gen_ll, long long)
SIMT_ATOMIC(atomic_min_u64, uint64_t, __nvvm_atom_min_gen_ull, unsigned long long)
SIMT_ATOMIC(atomic_max_u32, uint32_t, __nvvm_atom_max_gen_ui, unsigned)
SIMT_ATOMIC(atomic_exchange_u32, uint32_t, __nvvm_atom_xchg_gen_i, int)
#undef SIMT_ATOMIC

/* A volatile access is a relaxed one in PTX: never torn, never optimized away. */
#define SIMT_ATOMIC_ACCESS(suffix, type, builtin, builtin_type)                                                                \
    DEVICE type atomic_cas_##suffix(type *target, type expected, type desired)                                                 \
    {                                                                                                                          \
        return (type)builtin((builtin_type *)target, (builtin_type)expected, (builtin_type)desired);                           \
    }                                                                                                                          \
    DEVICE type atomic_load_##suffix(const type *from)                                                                         \
    {                                                                                                                          \
        return *(const volatile type *)from;                                                                                   \
    }                                                                                                                          \
    DEVICE void atomic_store_##suffix(type *to, type value)                                                                    \
    {                                                                                                                          \
        *(volatile type *)to = value;                                                                                          \
    }
SIMT_ATOMIC_ACCESS(u32, uint32_t, __nvvm_atom_cas_gen_i, int)
SIMT_ATOMIC_ACCESS(u64, uint64_t, __nvvm_atom_cas_gen_ll, long long)
#undef SIMT_ATOMIC_ACCESS

DEVICE void store_host_u64(uint64_t *to, uint64_t value)
{
    *(volatile uint64_t *)to = value;
}

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

/* Read-only during the launch, and not kept in L1, to leave room for data that is read again. Not volatile, so that several
 * loads can be in flight. */
DEVICE f32x4 load_f32x4_streaming(const float *from)
{
    f32x4 value;
    const __attribute__((address_space(1))) float *global = (const __attribute__((address_space(1))) float *)from;
    __asm__("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
            : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
            : "l"(global));
    return value;
}

/* Read-only during the launch, and kept in L1 for a neighbour that reads the rest of the 32 bytes. */
DEVICE f32x4 load_f32x4_readonly(const float *from)
{
    f32x4 value;
    const __attribute__((address_space(1))) float *global = (const __attribute__((address_space(1))) float *)from;
    __asm__("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];"
            : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
            : "l"(global));
    return value;
}

DEVICE void store_f32x4(float *to, f32x4 value)
{
    const simt_vector v = {value.x, value.y, value.z, value.w};
    *(simt_vector *)to = v;
}

/* ---- from global to shared memory, with work in between ------------------------------------------------------------------ */

#if __CUDA_ARCH__ >= 800
typedef struct f32x4_copy {
    char nothing;
} f32x4_copy;

DEVICE void f32x4_copy_begin(f32x4_copy *copy, float *to, const float *from)
{
    (void)copy;
    const uint32_t shared = (uint32_t)(uintptr_t)(__attribute__((address_space(3))) float *)to;
    const __attribute__((address_space(1))) float *global = (const __attribute__((address_space(1))) float *)from;
    __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(global) : "memory");
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
#else
SIMT_COPY_THROUGH_REGISTERS
#endif

/* ---- words --------------------------------------------------------------------------------------------------------------- */

typedef uint32_t simt_words __attribute__((ext_vector_type(4)));

DEVICE u32x4 load_u32x4(const uint32_t *from)
{
    const simt_words v = *(const simt_words *)from;
    const u32x4 value = {v.x, v.y, v.z, v.w};
    return value;
}

DEVICE u32x4 load_u32x4_streaming(const uint32_t *from)
{
    u32x4 value;
    const __attribute__((address_space(1))) uint32_t *global = (const __attribute__((address_space(1))) uint32_t *)from;
    __asm__("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
            : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
            : "l"(global));
    return value;
}

DEVICE u32x4 load_u32x4_readonly(const uint32_t *from)
{
    u32x4 value;
    const __attribute__((address_space(1))) uint32_t *global = (const __attribute__((address_space(1))) uint32_t *)from;
    __asm__("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
            : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
            : "l"(global));
    return value;
}

DEVICE u32x2 load_u32x2_readonly(const uint32_t *from)
{
    u32x2 value;
    const __attribute__((address_space(1))) uint32_t *global = (const __attribute__((address_space(1))) uint32_t *)from;
    __asm__("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(value.x), "=r"(value.y) : "l"(global));
    return value;
}

DEVICE uint32_t load_u32_readonly(const uint32_t *from)
{
    uint32_t value;
    const __attribute__((address_space(1))) uint32_t *global = (const __attribute__((address_space(1))) uint32_t *)from;
    __asm__("ld.global.nc.u32 %0, [%1];" : "=r"(value) : "l"(global));
    return value;
}

/* Puts the byte into the lowest byte of the bits of 2^23, whose value is then 2^23 plus the byte. That takes two instructions
 * and no conversion; chips have few units for conversions. */
#define SIMT_BYTE(selector, to) __asm__("prmt.b32 %0, %1, 0x4b000000, " selector ";" : "=r"(to) : "r"(word))
DEVICE f32x4 bytes_f32x4(uint32_t word, float less)
{
    uint32_t x, y, z, w;
    SIMT_BYTE("0x7440", x);
    SIMT_BYTE("0x7441", y);
    SIMT_BYTE("0x7442", z);
    SIMT_BYTE("0x7443", w);
    const float taken = 0x1p23f + less;
    const f32x4 value = {__builtin_bit_cast(float, x) - taken, __builtin_bit_cast(float, y) - taken,
                         __builtin_bit_cast(float, z) - taken, __builtin_bit_cast(float, w) - taken};
    return value;
}
#undef SIMT_BYTE

#if __CUDA_ARCH__ >= 800
DEVICE void copy_16(uint32_t *to, const uint32_t *from)
{
    const uint32_t shared = (uint32_t)(uintptr_t)(__attribute__((address_space(3))) uint32_t *)to;
    const __attribute__((address_space(1))) uint32_t *global = (const __attribute__((address_space(1))) uint32_t *)from;
    __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(global) : "memory");
}

DEVICE void copy_8(uint64_t *to, const uint64_t *from)
{
    const uint32_t shared = (uint32_t)(uintptr_t)(__attribute__((address_space(3))) uint64_t *)to;
    const __attribute__((address_space(1))) uint64_t *global = (const __attribute__((address_space(1))) uint64_t *)from;
    __asm__ volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(shared), "l"(global) : "memory");
}

DEVICE void copies_commit(void)
{
    __asm__ volatile("cp.async.commit_group;" ::: "memory");
}

DEVICE void copies_wait(int32_t left)
{
#define SIMT_WAIT(count)                                                                                                       \
    case count:                                                                                                                \
        __asm__ volatile("cp.async.wait_group " #count ";" ::: "memory");                                                      \
        break;
    switch (left) {
        SIMT_WAIT(1)
        SIMT_WAIT(2)
        SIMT_WAIT(3)
        SIMT_WAIT(4)
        SIMT_WAIT(5)
        SIMT_WAIT(6)
    default:
        __asm__ volatile("cp.async.wait_group 0;" ::: "memory");
        break;
    }
#undef SIMT_WAIT
}
#else
SIMT_COPY_AT_ONCE
#endif

DEVICE int32_t simt_dp4a(uint32_t a, uint32_t b, int32_t sum)
{
    int32_t result;
    __asm__("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
    return result;
}

#define SIMT_DOT4 simt_dp4a

/* ---- arithmetic in fewer steps ------------------------------------------------------------------------------------------- */
/* Like the compiler's division for operands in the middle of the range, without the test for the ends of the range and its
 * branch: the chip's inverse, which is within one unit in the last place, and one step of Newton's method. */

DEVICE float simt_inverse(float d)
{
    float near;
    __asm__("rcp.approx.ftz.f32 %0, %1;" : "=f"(near) : "f"(d));
    return __builtin_fmaf(__builtin_fmaf(-d, near, 1.0f), near, near);
}

/* A square root from the chip's inverse square root, and its inverse. If x is at an end of the range, the chip's square root is
 * right. */
DEVICE float simt_inverse_root(float x)
{
    float near;
    __asm__("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(near) : "f"(x));
    const float root = x * near;
    const float inverse = simt_inverse(__builtin_fmaf(__builtin_fmaf(-root, root, x), 0.5f * near, root));
    return x > 0.0f && x < __builtin_inff() ? inverse : near;
}

/* The chip's own functions, subnormals included, within one and two units in the last place. */
DEVICE float simt_near_inverse(float x)
{
    float near;
    __asm__("rcp.approx.f32 %0, %1;" : "=f"(near) : "f"(x));
    return near;
}

/* The chip's functions that treat subnormals as 0. */
#define SIMT_QUICK(name, instruction)                                                                                          \
    DEVICE float name(float x)                                                                                                 \
    {                                                                                                                          \
        float quick;                                                                                                           \
        __asm__(instruction " %0, %1;" : "=f"(quick) : "f"(x));                                                                \
        return quick;                                                                                                          \
    }
SIMT_QUICK(simt_quick_inverse, "rcp.approx.ftz.f32")
SIMT_QUICK(simt_quick_log2, "lg2.approx.ftz.f32")
SIMT_QUICK(simt_quick_power, "ex2.approx.ftz.f32")
#undef SIMT_QUICK

DEVICE float simt_near_inverse_root(float x)
{
    float near;
    __asm__("rsqrt.approx.f32 %0, %1;" : "=f"(near) : "f"(x));
    return near;
}

/* Converts two floats to 16 bits each. The chip's NaN has all bits set except the sign; as an integer it is the largest number,
 * and our types' only NaN comes next. */
#if __CUDA_ARCH__ >= 900
#define SIMT_NARROW_PAIR(name, type, nan)                                                                                      \
    DEVICE uint32_t name(float low, float high)                                                                                \
    {                                                                                                                          \
        uint32_t pair;                                                                                                         \
        __asm__("{\n .reg .b32 %%t;\n cvt.rn." type ".f32 %%t, %2, %1;\n min.s16x2 %0, %%t, %3;\n}"                            \
                : "=r"(pair)                                                                                                   \
                : "f"(low), "f"(high), "r"(nan));                                                                              \
        return pair;                                                                                                           \
    }
SIMT_NARROW_PAIR(simt_narrow_pair_f16, "f16x2", 0x7e007e00u)
SIMT_NARROW_PAIR(simt_narrow_pair_bf16, "bf16x2", 0x7fc07fc0u)
#undef SIMT_NARROW_PAIR
#define SIMT_NARROW_PAIR_F16  simt_narrow_pair_f16
#define SIMT_NARROW_PAIR_BF16 simt_narrow_pair_bf16

/* The same for numbers that are not NaN. The larger of two pairs; the number, if the other is NaN. All ones in each half in
 * which two pairs differ; NaN differs from everything. */
#define SIMT_PAIRS(type)                                                                                                       \
    DEVICE uint32_t simt_narrow_numbers_##type(float low, float high)                                                          \
    {                                                                                                                          \
        uint32_t pair;                                                                                                         \
        __asm__("cvt.rn." #type "x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(low), "f"(high));                                      \
        return pair;                                                                                                           \
    }                                                                                                                          \
    DEVICE uint32_t simt_larger_pair_##type(uint32_t a, uint32_t b)                                                            \
    {                                                                                                                          \
        uint32_t pair;                                                                                                         \
        __asm__("max." #type "x2 %0, %1, %2;" : "=r"(pair) : "r"(a), "r"(b));                                                  \
        return pair;                                                                                                           \
    }                                                                                                                          \
    DEVICE uint32_t simt_pairs_differ_##type(uint32_t a, uint32_t b)                                                           \
    {                                                                                                                          \
        uint32_t differ;                                                                                                       \
        __asm__("set.neu.u32." #type "x2 %0, %1, %2;" : "=r"(differ) : "r"(a), "r"(b));                                        \
        return differ;                                                                                                         \
    }
SIMT_PAIRS(f16)
SIMT_PAIRS(bf16)
#undef SIMT_PAIRS
#define SIMT_PAIRS_OF_16 /* this chip has the operations above */
#endif

#if __CUDA_ARCH__ >= 800 /* NaN if either is NaN; +0 is larger than -0 */
#define MATH_MAX_F32(a, b) __nvvm_fmax_nan_f(a, b)
#define MATH_MIN_F32(a, b) __nvvm_fmin_nan_f(a, b)
#endif

/* Not in constant memory, which serves one address at a time: threads of a block that copy a table would wait for each
 * other. */
#define MATH_TABLE static __attribute__((device)) const

#define MATH_WITHIN_F32(x, max)  __nvvm_fmin_f(x, max)
#define MATH_LARGER_F32(a, b)    __nvvm_fmax_f(a, b)
#define MATH_INVERSE_F32(d)      simt_inverse(d)
#define MATH_INVERSE_ROOT_F32(x) simt_inverse_root(x)

#define MATH_QUICK_INVERSE_F32(x) simt_quick_inverse(x)
#define MATH_QUICK_LOG2_F32(x)    simt_quick_log2(x)
#define MATH_QUICK_POWER_F32(x)   simt_quick_power(x)

#define MATH_NEAR_INVERSE_F32(x)      simt_near_inverse(x)
#define MATH_NEAR_INVERSE_ROOT_F32(x) simt_near_inverse_root(x)

DEVICE uint32_t simt_select_nibbles(uint32_t a, uint32_t b, uint32_t selectors)
{
    uint32_t selected;
    __asm__("prmt.b32 %0, %1, %2, %3;" : "=r"(selected) : "r"(a), "r"(b), "r"(selectors));
    return selected;
}
#define SIMT_SELECT_NIBBLES(a, b, selectors) simt_select_nibbles(a, b, selectors)

#endif
