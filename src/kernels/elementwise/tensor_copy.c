/* Moves elements as bits: copies between any two layouts, sets all elements to a value, and chooses between two tensors by a
 * third. Only the size of a type matters here.
 */
#include "kernels/elementwise/elements.h"

KERNEL(tensor_copy, elementwise_args, ELEMENTWISE_THREADS)
{
    UNROLL_BY(1) for (int64_t i = tile_begin() + thread_index(); i < tile_end(&args); i += ELEMENTWISE_THREADS)
    {
        if (args.quads == QUADS_UNITS)
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

/* in[0] is the condition, in[1] the values where it is not 0, in[2] the values where it is. By quads if the condition is u8 and
 * the values have at most 4 bytes. */
KERNEL(tensor_where, elementwise_args, ELEMENTWISE_THREADS)
{
    if (!tile_in_quads(&args)) {
        UNROLL_BY(1) for (int64_t i = tile_begin() + thread_index(); i < tile_end(&args); i += ELEMENTWISE_THREADS)
        {
            const bool yes = element_bits(&args, &args.in[0], i) != 0;
            element_put(&args, &args.out, i, yes ? element_bits(&args, &args.in[1], i) : element_bits(&args, &args.in[2], i));
        }
        return;
    }
    const int32_t bytes = type_bytes(args.out.type);
    const int32_t bits = bytes * 8;
    quad_slots condition = quads_load(&args.in[0], 1);
    quad_slots yes = quads_load(&args.in[1], bytes);
    quad_slots no = quads_load(&args.in[2], bytes);
    int64_t i = tile_begin() + thread_index() * QUAD;
    UNROLL_BY(1) for (int32_t slot = 0; slot < SLOTS; slot++)
    {
        quad_bits chosen = no.slot[0];
        EACH
        {
            const bool is = (condition.slot[0].word[0] >> (8 * j) & 0xffu) != 0;
            const uint32_t all = is ? 0xffffffffu : 0u;
            if (bits == 32)
                chosen.word[j] ^= (chosen.word[j] ^ yes.slot[0].word[j]) & all;
            else if (bits == 16)
                chosen.word[j / 2] ^= (chosen.word[j / 2] ^ yes.slot[0].word[j / 2]) & all & (0xffffu << (16 * (j % 2)));
            else
                chosen.word[0] ^= (chosen.word[0] ^ yes.slot[0].word[0]) & all & (0xffu << (8 * j));
        }
        quad_store(args.out.data, i, bytes, chosen);
        quads_next(&condition);
        quads_next(&yes);
        quads_next(&no);
        i += SLOT_ELEMENTS;
    }
}
