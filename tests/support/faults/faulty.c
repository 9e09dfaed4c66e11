/* The counting table: each function checks whether this call must fail, and otherwise forwards it. */
#include "support/faults/faulty.h"

#include "base/status.h"
#include "device/backend.h"
#include "device/quant_jobs.h"
#include "support/faults/fault_counts.h"

fault_plan faults;

static const backend *real;
static backend counting;

static bool fails(void)
{
    const long call = ++faults.calls;
    return faults.first > 0 && call >= faults.first && call < faults.first + faults.count;
}

static ww_status injected(const char *call)
{
    fault_count("call of a backend", 1);
    return ww_fail(WW_DRIVER_ERROR, "%s: injected failure (999)", call);
}

/* A call that creates something fails before it; any other may also fail after its work. */
#define MAKES(name, call) return fails() ? injected(name) : (call)
#define WORKS(name, call)                                                                                                      \
    do {                                                                                                                       \
        const bool failing = fails();                                                                                          \
        const ww_status status = failing && !faults.after_work ? WW_OK : (call);                                               \
        return failing ? injected(name) : status;                                                                              \
    } while (0)

static ww_status buffer_create(ww_device *d, size_t bytes, buffer *out)
{
    MAKES("buffer_create", real->buffer_create(d, bytes, out));
}

static ww_status stream_create(ww_device *d, device_stream **out)
{
    MAKES("stream_create", real->stream_create(d, out));
}

static ww_status stream_synchronize(ww_device *d, device_stream *s)
{
    WORKS("stream_synchronize", real->stream_synchronize(d, s));
}

static ww_status fill(ww_device *d, device_stream *s, buffer_range to, uint32_t pattern)
{
    WORKS("fill", real->fill(d, s, to, pattern));
}

static ww_status copy_in(ww_device *d, device_stream *s, buffer_range to, const void *from)
{
    WORKS("copy_in", real->copy_in(d, s, to, from));
}

static ww_status copy_out(ww_device *d, device_stream *s, void *to, buffer_range from)
{
    WORKS("copy_out", real->copy_out(d, s, to, from));
}

static ww_status copy(ww_device *d, device_stream *s, buffer_range to, const buffer *from, size_t from_offset)
{
    WORKS("copy", real->copy(d, s, to, from, from_offset));
}

static ww_status rows_write(ww_device *d, row_range to, const void *rows, int64_t stride, int64_t *refused)
{
    WORKS("rows_write", real->rows_write(d, to, rows, stride, refused));
}

static ww_status rows_write_here(ww_device *d, row_range to, const void *rows, int64_t *refused)
{
    WORKS("rows_write_here", real->rows_write_here(d, to, rows, refused));
}

static ww_status rows_check_here(ww_device *d, const float *rows, int64_t count, int32_t dim, int64_t *refused)
{
    WORKS("rows_check_here", real->rows_check_here(d, rows, count, dim, refused));
}

static ww_status rows_read_here(ww_device *d, const row_choice *from, float *to)
{
    WORKS("rows_read_here", real->rows_read_here(d, from, to));
}

static ww_status rows_read(ww_device *d, row_range from, void *out)
{
    WORKS("rows_read", real->rows_read(d, from, out));
}

static ww_status rows_gather(ww_device *d, row_range to, const segment *from, const int64_t *sources)
{
    WORKS("rows_gather", real->rows_gather(d, to, from, sources));
}

static ww_status rows_search(ww_device *d, const search_job *job)
{
    WORKS("rows_search", real->rows_search(d, job));
}

static ww_status rows_range(ww_device *d, const range_job *job)
{
    WORKS("rows_range", real->rows_range(d, job));
}

static ww_status quant_encode(ww_device *d, const quant_encode_job *job)
{
    WORKS("quant encode", real->quants->encode(d, job));
}

static ww_status quant_decode(ww_device *d, const quant_decode_job *job)
{
    WORKS("quant decode", real->quants->decode(d, job));
}

static ww_status quant_encode_tensor(ww_device *d, const quant_encode_job *job)
{
    WORKS("quant encode tensor", real->quants->encode_tensor(d, job));
}

static ww_status quant_decode_tensor(ww_device *d, const quant_decode_tensor_job *job)
{
    WORKS("quant decode tensor", real->quants->decode_tensor(d, job));
}

static ww_status quant_product(ww_device *d, const quant_product_job *job)
{
    WORKS("quant product", real->quants->product(d, job));
}

static const quant_backend counting_quants = {.encode = quant_encode,
                                              .decode = quant_decode,
                                              .encode_tensor = quant_encode_tensor,
                                              .decode_tensor = quant_decode_tensor,
                                              .product = quant_product};

void faulty_attach(ww_device *device)
{
    faults = (fault_plan){0};
    if (device->backend == &counting)
        return; /* a test that failed did not detach it */
    real = device->backend;
    counting = *real;
    counting.buffer_create = buffer_create;
    counting.stream_create = stream_create;
    counting.stream_synchronize = stream_synchronize;
    counting.fill = fill;
    counting.copy_in = copy_in;
    counting.copy_out = copy_out;
    counting.copy = copy;
    counting.rows_write = rows_write;
    counting.rows_write_here = real->rows_write_here ? rows_write_here : NULL;
    counting.rows_check_here = real->rows_check_here ? rows_check_here : NULL;
    counting.rows_read_here = real->rows_read_here ? rows_read_here : NULL;
    counting.rows_read = rows_read;
    counting.rows_gather = rows_gather;
    counting.rows_search = rows_search;
    counting.rows_range = rows_range;
    counting.quants = &counting_quants;
    device->backend = &counting;
}

void faulty_detach(ww_device *device)
{
    device->backend = real;
}
