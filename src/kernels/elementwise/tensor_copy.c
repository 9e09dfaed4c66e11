/* Elements from one place to another as bits: copies between any two layouts, a value set everywhere, and a choice between two
 * tensors by a third. Types matter here by their size only.
 */
#include "kernels/elementwise/elements.h"

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
    const int32_t bits = bytes * 8;
    chunk_turns condition = chunks_load(&args.in[0], 1);
    chunk_turns yes = chunks_load(&args.in[1], bytes);
    chunk_turns no = chunks_load(&args.in[2], bytes);
    int64_t i = tile_begin() + thread_index() * CHUNK;
    UNROLL_BY(1) for (int32_t turn = 0; turn < TURNS; turn++)
    {
        chunk_bits chosen = no.turn[0];
        EACH
        {
            const bool is = (condition.turn[0].word[0] >> (8 * j) & 0xffu) != 0;
            const uint32_t all = is ? 0xffffffffu : 0u;
            if (bits == 32)
                chosen.word[j] ^= (chosen.word[j] ^ yes.turn[0].word[j]) & all;
            else if (bits == 16)
                chosen.word[j / 2] ^= (chosen.word[j / 2] ^ yes.turn[0].word[j / 2]) & all & (0xffffu << (16 * (j % 2)));
            else
                chosen.word[0] ^= (chosen.word[0] ^ yes.turn[0].word[0]) & all & (0xffu << (8 * j));
        }
        chunk_store(args.out.data, i, bytes, chosen);
        chunks_next(&condition);
        chunks_next(&yes);
        chunks_next(&no);
        i += TURN_ELEMENTS;
    }
}
