/* High planes of codes (arithmetic/screen.h) on a GPU. A plane is half as long as the codes, so a search for one query, which
 * is bound by memory, reads it first.
 *
 * A search for many queries reads whole codes, because the copy engine brings them to the matrix units as they are. So planes
 * are a copy beside the codes, like a cache: repeated searches for one query make them in free memory, and an allocation that
 * needs this memory gets it (gpu_planes_release). The answer is the same without planes.
 */
#ifndef WW_GPU_SEARCH_PLANES_PLANES_H
#define WW_GPU_SEARCH_PLANES_PLANES_H

#include "gpu/search/segment_table.h"
#include "gpu/stream.h"

ww_status gpu_planes_create(gpu_device *device);
/* Frees all planes too. No search may be running. */
void gpu_planes_destroy(gpu_device *device);

/* Gives each segment of the table its plane and sets `taken`; makes missing planes and waits for them. Gives none if the search
 * cannot read planes, if they are not worth making yet, or if there is no memory for them. A search that has taken planes must
 * end with gpu_planes_return(). */
ww_status gpu_planes_take(gpu_stream *stream, const search_job *job, segment_table *table, bool *taken);
void gpu_planes_return(gpu_device *device);

/* The codes at this address are about to change from row `first` of their segment on. */
void gpu_planes_outdate(gpu_device *device, const void *codes, int64_t first);

/* This memory is about to be freed: if it holds codes, frees their plane. The device is entered. */
void gpu_planes_forget(gpu_device *device, const void *codes);

/* Frees all planes unless a search is reading some. The device is entered. */
void gpu_planes_release(gpu_device *device);

#endif
