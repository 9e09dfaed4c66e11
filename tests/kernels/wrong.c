/* Kernels with one mistake each: a GPU would return garbage or hang; the emulator reports a fault, or returns results that
 * depend on the seed.
 */
#include "kernels/probe.h"
#include "kernels/simt/simt.h"

KERNEL(wrong_index, probe_args, 256)
{
    SHARED(float, before, 16);
    SHARED(float, values, 64);
    SHARED(float, after, 16);
    AT(before, 0) = AT(after, 0) = 0.0f;
    AT(values, (int32_t)args.parameter) = 1.0f;
}

/* An index so large that its distance in bytes wraps to one that is inside. */
KERNEL(wrong_far_index, probe_args, 256)
{
    SHARED(float, values, 64);
    AT(values, (int64_t)args.parameter << 34) = 1.0f;
}

KERNEL(wrong_dynamic_index, probe_args, 256)
{
    SHARED_DYNAMIC(uint32_t, values);
    AT(values, args.parameter) = 1;
}

KERNEL(wrong_range, probe_args, 256)
{
    SHARED(float, values, 64);
    store_f32x4(AT_RANGE(values, args.parameter, 4), F32X4_ZERO);
}

/* Some threads of a wave skip the barrier and end. */
KERNEL(wrong_barrier_in_branch, probe_args, 256)
{
    if (thread_index() < args.parameter)
        barrier();
}

/* Two waves wait at two different barriers. */
KERNEL(wrong_two_barriers, probe_args, 256)
{
    if (wave_index() == args.parameter)
        barrier();
    else
        barrier();
}

/* Half of a wave shuffles, the other half votes. */
KERNEL(wrong_wave_operations, probe_args, 256)
{
    if (lane() < 16)
        args.words[thread_index()] = wave_shuffle_u32(1, 0);
    else
        args.words[thread_index()] = (uint32_t)wave_ballot(true);
}

/* A wave operation in one branch, a barrier in the other. */
KERNEL(wrong_barrier_and_shuffle, probe_args, 256)
{
    if (lane() < 16)
        args.words[thread_index()] = wave_shuffle_u32(1, 0);
    else
        barrier();
}

KERNEL(wrong_lane, probe_args, 256)
{
    args.words[thread_index()] = wave_shuffle_u32(lane(), lane() + 1);
}

KERNEL(wrong_uniform, probe_args, 256)
{
    args.words[thread_index()] = wave_uniform_u32(lane() / 16);
}

/* Reads its neighbour wave's value without a barrier between. */
KERNEL(wrong_no_barrier, probe_args, 256)
{
    SHARED(uint32_t, values, 256);
    AT(values, thread_index()) = thread_index();
    args.words[thread_index()] = AT(values, (thread_index() + wave_size()) % block_size());
}

/* The same among the lanes of a wave. */
KERNEL(wrong_no_wave_barrier, probe_args, 256)
{
    SHARED(uint32_t, values, 256);
    AT(values, thread_index()) = thread_index();
    args.words[thread_index()] = AT(values, thread_index() ^ 1);
}

KERNEL(wrong_too_much_shared, probe_args, 256)
{
    SHARED(uint32_t, values, 16000);
    AT(values, thread_index()) = args.parameter;
}
