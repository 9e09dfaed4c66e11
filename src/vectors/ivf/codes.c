/* The codes of a list's rows, one behind the other, for a backend that reads lists in the host's memory: a copy of what the
 * segments have, padded + 12 bytes a row. */
#include <string.h>

#include "arithmetic/canon.h"
#include "base/memory.h"
#include "vectors/ivf/ivf.h"

int32_t ivf_codes_padded(const ww_collection *c)
{
    return c->store.screen && c->device->backend->codes_copy ? canon_padded(c->dim) : 0;
}

/* Arrays that are larger than the list's capacity do no harm, so a failure in the middle needs no way back. */
ww_status ivf_codes_reserve(int32_t padded, row_codes *codes, int64_t capacity)
{
    const size_t rows = (size_t)capacity, floats = rows * sizeof(float);
    if (padded == 0)
        return WW_OK;
    int8_t *made = memory_resize(codes->codes, rows * (size_t)padded);
    codes->codes = made ? made : codes->codes;
    float *scales = made ? memory_resize(codes->scales, floats) : NULL;
    codes->scales = scales ? scales : codes->scales;
    float *residuals = scales ? memory_resize(codes->residuals, floats) : NULL;
    codes->residuals = residuals ? residuals : codes->residuals;
    float *norms = residuals ? memory_resize(codes->norms, floats) : NULL;
    codes->norms = norms ? norms : codes->norms;
    return norms ? WW_OK : memory_failed("the codes of a list", rows * (size_t)padded + 3 * floats);
}

void ivf_codes_free(row_codes *codes)
{
    memory_free(codes->norms);
    memory_free(codes->residuals);
    memory_free(codes->scales);
    memory_free(codes->codes);
    *codes = (row_codes){0};
}

void ivf_codes_take(const ww_collection *c, uint32_t row, const row_codes *to, int64_t at)
{
    const segment *from = &c->store.segments[store_segment_of(&c->store, row)];
    c->device->backend->codes_copy(from, (int64_t)row - from->first_row, c->dim, to, at);
}

void ivf_codes_move(int32_t padded, const row_codes *codes, int64_t from, int64_t to)
{
    if (padded == 0 || from == to)
        return;
    memcpy(codes->codes + to * padded, codes->codes + from * padded, (size_t)padded);
    codes->scales[to] = codes->scales[from];
    codes->residuals[to] = codes->residuals[from];
    codes->norms[to] = codes->norms[from];
}

void ivf_codes_refresh(ww_collection *c)
{
    ivf *index = c->index;
    if (!index)
        return;
    index->padded = ivf_codes_padded(c);
    ww_status status = WW_OK;
    for (int64_t l = 0; l < index->nlist; l++) {
        ivf_list *list = &index->lists[l];
        ivf_codes_free(&list->codes);
        if (status == WW_OK && list->capacity > 0)
            status = ivf_codes_reserve(index->padded, &list->codes, list->capacity);
        for (int64_t i = 0; status == WW_OK && index->padded > 0 && i < list->count; i++)
            ivf_codes_take(c, list->rows[i], &list->codes, i);
    }
    for (int64_t l = 0; status != WW_OK && l < index->nlist; l++)
        ivf_codes_free(&index->lists[l].codes);
    if (status != WW_OK)
        index->padded = 0;
}
