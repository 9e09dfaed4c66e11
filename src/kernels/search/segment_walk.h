/* Finds the rows of a word of 64 rows, and which of them are admitted.
 *
 * There are two ways to find the segment: step by step from the last one, for a kernel that reads the rows in order
 * (row_word_at), and by bisection, for one that starts anywhere (segment_place_of).
 */
#ifndef WW_KERNELS_SEARCH_SEGMENT_WALK_H
#define WW_KERNELS_SEARCH_SEGMENT_WALK_H

#include "kernels/simt/simt.h"

#include "arithmetic/canon.h"
#include "kernels/search/segments.h"
#include "kernels/search/typed_rows.h"

/* The type of the rows. A module whose kernels take only some types defines this more narrowly before it includes anything, so
 * that the compiler drops the code for the others. */
#ifndef ROW_TYPE
#define ROW_TYPE(rows) ((rows)->type)
#endif

/* A function, because comparing ROW_TYPE(), which is a constant in a file with one row type, would make an analyzer warn. */
DEVICE bool row_type_is_f32(int32_t type)
{
    return type == ROW_F32;
}

/* Floats from one row to the next, on average over a word of 64 rows. */
#define ROW_FLOATS(rows) ((rows)->chunks * (int32_t)(CANON_LANES / sizeof(float) * row_type_bytes(ROW_TYPE(rows))))

/* A segment, in global memory, and the numbers of its words: begin <= word < end. */
typedef struct segment_place {
    const kernel_segment *segment;
    uint32_t word_begin, word_end;
} segment_place;

/* An empty place to start with. */
DEVICE segment_place segment_place_none(const kernel_rows *rows)
{
    segment_place place;
    place.segment = rows->segments;
    place.word_begin = place.word_end = 0;
    return place;
}

/* Returns the segment that holds word `word`, which is below rows->word_count. */
DEVICE segment_place segment_place_of(const kernel_rows *rows, uint32_t word)
{
    const kernel_segment *segments = IN_GLOBAL(const kernel_segment, rows->segments);
    uint32_t low = 0, high = rows->segment_count - 1;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (word >= segments[middle].word_end)
            low = middle + 1;
        else
            high = middle;
    }
    segment_place place;
    place.segment = segments + low;
    place.word_begin = low == 0 ? 0 : segments[low - 1].word_end;
    place.word_end = segments[low].word_end;
    return place;
}

DEVICE bool segment_place_has(const segment_place *place, uint32_t word)
{
    return word >= place->word_begin && word < place->word_end;
}

/* Returns a bit for each row of word `within` of a segment that is live and in the mask. */
DEVICE uint64_t segment_admitted(const kernel_rows *rows, const kernel_segment *segment, uint32_t within)
{
    uint64_t admitted = IN_GLOBAL(const uint64_t, segment->live)[within];
    if (rows->mask) {
        const uint32_t mask_word = segment->first_row / 64 + within;
        admitted &= mask_word < rows->mask_words ? IN_GLOBAL(const uint64_t, rows->mask)[mask_word] : 0;
    }
    return admitted;
}

/* Like segment_admitted(), if all lanes of a wave ask for the same word. */
DEVICE uint64_t segment_admitted_uniform(const kernel_rows *rows, const kernel_segment *segment, uint32_t within)
{
    uint64_t admitted = IN_CONSTANT(uint64_t, IN_CONSTANT(kernel_segment, segment)->live)[within];
    if (rows->mask) {
        const uint32_t mask_word = IN_CONSTANT(kernel_segment, segment)->first_row / 64 + within;
        admitted &= mask_word < rows->mask_words ? IN_CONSTANT(uint64_t, rows->mask)[mask_word] : 0;
    }
    return admitted;
}

/* The 64 rows of a word. */
typedef struct row_word {
    const float *rows;
    const float *norms;
    uint64_t admitted; /* a bit for each row that is live and in the mask */
    uint32_t first_row;
} row_word;

/* Returns word `word`, which is below rows->word_count. `segment` is the number of any segment and becomes that of the word's,
 * so a caller that moves in one direction visits each segment once. */
DEVICE row_word row_word_at(const kernel_rows *rows, uint32_t word, uint32_t *segment)
{
    const kernel_segment *segments = IN_GLOBAL(const kernel_segment, rows->segments);
    while (word >= segments[*segment].word_end)
        ++*segment;
    while (*segment > 0 && word < segments[*segment - 1].word_end)
        --*segment;
    const kernel_segment *s = &segments[*segment];
    const uint32_t within = word - (*segment == 0 ? 0 : segments[*segment - 1].word_end);
    const size_t row = (size_t)within * SEARCH_WORD_ROWS;
    row_word found;
    found.rows = IN_GLOBAL(const float, s->rows) + row * (size_t)(ROW_FLOATS(rows));
    found.norms = IN_GLOBAL(const float, s->norms) + row;
    found.admitted = segment_admitted(rows, s, within);
    found.first_row = s->first_row + (uint32_t)row;
    return found;
}

#endif
