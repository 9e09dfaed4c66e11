/* Products of blocks without any instruction set: the definition (arithmetic/blocks/dot.h), block by block. The other sets are
 * compared with this one, and share only the layout of rows with it.
 */
#include "arithmetic/blocks/dot.h"
#include "cpu/isa/scalar/scalar.h"
#include "cpu/quant/layout.h"

/* J and M of a block. */
static void block_sums(int32_t type, const void *block, const void *coded, int32_t *j, int32_t *m)
{
    const int32_t kind = dot_activations(type), offset = dot_offset(type);
    *j = *m = 0;
    for (int32_t p = 0; p < dot_pieces(type); p++) {
        dot_piece piece;
        int8_t codes[32], activations[32];
        dot_load(type, block, p, &piece);
        memcpy(codes, piece.words, sizeof codes);
        memcpy(activations, dot_activation_words(kind, coded, p), sizeof activations);
        for (int32_t i = 0; i < 32; i++) {
            *j += piece.scale[i / 16] * (codes[i] - offset) * activations[i];
            *m += piece.min[i / 16] * activations[i];
        }
    }
}

static void gemv(int32_t type, const quant_gemv *piece)
{
    const int32_t kind = dot_activations(type), bytes = block_bytes(type);
    for (int64_t r = 0; r < piece->rows; r++)
        for (int64_t c = 0; c < piece->columns; c++) {
            const char *row = piece->weights + r * piece->weights_stride;
            float acc[DOT_ACCUMULATORS] = {0};
            for (int64_t b = 0; b < piece->blocks; b++) {
                char blocks[GROUP_BYTES_MAX];
                if (b / BLOCK_GROUP < piece->blocks / BLOCK_GROUP)
                    group_deinterleave(type, row + b / BLOCK_GROUP * BLOCK_GROUP * bytes, blocks);
                else
                    memcpy(blocks + b % BLOCK_GROUP * bytes, row + b * bytes, (size_t)bytes);
                const void *block = blocks + b % BLOCK_GROUP * bytes;
                const void *coded = piece->activations + c * piece->activations_stride + b * block_bytes(kind);
                int32_t j, m;
                block_sums(type, block, coded, &j, &m);
                acc[b % DOT_ACCUMULATORS] = dot_add(dot_factors_of(type, block), dot_activation_factor(kind, coded), j, m,
                                                    dot_has_min(type), acc[b % DOT_ACCUMULATORS]);
            }
            for (int32_t s = DOT_ACCUMULATORS / 2; s > 0; s /= 2)
                for (int32_t i = 0; i < s; i++)
                    acc[i] = acc[i] + acc[i + s];
            piece->out[piece->places[c] * piece->out_stride + r] = acc[0];
        }
}

#define QUANT_PRODUCT(name, type, size, ...)                                                                                   \
    static void prepare_##name(const void *coded, int64_t blocks, void *to)                                                    \
    {                                                                                                                          \
        memcpy(to, coded, (size_t)(blocks * block_bytes(dot_activations(type))));                                              \
    }                                                                                                                          \
    static void gemv_##name(const quant_gemv *piece)                                                                           \
    {                                                                                                                          \
        gemv(type, piece);                                                                                                     \
    }
BLOCK_FORMATS(QUANT_PRODUCT)

#define QUANT_ENTRY(name, type, size, ...)                                                                                     \
    [type] = {.gemv_prepare = prepare_##name, .gemv = gemv_##name, .gemv_bytes = BLOCK_GROUP * ACTIVATIONS_##size},
enum { ACTIVATIONS_small = (int)sizeof(block_q8_1), ACTIVATIONS_large = (int)sizeof(block_q8_k) };

const quant_product quant_products_scalar[BLOCK_TYPES] = {BLOCK_FORMATS(QUANT_ENTRY)};
