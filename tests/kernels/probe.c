/* Kernels that demonstrate each function of simt.h; the tests know their results. */
#include "kernels/probe.h"
#include "kernels/simt/simt.h"

DEVICE uint32_t global_index(void)
{
    return (block_index_y() * block_count() + block_index()) * block_size() + thread_index();
}

/* Each thread writes eight numbers about where it runs. */
KERNEL(probe_place, probe_args, 1024)
{
    uint32_t *mine = args.words + (size_t)global_index() * 8;
    mine[0] = thread_index() + 1;
    mine[1] = block_index();
    mine[2] = block_index_y();
    mine[3] = block_count() << 16 | block_count_y();
    mine[4] = block_size();
    mine[5] = lane() << 16 | wave_size();
    mine[6] = wave_index();
    mine[7] = waves_per_block();
}

/* Shuffles of each type: from a rotating lane, and by exclusive or. */
KERNEL(probe_shuffle, probe_args, 1024)
{
    const uint32_t i = global_index();
    const uint32_t next = (lane() + args.parameter) % wave_size();
    const uint64_t wide = (uint64_t)i << 40 | i;
    args.words[i] = wave_shuffle_u32(i * 3, next);
    args.out[i] = wave_shuffle_f32((float)i + 0.5f, next) + wave_shuffle_xor_f32((float)i, 1);
    args.longs[i] = wave_shuffle_u64(wide, next) ^ wave_shuffle_xor_u64(wide, 16);
    args.words[args.n + i] = wave_shuffle_xor_u32(i, wave_size() / 2);
}

/* A sum over the wave by exclusive or, the same in every lane. */
KERNEL(probe_wave_sum, probe_args, 1024)
{
    float sum = args.in[global_index()];
    for (uint32_t mask = wave_size() / 2; mask > 0; mask /= 2)
        sum += wave_shuffle_xor_f32(sum, mask);
    args.out[global_index()] = sum;
}

KERNEL(probe_ballot, probe_args, 1024)
{
    const uint32_t i = global_index();
    args.longs[i] = wave_ballot(i % args.parameter == 0);
    args.words[i] = (uint32_t)wave_any(lane() == args.n) << 1 | (uint32_t)wave_all(thread_index() < args.n);
}

/* Lanes from the parameter on end; the others vote and sum their numbers, without those that ended. */
KERNEL(probe_leave_early, probe_args, 1024)
{
    if (lane() >= args.parameter)
        return;
    args.longs[global_index()] = wave_ballot(true);
    args.words[global_index()] = wave_shuffle_u32(lane() + 7, args.parameter - 1);
}

/* Reverses the block's input through shared memory, twice: static, then dynamic. */
KERNEL(probe_reverse, probe_args, 256)
{
    SHARED(float, values, 256);
    SHARED_DYNAMIC(uint32_t, words);
    const uint32_t t = thread_index(), last = block_size() - 1;
    AT(values, t) = args.in[global_index()];
    AT(words, t) = global_index();
    barrier();
    args.out[global_index()] = AT(values, last - t);
    args.words[global_index()] = AT(words, last - t);
}

/* Groups of four through AT_RANGE and 16-byte accesses. */
KERNEL(probe_quads, probe_args, 256)
{
    SHARED(float, values, 1024);
    const uint32_t t = thread_index();
    store_f32x4(AT_RANGE(values, 4 * t, 4), load_f32x4_streaming(args.in + 4 * (size_t)global_index()));
    barrier();
    const f32x4 mine = load_f32x4(AT_RANGE(values, 4 * (block_size() - 1 - t), 4));
    const f32x4 sum = f32x4_fma(mine, mine, f32x4_sub(mine, f32x4_add(mine, F32X4_ZERO)));
    store_f32x4(args.out + 4 * (size_t)global_index(), sum);
}

/* Every atomic once a thread; words: count, largest, last exchanged, compare-and-swap count. longs: count, smallest. */
KERNEL(probe_atomics, probe_args, 1024)
{
    SHARED(uint32_t, in_block, 1);
    if (thread_index() == 0)
        AT(in_block, 0) = 0;
    barrier();
    const uint32_t i = global_index();
    atomic_add_u32(&AT(in_block, 0), 1);
    atomic_add_u64(&args.longs[0], (uint64_t)1 << 33);
    atomic_min_u64(&args.longs[1], (uint64_t)(i + 5) << 32);
    atomic_max_u32(&args.words[1], i);
    atomic_exchange_u32(&args.words[2], i + 1);
    for (uint32_t seen = atomic_load_u32(&args.words[3]);;) {
        const uint32_t old = atomic_cas_u32(&args.words[3], seen, seen + 1);
        if (old == seen)
            break;
        seen = old;
    }
    barrier();
    if (thread_index() == 0)
        atomic_add_u32(&args.words[0], AT(in_block, 0));
}

/* The last block to finish, which a counter determines, sums the results of all blocks: memory is ordered across blocks. */
KERNEL(probe_last_block, probe_args, 256)
{
    SHARED(uint32_t, is_last, 1);
    if (thread_index() == 0) {
        atomic_store_u32(&args.words[1 + block_index()], block_index() + 1);
        memory_fence_device();
        AT(is_last, 0) = atomic_add_u32(&args.words[0], 1) == block_count() - 1;
    }
    barrier();
    if (AT(is_last, 0) && thread_index() == 0) {
        memory_fence_device();
        uint64_t sum = 0;
        for (uint32_t b = 0; b < block_count(); b++)
            sum += atomic_load_u32(&args.words[1 + b]);
        args.longs[0] = sum;
    }
}

/* One rounding each, on operands that show it: quotient, root and fused product of each pair. */
KERNEL(probe_arithmetic, probe_args, 256)
{
    const size_t i = global_index();
    if (i >= args.n)
        return;
    const float a = args.in[2 * i], b = args.in[2 * i + 1];
    args.out[4 * i] = div_f32(a, b);
    args.out[4 * i + 1] = sqrt_f32(a);
    args.out[4 * i + 2] = fma_f32(a, b, -a);
    args.out[4 * i + 3] = a * b - a;
}

/* Two roundings, and one: a compiler may neither fuse the first nor split the second. */
KERNEL(probe_product_then_sum, probe_args, 256)
{
    args.out[thread_index()] = args.in[0] * args.in[1] + args.in[2];
}

KERNEL(probe_fused, probe_args, 256)
{
    args.out[thread_index()] = fma_f32(args.in[0], args.in[1], args.in[2]);
}
