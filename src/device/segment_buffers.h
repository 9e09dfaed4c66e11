/* Creates a segment from the buffers of one device: every backend except the group uses these as segment_create and
 * segment_destroy. */
#ifndef WW_DEVICE_SEGMENT_BUFFERS_H
#define WW_DEVICE_SEGMENT_BUFFERS_H

#include "device/backend.h"

/* See segment_create and segment_destroy in backend.h. */
ww_status segment_buffers_create(ww_device *device, const segment_plan *plan, segment *out);
void segment_buffers_destroy(ww_device *device, segment *part);

/* The bytes that a row of such a segment takes on the device, and on the host if rows are there. */
typedef struct segment_row_bytes {
    size_t device, host;
} segment_row_bytes;

segment_row_bytes segment_bytes_of_row(const ww_device *device, const segment_plan *plan);

#endif
