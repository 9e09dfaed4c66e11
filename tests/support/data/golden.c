/* Reads golden blocks. */
#include "support/data/golden.h"

#include <stdlib.h>

const golden_type golden_types[] = {
    {WW_QUANT_F16, "f16"},     {WW_QUANT_BF16, "bf16"}, {WW_QUANT_Q4_0, "q4_0"},     {WW_QUANT_Q4_1, "q4_1"},
    {WW_QUANT_Q5_0, "q5_0"},   {WW_QUANT_Q5_1, "q5_1"}, {WW_QUANT_Q8_0, "q8_0"},     {WW_QUANT_Q8_1, "q8_1"},
    {WW_QUANT_Q8_K, "q8_K"},   {WW_QUANT_Q2_K, "q2_K"}, {WW_QUANT_Q3_K, "q3_K"},     {WW_QUANT_Q4_K, "q4_K"},
    {WW_QUANT_Q5_K, "q5_K"},   {WW_QUANT_Q6_K, "q6_K"}, {WW_QUANT_IQ4_NL, "iq4_nl"}, {WW_QUANT_IQ4_XS, "iq4_xs"},
    {WW_QUANT_MXFP4, "mxfp4"}, {WW_QUANT_F32, NULL},
};

void *golden_read(const char *name, size_t size)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/tests/golden/quant/%s", SOURCE_DIR, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    char *content = malloc(size + 1);
    const size_t got = fread(content, 1, size + 1, file);
    fclose(file);
    if (got != size)
        fail_msg("%s has %zu bytes or more, not %zu", name, got, size);
    return content;
}
