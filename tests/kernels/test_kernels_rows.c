/* The kernels that store rows, through the backend's table: rows are read back bit for bit, norms have the CPU's bits, the
 * first row that is not finite is reported, and gathered rows are the right ones.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "arithmetic/convert.h"
#include "arithmetic/row_types.h"
#include "device/backend.h"
#include "support/data/random.h"
#include "support/devices.h"

enum { CAPACITY = 192 };

static segment segment_make(ww_device *device, int32_t dim)
{
    segment made = {.capacity = CAPACITY};
    CHECK_OK(device->backend->buffer_create(device, CAPACITY * (size_t)canon_padded(dim) * sizeof(float), &made.rows));
    CHECK_OK(device->backend->buffer_create(device, CAPACITY * sizeof(float), &made.norms));
    return made;
}

static void segment_free(ww_device *device, segment *s)
{
    device->backend->buffer_destroy(device, &s->rows);
    device->backend->buffer_destroy(device, &s->norms);
}

static void norms_read(ww_device *device, const segment *s, float *norms)
{
    device_stream *stream;
    CHECK_OK(device->backend->stream_create(device, &stream));
    CHECK_OK(device->backend->copy_out(device, stream, norms, (buffer_range){&s->norms, 0, CAPACITY * sizeof *norms}));
    device->backend->stream_destroy(device, stream);
}

static void check_row(ww_device *device, const segment *s, int64_t row, int32_t dim, const float *expected)
{
    float *read = malloc((size_t)dim * sizeof *read);
    CHECK_OK(device->backend->rows_read(device, (row_range){s, row, 1, dim}, read));
    assert_memory_equal(read, expected, (size_t)dim * sizeof *read);
    free(read);
}

static const int32_t dims[] = {1, 3, 31, 63, 64, 65, 127, 128, 129, 192, 320, 1000};
enum { DIMS = sizeof dims / sizeof *dims };

static void rows_are_read_back_unchanged_and_have_the_cpus_norms(void **state)
{
    enum { COUNT = 77, FIRST = 64, GAP = 5 };
    ww_device *cpu;
    CHECK_OK(ww_device_open("cpu", &cpu));
    for (int d = 0; d < DIMS; d++) {
        const int64_t stride = dims[d] + GAP;
        test_random random = {(uint64_t)d};
        float *rows = malloc((size_t)(COUNT * stride) * sizeof *rows);
        random_normals(&random, rows, COUNT * stride);
        segment there = segment_make(*state, dims[d]), here = segment_make(cpu, dims[d]);
        int64_t refused = 0;
        ww_device *device = *state;
        CHECK_OK(device->backend->rows_write(device, (row_range){&there, FIRST, COUNT, dims[d]}, rows, stride, &refused));
        assert_int_equal(refused, -1);
        CHECK_OK(cpu->backend->rows_write(cpu, (row_range){&here, FIRST, COUNT, dims[d]}, rows, stride, &refused));
        for (int64_t i = 0; i < COUNT; i += 4)
            check_row(device, &there, FIRST + i, dims[d], rows + i * stride);
        float a[CAPACITY], b[CAPACITY];
        norms_read(device, &there, a);
        norms_read(cpu, &here, b);
        assert_memory_equal(a + FIRST, b + FIRST, COUNT * sizeof *a);
        segment_free(cpu, &here);
        segment_free(device, &there);
        free(rows);
    }
    ww_device_close(cpu);
}

static void the_first_row_that_is_not_finite_is_named(void **state)
{
    enum { COUNT = 100, DIM = 70 };
    static const float wrong[] = {NAN, INFINITY, -INFINITY, 3e38f};
    ww_device *device = *state;
    segment s = segment_make(device, DIM);
    test_random random = {3};
    float rows[COUNT * DIM];
    for (int i = 0; i < 4; i++) {
        random_normals(&random, rows, (int64_t)COUNT * DIM);
        rows[93 * DIM] = NAN;
        rows[(37 + i) * DIM + 69 - i] = wrong[i];
        rows[50 * DIM + 7] = INFINITY;
        int64_t refused = -1;
        CHECK_OK(device->backend->rows_write(device, (row_range){&s, 0, COUNT, DIM}, rows, DIM, &refused));
        assert_int_equal(refused, 37 + i);
    }
    segment_free(device, &s);
}

static void gathered_rows_are_the_right_ones(void **state)
{
    enum { COUNT = 150 };
    ww_device *device = *state;
    for (int d = 0; d < DIMS; d += 3) {
        test_random random = {(uint64_t)d};
        float *rows = malloc(COUNT * (size_t)dims[d] * sizeof *rows);
        random_normals(&random, rows, (int64_t)COUNT * dims[d]);
        segment from = segment_make(device, dims[d]), to = segment_make(device, dims[d]);
        int64_t refused, sources[COUNT], count = 0;
        CHECK_OK(device->backend->rows_write(device, (row_range){&from, 0, COUNT, dims[d]}, rows, dims[d], &refused));
        for (int64_t i = 0; i < COUNT; i++)
            if (i % 3 != 0)
                sources[count++] = i;
        CHECK_OK(device->backend->rows_gather(device, (row_range){&to, 9, count, dims[d]}, &from, sources));
        float a[CAPACITY], b[CAPACITY];
        norms_read(device, &from, a);
        norms_read(device, &to, b);
        for (int64_t i = 0; i < count; i++) {
            check_row(device, &to, 9 + i, dims[d], rows + sources[i] * dims[d]);
            assert_int_equal(canon_float_bits(b[9 + i]), canon_float_bits(a[sources[i]]));
        }
        CHECK_OK(device->backend->rows_gather(device, (row_range){&to, 0, 0, dims[d]}, &from, sources));
        segment_free(device, &to);
        segment_free(device, &from);
        free(rows);
    }
}

/* Rows of every type as floats, in memory of the device. */
static void rows_are_read_here_as_floats(void **state)
{
    enum { COUNT = 150 };
    ww_device *device = *state;
    for (int d = 0; device->backend->rows_read_here && d < DIMS; d++)
        for (int32_t type = 0; type < ROW_TYPES; type++) {
            const size_t floats = COUNT * (size_t)dims[d];
            char *elements = malloc(floats * sizeof(float));
            float *wide = malloc(2 * floats * sizeof *wide), *read = wide + floats;
            test_random random = {(uint64_t)(d + type)};
            for (size_t i = 0; i < floats; i++) {
                const float value = (float)random_below(&random, 100);
                const uint16_t half = type == ROW_F16 ? narrow_f16(value) : (uint16_t)(canon_float_bits(value) >> 16);
                wide[i] = value;
                if (type == ROW_F32)
                    ((float *)(void *)elements)[i] = value;
                else if (row_type_is_bytes(type))
                    elements[i] = (char)value;
                else
                    ((uint16_t *)(void *)elements)[i] = half;
            }
            segment from = segment_make(device, dims[d]);
            from.type = type;
            buffer to = {0};
            device_stream *stream;
            int64_t refused, numbers[COUNT], count = 0;
            CHECK_OK(device->backend->rows_write(device, (row_range){&from, 0, COUNT, dims[d]}, elements, dims[d], &refused));
            for (int64_t i = 1; i < COUNT; i += i % 3)
                numbers[count++] = i;
            CHECK_OK(device->backend->buffer_create(device, floats * sizeof(float), &to));
            CHECK_OK(device->backend->rows_read_here(device, &(row_choice){&from, numbers, count, dims[d]}, to.data));
            CHECK_OK(device->backend->stream_create(device, &stream));
            CHECK_OK(device->backend->copy_out(device, stream, read, (buffer_range){&to, 0, floats * sizeof *read}));
            for (int64_t i = 0; i < count; i++)
                assert_memory_equal(read + i * dims[d], wide + numbers[i] * dims[d], (size_t)dims[d] * sizeof *read);
            device->backend->stream_destroy(device, stream);
            device->backend->buffer_destroy(device, &to);
            segment_free(device, &from);
            free(wide);
            free(elements);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_read_back_unchanged_and_have_the_cpus_norms),
        cmocka_unit_test(the_first_row_that_is_not_finite_is_named),
        cmocka_unit_test(gathered_rows_are_the_right_ones),
        cmocka_unit_test(rows_are_read_here_as_floats),
    };
    return RUN_ON_EVERY_DEVICE("row kernels", tests);
}
