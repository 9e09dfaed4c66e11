/* A segment made of the buffers of one device: what every backend but a group has for segment_create and segment_destroy. */
#ifndef WW_DEVICE_SEGMENT_BUFFERS_H
#define WW_DEVICE_SEGMENT_BUFFERS_H

#include "device/backend.h"

/* As backend.h says of segment_create and segment_destroy, by the backend's buffers. */
ww_status segment_buffers_create(ww_device *device, const segment_plan *plan, segment *out);
void segment_buffers_destroy(ww_device *device, segment *part);

/* What a row of such a segment takes of the device's memory, and of the host's if its rows are there. */
typedef struct segment_row_bytes {
    size_t device, host;
} segment_row_bytes;

segment_row_bytes segment_bytes_of_row(const ww_device *device, const segment_plan *plan);

#endif
