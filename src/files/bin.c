/* The .fbin family: u32 rows, u32 dim, then the rows, contiguous. The file name's ending gives the type of elements. */
#include "files/layout.h"

#include <string.h>

enum { BIN_HEADER_BYTES = 8 };

ww_status bin_layout(const file_source *source, ww_element element, file_layout *layout)
{
    uint32_t header[2];
    _Static_assert(sizeof header == BIN_HEADER_BYTES, "two counts make the header");
    if (source->size < BIN_HEADER_BYTES)
        return source_refuse(source, WW_CORRUPT_FILE, source->size,
                             "the file is cut short: the header is 8 bytes, rows and dim as u32");
    const ww_status status = source_read(source, 0, header, sizeof header);
    if (status != WW_OK)
        return status;
    if (header[1] == 0)
        return source_refuse(source, WW_CORRUPT_FILE, 4, "the header says dim 0");
    layout->rows = header[0];
    layout->dim = header[1];
    layout->element = element;
    layout->offset = BIN_HEADER_BYTES;
    layout->prefix_bytes = 0;
    return layout_fills(layout, source);
}
