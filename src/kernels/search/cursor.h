/* Walking over the rows of all segments by words of 64: where a word's rows are, and which of them count. */
#ifndef WW_KERNELS_SEARCH_CURSOR_H
#define WW_KERNELS_SEARCH_CURSOR_H

#include "kernels/simt/simt.h"

#include "kernels/search/search.h"

/* 64 rows that share a word of the masks. */
typedef struct row_word {
    const float *rows;
    const float *norms;
    uint64_t admitted; /* a bit a row: live, and in the mask */
    uint32_t first_row;
} row_word;

/* Word number `word`, which is below rows->word_count. `segment` is any, and becomes the one it is in: who goes one way passes
 * each segment once. */
DEVICE row_word row_word_at(const search_rows *rows, uint32_t word, uint32_t *segment)
{
    const search_segment *segments = IN_GLOBAL(const search_segment, rows->segments);
    while (word >= segments[*segment].word_end)
        ++*segment;
    while (*segment > 0 && word < segments[*segment - 1].word_end)
        --*segment;
    const search_segment *s = &segments[*segment];
    const uint32_t within = word - (*segment == 0 ? 0 : segments[*segment - 1].word_end);
    const size_t row = (size_t)within * SEARCH_WORD_ROWS;
    row_word found;
    found.rows = IN_GLOBAL(const float, s->rows) + row * (size_t)(rows->runs * CANON_LANES);
    found.norms = IN_GLOBAL(const float, s->norms) + row;
    found.admitted = IN_GLOBAL(const uint64_t, s->live)[within];
    found.first_row = s->first_row + (uint32_t)row;
    if (rows->mask) {
        const uint32_t mask_word = found.first_row / SEARCH_WORD_ROWS;
        found.admitted &= mask_word < rows->mask_words ? IN_GLOBAL(const uint64_t, rows->mask)[mask_word] : 0;
    }
    return found;
}

#endif
