/* The types of quantized matrices: their names and blocks, and the bytes of a row. */
#include "quant/types.h"

#include <strings.h>

#include "base/float_guard.h"
#include "base/text.h"

/* In the order of messages and help. */
static const struct {
    ww_quant_type type;
    const char *name;
} types[] = {{WW_QUANT_F32, "f32"},
             {WW_QUANT_F16, "f16"},
             {WW_QUANT_BF16, "bf16"},
#define FORMAT(name, number, size, text) {(ww_quant_type)(number), text},
             BLOCK_FORMATS(FORMAT)
#undef FORMAT
};
enum { TYPES = sizeof types / sizeof *types };

/* The API, GGUF and the kernels use the same numbers; the blocks have the bytes of the format. */
_Static_assert(WW_QUANT_Q4_0 == BLOCK_Q4_0 && WW_QUANT_Q5_1 == BLOCK_Q5_1 && WW_QUANT_Q8_1 == BLOCK_Q8_1 &&
                   WW_QUANT_Q2_K == BLOCK_Q2_K && WW_QUANT_Q6_K == BLOCK_Q6_K && WW_QUANT_Q8_K == BLOCK_Q8_K &&
                   WW_QUANT_BF16 == BLOCK_BF16 && WW_QUANT_IQ4_NL == BLOCK_IQ4_NL && WW_QUANT_IQ4_XS == BLOCK_IQ4_XS &&
                   WW_QUANT_MXFP4 == BLOCK_MXFP4,
               "the numbers of types");
_Static_assert(sizeof(block_q4_0) == 18 && sizeof(block_q4_1) == 20 && sizeof(block_q5_0) == 22 && sizeof(block_q5_1) == 24 &&
                   sizeof(block_q8_0) == 34 && sizeof(block_q8_1) == 36 && sizeof(block_q2_k) == 84 &&
                   sizeof(block_q3_k) == 110 && sizeof(block_q4_k) == 144 && sizeof(block_q5_k) == 176 &&
                   sizeof(block_q6_k) == 210 && sizeof(block_q8_k) == 292 && sizeof(block_iq4_nl) == 18 &&
                   sizeof(block_iq4_xs) == 136 && sizeof(block_mxfp4) == 17,
               "the bytes of blocks");

bool quant_type_known(int64_t type)
{
    return type >= 0 && type < BLOCK_TYPES && block_elements((int32_t)type) > 0;
}

const char *ww_quant_name(ww_quant_type type)
{
    for (int i = 0; i < TYPES; i++)
        if (types[i].type == type)
            return types[i].name;
    return NULL;
}

/* Writes the names of all types, separated by commas. */
static void list_types(char *text, size_t capacity)
{
    text_copy(text, capacity, "");
    for (int i = 0; i < TYPES; i++) {
        text_append(text, capacity, i ? ", " : "");
        text_append(text, capacity, types[i].name);
    }
}

ww_status ww_quant_find(const char *name, ww_quant_type *type)
{
    FLOAT_GUARD();
    if (!name || !type)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_quant_find: %s is NULL", name ? "type" : "name");
    for (int i = 0; i < TYPES; i++)
        if (strcasecmp(types[i].name, name) == 0) {
            *type = types[i].type;
            return WW_OK;
        }
    char list[256];
    list_types(list, sizeof list);
    return ww_fail(WW_INVALID_ARGUMENT, "unknown quantized type '%s'; the types are %s", name, list);
}

int64_t ww_quant_block_elements(ww_quant_type type)
{
    return block_elements((int32_t)type);
}

int64_t ww_quant_block_bytes(ww_quant_type type)
{
    return block_bytes((int32_t)type);
}

ww_status ww_quant_row_bytes(ww_quant_type type, int64_t cols, int64_t *bytes)
{
    FLOAT_GUARD();
    if (!bytes)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_quant_row_bytes: bytes is NULL");
    if (!quant_type_known((int64_t)type))
        return ww_fail(WW_INVALID_ARGUMENT, "%lld is not a ww_quant_type", (long long)type);
    const int64_t elements = ww_quant_block_elements(type);
    if (cols < 1 || cols > QUANT_COLS_MAX)
        return ww_fail(WW_INVALID_ARGUMENT, "a row has %lld columns; it must have 1 to %lld", (long long)cols,
                       (long long)QUANT_COLS_MAX);
    if (cols % elements != 0)
        return ww_fail(
            WW_DIMENSION_MISMATCH,
            "a row of %lld columns cannot be %s, whose blocks hold %lld; use a type with smaller blocks, or pad the rows",
            (long long)cols, ww_quant_name(type), (long long)elements);
    *bytes = cols / elements * ww_quant_block_bytes(type);
    return WW_OK;
}
