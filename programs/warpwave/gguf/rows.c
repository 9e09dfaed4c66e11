/* Names of types, and decoding a tensor's rows to floats: shared by several actions. */
#include <stdio.h>

#include "base/memory.h"
#include "warpwave/gguf/gguf.h"

const char *gguf_type_text(int32_t type, char text[TYPE_TEXT_BYTES])
{
    const char *name = ww_gguf_type_name(type);
    if (name)
        return name;
    snprintf(text, TYPE_TEXT_BYTES, "type %d", (int)type);
    return text;
}

ww_status gguf_decode_rows(const gguf_rows *of, int64_t first, int64_t count, float *values)
{
    ww_gguf_tensor t = ww_gguf_tensor_default();
    ww_quant *q = NULL;
    int64_t row_bytes = 0;
    ww_status status = ww_gguf_tensor_at(of->gguf, of->index, &t);
    if (status == WW_OK)
        status = ww_quant_row_bytes((ww_quant_type)t.type, t.shape[0], &row_bytes);
    if (status != WW_OK)
        return status;
    const size_t bytes = (size_t)(count * row_bytes);
    void *blocks = memory_alloc(bytes);
    if (!blocks)
        return memory_failed("rows of a tensor", bytes);
    status = ww_gguf_read(of->gguf, of->index, first * row_bytes, blocks, bytes);
    if (status == WW_OK)
        status = ww_quant_load(of->device, (ww_quant_type)t.type, blocks, bytes, count, t.shape[0], &q);
    if (status == WW_OK)
        status = ww_quant_read_f32(q, 0, count, values);
    ww_quant_destroy(q);
    memory_free(blocks);
    return status;
}
