/* Marks are timed events. They live from the first mark to the end of a round. */
#include "gpu/search/search_marks.h"

#include <string.h>

#include "device/backend.h"
#include "gpu/device.h"

ww_status search_mark(gpu_stream *stream, const char *name)
{
    search_marks *marks = stream->device->base.tuning.marks;
    if (marks == NULL || marks->pending == SEARCH_MARKS_MAX)
        return WW_OK;
    driver_event event = NULL;
    ww_status status = gpu_event_create(stream->device, true, &event);
    if (status == WW_OK)
        status = gpu_event_record(stream, event);
    if (status != WW_OK) {
        gpu_event_destroy(stream->device, event);
        return status;
    }
    marks->events[marks->pending] = event;
    marks->names[marks->pending++] = name;
    return WW_OK;
}

static void add(search_marks *marks, const char *name, float milliseconds)
{
    int32_t at = 0;
    while (at < marks->count && strcmp(marks->phases[at].name, name) != 0)
        at++;
    if (at == marks->count && at < SEARCH_MARKS_MAX)
        marks->phases[marks->count++] = (search_phase){.name = name};
    if (at < SEARCH_MARKS_MAX)
        marks->phases[at].milliseconds += milliseconds;
}

ww_status search_marks_end(gpu_stream *stream)
{
    search_marks *marks = stream->device->base.tuning.marks;
    ww_status status = WW_OK;
    if (marks == NULL)
        return WW_OK;
    for (int32_t i = 1; status == WW_OK && i < marks->pending; i++) {
        float milliseconds = 0;
        status = gpu_event_elapsed(stream->device, marks->events[i - 1], marks->events[i], &milliseconds);
        if (status == WW_OK)
            add(marks, marks->names[i], milliseconds);
    }
    for (int32_t i = 0; i < marks->pending; i++)
        gpu_event_destroy(stream->device, marks->events[i]);
    marks->pending = 0;
    return status;
}
