/* Elements from one place to another as bits: copies between any two layouts, a value set everywhere, and a choice between two
 * tensors by a third. Types matter here by their size only.
 */
#include "kernels/elements.h"

KERNEL(tensor_copy, elementwise_args, ELEMENTWISE_THREADS)
{
    UNROLL_BY(1) for (int64_t i = tile_begin() + thread_index(); i < tile_end(&args); i += ELEMENTWISE_THREADS)
    {
        if (args.chunks == CHUNKS_UNITS)
            unit_copy(args.out.data, place_of(&args, &args.out, i), args.in[0].data, place_of(&args, &args.in[0], i));
        else
            element_put(&args, &args.out, i, element_bits(&args, &args.in[0], i));
    }
}

/* args.ia is the value's bits. */
KERNEL(tensor_set, elementwise_args, ELEMENTWISE_THREADS)
{
    UNROLL_BY(1)
    for (int64_t i = tile_begin() + thread_index(); i < tile_end(&args); i += ELEMENTWISE_THREADS)
        element_put(&args, &args.out, i, (uint64_t)args.ia);
}

/* in[0] is the condition, in[1] what is taken where that is not 0, in[2] what is taken where it is. By chunks where the
 * condition is u8 and the values have at most 4 bytes. */
KERNEL(tensor_where, elementwise_args, ELEMENTWISE_THREADS)
{
    if (!tile_in_chunks(&args)) {
        UNROLL_BY(1) for (int64_t i = tile_begin() + thread_index(); i < tile_end(&args); i += ELEMENTWISE_THREADS)
        {
            const bool yes = element_bits(&args, &args.in[0], i) != 0;
            element_put(&args, &args.out, i, yes ? element_bits(&args, &args.in[1], i) : element_bits(&args, &args.in[2], i));
        }
        return;
    }
    const int32_t bytes = type_bytes(args.out.type);
    chunk_turns condition_ahead = chunks_load(&args, &args.in[0], 1, bytes);
    chunk_turns yes_ahead = chunks_load(&args, &args.in[1], bytes, bytes);
    chunk_turns no_ahead = chunks_load(&args, &args.in[2], bytes, bytes);
    chunk_bits held = {};
    UNROLL_BY(1) for (int32_t turn = 0; turn < TURNS; turn++)
    {
        const int64_t i = chunk_first(bytes, turn);
        const uint32_t condition = chunk_take(&args, &args.in[0], 1, i, &condition_ahead).word[0];
        const chunk_bits yes = chunk_take(&args, &args.in[1], bytes, i, &yes_ahead);
        chunk_bits chosen = chunk_take(&args, &args.in[2], bytes, i, &no_ahead);
        EACH
        {
            const uint32_t all = (condition >> (8 * j) & 0xffu) != 0 ? 0xffffffffu : 0u;
            if (bytes == 4)
                chosen.word[j] ^= (chosen.word[j] ^ yes.word[j]) & all;
            else if (bytes == 2)
                chosen.word[j / 2] ^= (chosen.word[j / 2] ^ yes.word[j / 2]) & all & (0xffffu << (16 * (j % 2)));
            else
                chosen.word[0] ^= (chosen.word[0] ^ yes.word[0]) & all & (0xffu << (8 * j));
        }
        chunk_put(args.out.data, bytes, i, turn, chosen, &held);
    }
}
