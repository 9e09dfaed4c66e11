/* The table of segments: one entry for each non-empty segment, in order. */
#include "gpu/search/segment_table.h"

#include "arithmetic/row_types.h"
#include "base/integers.h"
#include "base/memory.h"
#include "kernels/search/packed_layout.h"

static int64_t words_of(const segment *part)
{
    return divide_up_i64(part->count, SEARCH_WORD_ROWS);
}

int64_t segment_table_words(const search_job *job)
{
    int64_t words = 0;
    for (int64_t i = 0; i < job->segment_count; i++)
        words += words_of(&job->segments[i]);
    return words;
}

ww_status segment_table_make(const search_job *job, bool by_number, segment_table *table, kernel_rows *rows)
{
    const size_t bytes = (by_number ? 2 : 1) * (size_t)job->segment_count * sizeof *table->segments;
    table->segments = memory_alloc(bytes);
    if (table->segments == NULL)
        return memory_failed("the table of segments", bytes);
    uint32_t filled = 0, words = 0;
    for (int64_t i = 0; i < job->segment_count; i++) {
        const segment *from = &job->segments[i];
        const uint32_t first = by_number ? (uint32_t)(from->first_row / SEARCH_WORD_ROWS) : words;
        if (from->count == 0)
            continue;
        if (first > words)
            table->segments[filled++] = (kernel_segment){.first_row = words * SEARCH_WORD_ROWS, .word_end = first};
        words = first + (uint32_t)words_of(from);
        table->segments[filled++] = (kernel_segment){.rows = from->rows.data,
                                                     .codes = row_type_is_bytes(job->type) ? from->rows.data : from->codes.data,
                                                     .scales = from->scales.data,
                                                     .residuals = from->residuals.data,
                                                     .norms = from->norms.data,
                                                     .live = from->live.data,
                                                     .first_row = (uint32_t)from->first_row,
                                                     .word_end = words};
    }
    table->bytes = filled * sizeof *table->segments;
    *rows = (kernel_rows){.segment_count = filled,
                          .word_count = words,
                          .chunks = packed_chunks(job->dim),
                          .metric = job->metric,
                          .type = job->type};
    return WW_OK;
}
