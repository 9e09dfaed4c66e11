/* Marks in a search's work on the stream, by which a benchmark sees where the time goes (device/tuning.h). Nothing without it.
 */
#ifndef WW_GPU_SEARCH_SEARCH_MARKS_H
#define WW_GPU_SEARCH_SEARCH_MARKS_H

#include "gpu/stream.h"

/* What was queued since the mark before is called `name`. */
ww_status search_mark(gpu_stream *stream, const char *name);

/* Everything was waited for: adds the times between the marks to those of their names, and forgets the marks. */
ww_status search_marks_end(gpu_stream *stream);

#endif
