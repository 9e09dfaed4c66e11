/* How SQLite lays vectors out in pages (its file format, "b-tree pages"): a leaf holds as many whole rows as fit. Of a row
 * longer than a page, one part stays in the leaf and the rest fills overflow pages, the last one partly.
 */
#include "store/page_size.h"

enum {
    PAGE_HEADER_BYTES = 8,  /* of a leaf */
    CELL_BYTES = 2 + 2 + 3, /* pointer to the cell, length of the row and its place, for up to a few million rows */
    ROW_BYTES = 5 + 3,      /* column types and handle */
    PAGE_USUAL_BYTES = 4096,
    PAGE_WASTE_SHARE = 19, /* a small page may take 1/19 more room than the best: each write of a row writes four whole pages */
};

int64_t page_milli_bytes(int64_t page_bytes, int64_t vector_bytes)
{
    const int64_t row = vector_bytes + ROW_BYTES;
    const int64_t local_max = page_bytes - 35;
    int64_t local = row, overflow_pages = 0;
    if (row > local_max) {
        const int64_t local_min = (page_bytes - 12) * 32 / 255 - 23;
        local = local_min + (row - local_min) % (page_bytes - 4);
        if (local > local_max)
            local = local_min;
        overflow_pages = (row - local + page_bytes - 5) / (page_bytes - 4);
    }
    const int64_t rows_a_page = (page_bytes - PAGE_HEADER_BYTES) / (local + CELL_BYTES);
    return 1000 * page_bytes / (rows_a_page > 0 ? rows_a_page : 1) + 1000 * overflow_pages * page_bytes;
}

int32_t page_bytes_for(int64_t vector_bytes)
{
    int64_t smallest = INT64_MAX;
    for (int64_t page = PAGE_USUAL_BYTES; page <= PAGE_BYTES_MAX; page *= 2)
        smallest = page_milli_bytes(page, vector_bytes) < smallest ? page_milli_bytes(page, vector_bytes) : smallest;
    int64_t page = PAGE_USUAL_BYTES;
    while (page_milli_bytes(page, vector_bytes) > smallest + smallest / PAGE_WASTE_SHARE)
        page *= 2;
    return (int32_t)page;
}
