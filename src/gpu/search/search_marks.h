/* Timed marks between the steps of a search, with which a benchmark measures where the time goes (device/tuning.h). Without
 * tuning.marks these functions do nothing.
 */
#ifndef WW_GPU_SEARCH_SEARCH_MARKS_H
#define WW_GPU_SEARCH_SEARCH_MARKS_H

#include "gpu/stream.h"

/* Names the work queued since the previous mark `name`. */
ww_status search_mark(gpu_stream *stream, const char *name);

/* Adds the times between the marks to the totals of their names and forgets the marks. The stream must be idle. */
ww_status search_marks_end(gpu_stream *stream);

#endif
