/* Which list each row belongs to. A GPU compares rows in place: they become queries in its own memory, and only lists and
 * scores are copied back. On other devices, or if there is not enough memory, rows are read to the host.
 *
 * A row whose length is out of range makes its list unbounded (proof.c). On the host the length in double precision decides.
 * The device has the canonical length, which differs by its roundings, less than a thousandth: only rows whose canonical length
 * is within a factor of two of the limits, or out of range, are read to the host for the decision.
 */
#include "arithmetic/screen.h"
#include "base/integers.h"
#include "base/memory.h"
#include "vectors/ivf/ivf.h"

enum { NUMBERS_MAX = 1 << 16 }; /* numbers of rows that are sent to the device at a time */

ww_status ivf_reader_create(ivf_reader *reader, const ww_collection *c, const ivf *index, int64_t rows_max)
{
    *reader = (ivf_reader){.collection = c, .index = index, .rows_max = rows_max};
    const backend *api = c->device->backend;
    const size_t bytes = (size_t)rows_max * (size_t)c->dim * sizeof *reader->host;
    const ww_status status = api->rows_read_here ? api->buffer_create(c->device, bytes, &reader->here) : WW_OUT_OF_MEMORY;
    if (status != WW_OUT_OF_MEMORY)
        return status;
    reader->host = memory_alloc(bytes);
    return reader->host ? WW_OK : memory_failed("rows of an index", bytes);
}

void ivf_reader_free(ivf_reader *reader)
{
    ww_device *device = reader->collection->device;
    device->backend->buffer_destroy(device, &reader->here);
    memory_free(reader->norms);
    memory_free(reader->host);
}

/* Returns how many of the first rows are in the same segment, which it returns in `part`. */
static int64_t rows_together(const ww_collection *c, const int64_t *rows, int64_t count, const segment **part)
{
    *part = &c->store.segments[store_segment_of(&c->store, rows[0])];
    const int64_t end = (*part)->first_row + (*part)->capacity;
    int64_t together = 1;
    while (together < count && rows[together] < end)
        together++;
    return together;
}

ww_status ivf_read_rows_here(const ww_collection *c, const int64_t *rows, int64_t count, float *to)
{
    const int64_t numbers_max = min_i64(count, NUMBERS_MAX);
    int64_t *numbers = memory_alloc((size_t)numbers_max * sizeof *numbers);
    ww_status status = numbers ? WW_OK : memory_failed("the numbers of rows", (size_t)numbers_max * sizeof *numbers);
    for (int64_t done = 0, some; status == WW_OK && done < count; done += some) {
        const segment *part = NULL;
        some = rows_together(c, rows + done, min_i64(numbers_max, count - done), &part);
        for (int64_t i = 0; i < some; i++)
            numbers[i] = rows[done + i] - part->first_row;
        const row_choice chosen = {.segment = part, .numbers = numbers, .count = some, .dim = c->dim};
        status = c->device->backend->rows_read_here(c->device, &chosen, to + done * c->dim);
    }
    memory_free(numbers);
    return status;
}

/* ---- lengths ------------------------------------------------------------------------------------------------------------- */

static ww_status mark_row(const ivf_reader *reader, int64_t row, ivf_place *place)
{
    const size_t bytes = (size_t)reader->index->dim * sizeof(float);
    float *vector = memory_alloc(bytes);
    ww_status status = vector ? WW_OK : memory_failed("a row of an index", bytes);
    if (status == WW_OK)
        status = ivf_read_rows(reader->collection, &row, 1, vector);
    if (status == WW_OK)
        centroids_mark_unbounded(reader->index, vector, 1, place);
    memory_free(vector);
    return status;
}

/* Marks rows of one segment. */
static ww_status mark_rows(ivf_reader *reader, const segment *part, const int64_t *rows, int64_t count, ivf_place *places)
{
    const ww_collection *c = reader->collection;
    const int64_t first = rows[0] - part->first_row, span = rows[count - 1] - rows[0] + 1;
    const size_t bytes = (size_t)span * sizeof *reader->norms;
    float *norms = memory_resize(reader->norms, bytes);
    if (!norms)
        return memory_failed("the lengths of rows", bytes);
    reader->norms = norms;
    ww_status status = c->device->backend->copy_out(c->device, c->stream, norms,
                                                    (buffer_range){&part->norms, (size_t)first * sizeof *norms, bytes});
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        const float norm = norms[rows[i] - rows[0]];
        if (!(norm >= 2.0f * SCREEN_NORM_MIN && norm <= 0.5f * SCREEN_NORM_MAX))
            status = mark_row(reader, rows[i], &places[i]);
    }
    return status;
}

static ww_status mark_unbounded_here(ivf_reader *reader, const int64_t *rows, int64_t count, ivf_place *places)
{
    ww_status status = WW_OK;
    for (int64_t done = 0, some; status == WW_OK && reader->index->assigned == CANON_COSINE && done < count; done += some) {
        const segment *part = NULL;
        some = rows_together(reader->collection, rows + done, count - done, &part);
        status = mark_rows(reader, part, rows + done, some, places + done);
    }
    return status;
}

/* ---- places -------------------------------------------------------------------------------------------------------------- */

ww_status ivf_find_places(ivf_reader *reader, const int64_t *rows, int64_t count, ivf_place *places)
{
    const ivf *index = reader->index;
    if (reader->host) {
        ww_status status = ivf_read_rows(reader->collection, rows, count, reader->host);
        if (status == WW_OK)
            status = centroids_nearest(index, (ivf_vectors){reader->host, count, false}, places);
        if (status == WW_OK)
            centroids_mark_unbounded(index, reader->host, count, places);
        return status;
    }
    float *here = reader->here.data;
    ww_status status = ivf_read_rows_here(reader->collection, rows, count, here);
    if (status == WW_OK)
        status = centroids_nearest(index, (ivf_vectors){here, count, true}, places);
    return status == WW_OK ? mark_unbounded_here(reader, rows, count, places) : status;
}
