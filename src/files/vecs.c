/* .fvecs, .bvecs, .ivecs: each row is its dim as i32, then dim elements. The number of rows follows from the size.
 *
 * Opening checks only the first and the last row, so that a file of any size opens at once; the dim of every other row is
 * checked when the row is read. The last row is checked because in a file of mixed dims, or one that lost bytes in the middle,
 * its dim is nearly always wrong.
 */
#include "files/layout.h"

ww_status vecs_row_dim(const file_source *source, int64_t offset, int32_t found, int64_t dim)
{
    if (found == dim)
        return WW_OK;
    return source_refuse(source, WW_CORRUPT_FILE, offset, "the row has dim %d, the first %lld; all rows must have the same",
                         (int)found, (long long)dim);
}

ww_status vecs_layout(const file_source *source, ww_element element, file_layout *layout)
{
    int32_t dim, last_dim;
    if (source->size < (int64_t)sizeof dim)
        return source_refuse(source, WW_CORRUPT_FILE, source->size,
                             source->size == 0 ? "the file is empty"
                                               : "the file is cut short: a row begins with its dim as i32");
    ww_status status = source_read(source, 0, &dim, sizeof dim);
    if (status != WW_OK)
        return status;
    if (dim < 1)
        return source_refuse(source, WW_CORRUPT_FILE, 0, "the first row says dim %d; it must be at least 1", (int)dim);

    const int64_t row_bytes = (int64_t)sizeof dim + dim * ww_element_bytes(element); /* below 2^34 */
    const int64_t rest = source->size % row_bytes;
    if (rest != 0)
        return source_refuse(source, WW_CORRUPT_FILE, source->size - rest,
                             "%lld byte(s) left, a row of dim %d has %lld: the file is cut short, or its rows differ in dim",
                             (long long)rest, (int)dim, (long long)row_bytes);
    const int64_t last = source->size - row_bytes;
    status = source_read(source, last, &last_dim, sizeof last_dim);
    if (status == WW_OK)
        status = vecs_row_dim(source, last, last_dim, dim);
    if (status != WW_OK)
        return status;

    layout->rows = source->size / row_bytes;
    layout->dim = dim;
    layout->element = element;
    layout->offset = 0;
    layout->prefix_bytes = sizeof dim;
    return WW_OK;
}
