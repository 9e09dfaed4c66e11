/* High planes of codes (arithmetic/screen.h) on a GPU: half as long as the codes, so a search for one query, which is bound by
 * memory, reads them first.
 *
 * Searches of many queries read whole codes, which the copy engine brings to the matrix units as they are. So planes are beside
 * the codes, and only where that costs nobody anything: searches for one query make them when such searches come again, in
 * memory that is free, and any allocation that needs that memory gets it (gpu_planes_release). The answer is the same without
 * them.
 */
#ifndef WW_GPU_SEARCH_PLANES_PLANES_H
#define WW_GPU_SEARCH_PLANES_PLANES_H

#include "gpu/search/segment_table.h"
#include "gpu/stream.h"

ww_status gpu_planes_create(gpu_device *device);
/* Frees all planes, too; no search is under way. */
void gpu_planes_destroy(gpu_device *device);

/* Gives each segment of the table its plane and says so in `taken`, or gives none: for a search that reads no planes, if they
 * are not worth making yet, or without memory for them. Makes what is missing and waits for it. After a search that has taken
 * planes, gpu_planes_return() must be called. */
ww_status gpu_planes_take(gpu_stream *stream, const search_job *job, segment_table *table, bool *taken);
void gpu_planes_return(gpu_device *device);

/* Codes are about to change, from row `first` of the segment on that has them at this address. */
void gpu_planes_outdate(gpu_device *device, const void *codes, int64_t first);

/* Memory is about to be freed: if it holds codes, their plane goes, too. The device is entered. */
void gpu_planes_forget(gpu_device *device, const void *codes);

/* Frees all planes, unless a search reads some. The device is entered. */
void gpu_planes_release(gpu_device *device);

#endif
