/* The codes of lists in list order: a copy of what the screen reads in the segments, padded + 12 bytes per row. The first
 * search with nprobe makes it. If there is not enough memory for it, lists.c gathers codes from the segments. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "cpu/cpu.h"
#include "cpu/search/search_state.h"

static void free_list(list_codes *list)
{
    memory_free(list->norms);
    memory_free(list->residuals);
    memory_free(list->scales);
    memory_free(list->codes);
}

void cpu_lists_destroy(ww_device *device, device_lists *lists)
{
    cpu_lists *held = (cpu_lists *)lists;
    (void)device;
    for (int64_t l = 0; held && l < held->count; l++)
        free_list(&held->lists[l]);
    if (held)
        memory_free(held->lists);
    memory_free(held);
}

int64_t cpu_lists_bytes(const device_lists *lists)
{
    const cpu_lists *held = (const cpu_lists *)lists;
    int64_t bytes = held->count * (int64_t)sizeof *held->lists;
    for (int64_t l = 0; l < held->count; l++)
        bytes += held->lists[l].capacity * (held->padded + 3 * (int64_t)sizeof(float));
    return bytes;
}

/* If it fails in the middle, nothing must be undone: arrays may be larger than the capacity. */
static bool reserve(list_codes *list, int64_t capacity, int32_t padded)
{
    const size_t rows = (size_t)capacity, floats = rows * sizeof(float);
    if (capacity <= list->capacity)
        return true;
    int8_t *codes = memory_resize(list->codes, rows * (size_t)padded);
    list->codes = codes ? codes : list->codes;
    float *scales = codes ? memory_resize(list->scales, floats) : NULL;
    list->scales = scales ? scales : list->scales;
    float *residuals = scales ? memory_resize(list->residuals, floats) : NULL;
    list->residuals = residuals ? residuals : list->residuals;
    float *norms = residuals ? memory_resize(list->norms, floats) : NULL;
    list->norms = norms ? norms : list->norms;
    list->capacity = norms ? capacity : list->capacity;
    return norms != NULL;
}

static void copy_row(const list_push *job, uint32_t row, const list_codes *to, int64_t at, int32_t padded)
{
    const segment *from = segment_of_row(job->segments, job->segment_count, row);
    const int64_t source = (int64_t)row - from->first_row;
    const buffer *codes = row_type_is_bytes(from->type) ? &from->rows : &from->codes;
    memcpy(to->codes + at * padded, (const int8_t *)codes->data + source * padded, (size_t)padded);
    to->scales[at] = ((const float *)from->scales.data)[source];
    to->residuals[at] = ((const float *)from->residuals.data)[source];
    to->norms[at] = ((const float *)from->norms.data)[source];
}

static bool push_lists(const list_push *job, cpu_lists *held)
{
    if (job->count > held->count) {
        list_codes *lists = memory_resize(held->lists, (size_t)job->count * sizeof *lists);
        if (!lists)
            return false;
        memset(lists + held->count, 0, (size_t)(job->count - held->count) * sizeof *lists);
        held->lists = lists;
        held->count = job->count;
    }
    for (int64_t l = 0; l < job->count; l++) {
        const row_list *list = &job->lists[l];
        if (!reserve(&held->lists[l], list->count, held->padded))
            return false;
        for (int64_t i = job->held[l]; i < list->count; i++)
            copy_row(job, list->rows[i], &held->lists[l], i, held->padded);
        job->held[l] = list->count;
    }
    return true;
}

ww_status cpu_lists_push(ww_device *device, const list_push *job, device_lists **lists)
{
    cpu_lists *held = *lists ? (cpu_lists *)*lists : memory_alloc_zeroed(1, sizeof *held);
    if (held)
        held->padded = canon_padded(job->dim);
    *lists = (device_lists *)held;
    if (held && push_lists(job, held))
        return WW_OK;
    cpu_lists_destroy(device, *lists);
    *lists = NULL;
    memset(job->held, 0, (size_t)job->count * sizeof *job->held);
    return memory_failed("the codes of lists", (size_t)job->count * sizeof *held->lists);
}
