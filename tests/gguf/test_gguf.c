/* GGUF files written, read back, looked at, loaded to every device, split, and failing in the middle. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gguf/gguf.h"
#include "gguf/load.h"
#include "support/data/bytes.h"
#include "support/data/golden.h"
#include "support/data/random.h"
#include "support/devices.h"
#include "support/faults/faulty.h"
#include "support/memory.h"
#include "support/scratch.h"

enum { ROWS = 5, COLS = 512 };

static ww_gguf_tensor tensor_of(const char *name, int32_t type, int64_t cols, int64_t rows)
{
    ww_gguf_tensor t = ww_gguf_tensor_default();
    t.name = name;
    t.type = type;
    t.rank = 2;
    t.shape[0] = cols;
    t.shape[1] = rows;
    return t;
}

enum { EVERY_TYPE = 18 }; /* tensors of such a file */

/* A file with a tensor of every type, named by it, and one that no matrix can be; each coded of the same floats. */
static const char *file_of_every_type(const float *x)
{
    static char path[SCRATCH_PATH_BYTES]; /* longer than scratch_path()'s own lasts */
    static const int16_t integers[3] = {1, -2, 3};
    ww_gguf_writer *w;
    ww_device *cpu;
    snprintf(path, sizeof path, "%s", scratch_path("every.gguf"));
    unlink(path);
    CHECK_OK(ww_device_open("cpu", &cpu));
    CHECK_OK(ww_gguf_writer_create(&w));
    CHECK_OK(ww_gguf_writer_string(w, "general.architecture", "test"));
    for (const golden_type *t = golden_types; t->name; t++) {
        const ww_gguf_tensor tensor = tensor_of(t->name, (int32_t)t->type, COLS, ROWS);
        CHECK_OK(ww_gguf_writer_tensor(w, &tensor));
    }
    const ww_gguf_tensor odd = tensor_of("integers", 25, 3, 1);
    CHECK_OK(ww_gguf_writer_tensor(w, &odd));
    CHECK_OK(ww_gguf_writer_open(w, path));
    for (const golden_type *t = golden_types; t->name; t++) {
        int64_t row_bytes;
        ww_quant *q;
        CHECK_OK(ww_quant_row_bytes(t->type, COLS, &row_bytes));
        unsigned char *blocks = malloc((size_t)(ROWS * row_bytes));
        CHECK_OK(ww_quant_from_f32(cpu, t->type, x, ROWS, COLS, 0, &q));
        CHECK_OK(ww_quant_read_blocks(q, 0, ROWS, blocks));
        CHECK_OK(ww_gguf_writer_data(w, blocks, 7)); /* in pieces of any size */
        CHECK_OK(ww_gguf_writer_data(w, blocks + 7, (size_t)(ROWS * row_bytes) - 7));
        ww_quant_destroy(q);
        free(blocks);
    }
    CHECK_OK(ww_gguf_writer_data(w, integers, sizeof integers));
    assert_int_equal(access(path, F_OK), -1);
    CHECK_OK(ww_gguf_writer_finish(w));
    ww_gguf_writer_destroy(w);
    ww_device_close(cpu);
    return path;
}

static void tensors_of_every_type_are_loaded_as_they_were_written(void **state)
{
    float x[ROWS * COLS], here[ROWS * COLS], there[ROWS * COLS];
    test_random random = {4};
    ww_gguf *g;
    ww_device *cpu;
    random_normals(&random, x, (int64_t)ROWS * COLS);
    CHECK_OK(ww_device_open("cpu", &cpu));
    CHECK_OK(ww_gguf_open(file_of_every_type(x), &g));
    ww_gguf_info info = ww_gguf_info_default();
    CHECK_OK(ww_gguf_describe(g, &info));
    assert_int_equal(info.tensors, EVERY_TYPE);
    assert_int_equal(info.version, 3);
    ww_quant **all = calloc((size_t)info.tensors, sizeof *all);
    CHECK_OK(ww_gguf_load_all(g, *state, NULL, NULL, all));
    for (int64_t i = 0; i < info.tensors; i++) {
        ww_gguf_tensor t = ww_gguf_tensor_default();
        ww_quant *one = NULL, *expected;
        CHECK_OK(ww_gguf_tensor_at(g, i, &t));
        if (t.type == 25) {
            assert_null(all[i]);
            CHECK_FAILS(WW_UNSUPPORTED, ww_gguf_load(g, i, *state, NULL, NULL, &one));
            int16_t integers[3];
            CHECK_OK(ww_gguf_read(g, i, 0, integers, sizeof integers));
            assert_int_equal(integers[1], -2);
            assert_memory_equal(ww_gguf_view(g, i), integers, sizeof integers);
            continue;
        }
        CHECK_OK(ww_gguf_load(g, i, *state, NULL, NULL, &one));
        CHECK_OK(ww_quant_from_f32(cpu, (ww_quant_type)t.type, x, ROWS, COLS, 0, &expected));
        CHECK_OK(ww_quant_read_f32(expected, 0, ROWS, here));
        CHECK_OK(ww_quant_read_f32(one, 0, ROWS, there));
        assert_memory_equal(here, there, sizeof here);
        CHECK_OK(ww_quant_read_f32(all[i], 0, ROWS, there));
        assert_memory_equal(here, there, sizeof here);
        ww_quant_destroy(expected);
        ww_quant_destroy(one);
        ww_quant_destroy(all[i]);
    }
    free(all);
    ww_gguf_close(g);
    ww_device_close(cpu);
}

static void every_kind_of_value_is_read_back_unchanged(void **state)
{
    (void)state;
    static const unsigned char bytes[16] = {1, 0, 1, 1, 0, 0, 0, 1, 9, 8, 7, 6, 5, 4, 3, 2};
    static const unsigned char words[] = "\3\0\0\0\0\0\0\0abc\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0z";
    static const int64_t each[] = {1, 1, 2, 2, 4, 4, 4, 1, 5, 0, 8, 8, 8};
    const char *path = scratch_path("values.gguf");
    ww_gguf_writer *w;
    ww_gguf *g;
    CHECK_OK(ww_gguf_writer_create(&w));
    for (int kind = 0; kind <= 12; kind++)
        for (int array = 0; array < 2; array++) {
            char key[32];
            ww_gguf_value v = ww_gguf_value_default();
            if (kind == WW_GGUF_ARRAY)
                continue;
            snprintf(key, sizeof key, "%s.%s", array ? "array" : "one", ww_gguf_kind_name((ww_gguf_kind)kind));
            v.key = key;
            v.element = (ww_gguf_kind)kind;
            v.kind = array ? WW_GGUF_ARRAY : v.element;
            v.count = kind == WW_GGUF_STRING ? array ? 3 : 5 : array ? 2 : 1;
            v.data = kind == WW_GGUF_STRING && array ? words : bytes;
            v.data_bytes = kind == WW_GGUF_STRING && array ? sizeof words - 1 : (size_t)(each[kind] * (array ? 2 : 1));
            CHECK_OK(ww_gguf_writer_value(w, &v));
            CHECK_FAILS(WW_INVALID_ARGUMENT, ww_gguf_writer_value(w, &v));
            v.key = "wrong";
            v.data_bytes--;
            CHECK_FAILS(WW_INVALID_ARGUMENT, ww_gguf_writer_value(w, &v));
        }
    CHECK_OK(ww_gguf_writer_open(w, path));
    CHECK_OK(ww_gguf_writer_finish(w));
    ww_gguf_writer_destroy(w);
    CHECK_OK(ww_gguf_open(path, &g));
    ww_gguf_info info = ww_gguf_info_default();
    CHECK_OK(ww_gguf_describe(g, &info));
    assert_int_equal(info.keys, 24);
    int64_t index;
    ww_gguf_value v = ww_gguf_value_default();
    CHECK_OK(ww_gguf_find_value(g, "array.string", &index));
    CHECK_OK(ww_gguf_value_at(g, index, &v));
    assert_int_equal(v.kind, WW_GGUF_ARRAY);
    assert_int_equal(v.element, WW_GGUF_STRING);
    assert_int_equal(v.count, 3);
    assert_int_equal(v.data_bytes, sizeof words - 1);
    assert_memory_equal(v.data, words, sizeof words - 1);
    CHECK_OK(ww_gguf_find_value(g, "one.string", &index));
    CHECK_OK(ww_gguf_value_at(g, index, &v));
    assert_int_equal(v.count, 5);
    assert_memory_equal(v.data, bytes, 5);
    CHECK_OK(ww_gguf_find_value(g, "array.f64", &index));
    CHECK_OK(ww_gguf_value_at(g, index, &v));
    assert_memory_equal(v.data, bytes, 16);
    assert_string_equal(v.key, "array.f64");
    CHECK_FAILS(WW_NOT_FOUND, ww_gguf_find_value(g, "array.f6", &index));
    CHECK_FAILS(WW_NOT_FOUND, ww_gguf_find_tensor(g, "x", &index));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_gguf_value_at(g, 24, &v));
    ww_gguf_close(g);
}

/* The number of tensors of all parts that each part states. */
static int tensors_of_parts = 3;

static void write_part(const char *name, int number, int count, const char *tensor, float value)
{
    static test_bytes b;
    b.size = 0;
    put_start(&b, 3, 1, 3);
    put_key_u32(&b, "split.tensors.count", (unsigned)tensors_of_parts);
    put_key_u16(&b, "split.no", (unsigned)number);
    put_key_u16(&b, "split.count", (unsigned)count);
    put_tensor(&b, tensor, 1, 1, 0, 0);
    put_padding(&b, 32);
    put_bytes(&b, &value, sizeof value);
    scratch_write(name, b.data, b.size);
}

static void a_split_model_is_one(void **state)
{
    ww_gguf *g = NULL;
    write_part("m-00001-of-00003.gguf", 0, 3, "c", 1.0f);
    write_part("m-00002-of-00003.gguf", 1, 3, "b", 2.0f);
    write_part("m-00003-of-00003.gguf", 2, 3, "a", 3.0f);
    CHECK_OK(ww_gguf_open(scratch_path("m-00001-of-00003.gguf"), &g));
    ww_gguf_info info = ww_gguf_info_default();
    CHECK_OK(ww_gguf_describe(g, &info));
    assert_int_equal(info.files, 3);
    assert_int_equal(info.tensors, 3);
    char path[4096];
    CHECK_OK(ww_gguf_file_path(g, 0, path, sizeof path));
    assert_string_equal(path, scratch_path("m-00001-of-00003.gguf"));
    CHECK_OK(ww_gguf_file_path(g, 2, path, sizeof path));
    assert_string_equal(path, scratch_path("m-00003-of-00003.gguf"));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_gguf_file_path(g, 3, path, sizeof path));
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_gguf_file_path(g, 2, path, strlen(path)));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_gguf_file_path(g, 0, NULL, sizeof path));
    int64_t index;
    float value;
    ww_quant *q;
    CHECK_OK(ww_gguf_find_tensor(g, "a", &index));
    CHECK_OK(ww_gguf_load(g, index, *state, NULL, NULL, &q));
    CHECK_OK(ww_quant_read_f32(q, 0, 1, &value));
    assert_true(value == 3.0f);
    ww_quant_destroy(q);
    ww_gguf_close(g);
    g = NULL;
    CHECK_FAILS(WW_UNSUPPORTED, ww_gguf_open(scratch_path("m-00002-of-00003.gguf"), &g));
    write_part("m-00003-of-00003.gguf", 2, 3, "b", 3.0f);
    CHECK_FAILS(WW_CORRUPT_FILE, ww_gguf_open(scratch_path("m-00001-of-00003.gguf"), &g));
    assert_non_null(strstr(ww_error_message(), "appears in two files"));
    write_part("m-00003-of-00003.gguf", 1, 3, "a", 3.0f);
    CHECK_FAILS(WW_CORRUPT_FILE, ww_gguf_open(scratch_path("m-00001-of-00003.gguf"), &g));
    tensors_of_parts = 4;
    write_part("m-00001-of-00003.gguf", 0, 3, "c", 1.0f);
    tensors_of_parts = 3;
    write_part("m-00003-of-00003.gguf", 2, 3, "a", 3.0f);
    CHECK_FAILS(WW_CORRUPT_FILE, ww_gguf_open(scratch_path("m-00001-of-00003.gguf"), &g));
    assert_non_null(strstr(ww_error_message(), "split.tensors.count is 4; the files have 3 tensors"));
    unlink(scratch_path("m-00003-of-00003.gguf"));
    CHECK_FAILS(WW_IO_ERROR, ww_gguf_open(scratch_path("m-00001-of-00003.gguf"), &g));
    write_part("other.gguf", 0, 3, "c", 1.0f);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_gguf_open(scratch_path("other.gguf"), &g));
    assert_null(g);
}

static void a_stream_is_read_to_its_end(void **state)
{
    (void)state;
    ww_gguf *g = NULL;
    char name[32], path[64];
    int64_t index;
    write_part("part.gguf", 0, 1, "c", 1.0f);
    int descriptor = scratch_pipe(scratch_path("part.gguf"), name);
    CHECK_OK(ww_gguf_open_stream(name, &g));
    CHECK_OK(ww_gguf_find_tensor(g, "c", &index));
    CHECK_FAILS(WW_NOT_FOUND, ww_gguf_file_path(g, 0, path, sizeof path));
    ww_gguf_close(g);
    close(descriptor);
    CHECK_OK(ww_gguf_open_stream(scratch_path("part.gguf"), &g));
    ww_gguf_close(g);
    write_part("part.gguf", 0, 2, "c", 1.0f);
    descriptor = scratch_pipe(scratch_path("part.gguf"), name);
    CHECK_FAILS(WW_UNSUPPORTED, ww_gguf_open_stream(name, &g)); /* where is the other part? */
    close(descriptor);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_gguf_open_stream(NULL, &g));
}

static int stop_at_once(int64_t done, int64_t total, void *user)
{
    *(long long *)user = total;
    return done > 0;
}

static int count_up(int64_t done, int64_t total, void *user)
{
    long long *last = user;
    assert_true(done > *last && done <= total);
    *last = done;
    return 0;
}

/* ---- several as one, and what is seen on the way ------------------------------------------------------------------------- */

enum { JOINED_COLS = 1024, JOINED_BYTES = JOINED_COLS / 32 * 34 };

/* Two tensors of some megabytes that go together, and one that does not. */
static const char *file_to_join(unsigned char *bytes, const int64_t *rows)
{
    static char path[SCRATCH_PATH_BYTES];
    ww_gguf_writer *w;
    snprintf(path, sizeof path, "%s", scratch_path("joined.gguf"));
    unlink(path);
    CHECK_OK(ww_gguf_writer_create(&w));
    CHECK_OK(ww_gguf_writer_string(w, "general.architecture", "test"));
    const ww_gguf_tensor a = tensor_of("a", WW_QUANT_Q8_0, JOINED_COLS, rows[0]),
                         b = tensor_of("b", WW_QUANT_Q8_0, JOINED_COLS, rows[1]), c = tensor_of("c", WW_QUANT_Q8_0, 32, 1);
    CHECK_OK(ww_gguf_writer_tensor(w, &a));
    CHECK_OK(ww_gguf_writer_tensor(w, &b));
    CHECK_OK(ww_gguf_writer_tensor(w, &c));
    CHECK_OK(ww_gguf_writer_open(w, path));
    CHECK_OK(ww_gguf_writer_data(w, bytes, (size_t)(rows[0] * JOINED_BYTES)));
    CHECK_OK(ww_gguf_writer_data(w, bytes + rows[0] * JOINED_BYTES, (size_t)(rows[1] * JOINED_BYTES)));
    CHECK_OK(ww_gguf_writer_data(w, bytes, 34));
    CHECK_OK(ww_gguf_writer_finish(w));
    ww_gguf_writer_destroy(w);
    return path;
}

static void tensors_of_equal_shape_are_loaded_as_one_matrix(void **state)
{
    static const int64_t rows[2] = {2500, 1501}, indices[2] = {0, 1}, reversed[2] = {1, 0}, unlike[2] = {0, 2};
    const size_t all = (size_t)(rows[0] + rows[1]) * JOINED_BYTES;
    unsigned char *bytes = malloc(all), *found = malloc(all);
    test_random random = {11};
    for (size_t i = 0; i < all; i++)
        bytes[i] = i % 34 == 1 ? 0x2c : (unsigned char)random_below(&random, 256); /* factors are about 0.07 */
    ww_gguf *g;
    ww_quant *q = NULL;
    ww_quant_info info = ww_quant_info_default();
    long long told = 0;
    CHECK_OK(ww_gguf_open(file_to_join(bytes, rows), &g));
    CHECK_OK(ww_gguf_load_joined(g, indices, 2, *state, count_up, &told, &q));
    assert_int_equal(told, all);
    CHECK_OK(ww_quant_describe(q, &info));
    assert_true(info.rows == rows[0] + rows[1] && info.cols == JOINED_COLS && info.finite);
    CHECK_OK(ww_quant_read_blocks(q, 0, info.rows, found));
    assert_memory_equal(bytes, found, all);
    ww_quant_destroy(q);
    CHECK_OK(ww_gguf_load_joined(g, reversed, 2, *state, NULL, NULL, &q));
    CHECK_OK(ww_quant_read_blocks(q, 0, rows[1], found));
    assert_memory_equal(bytes + rows[0] * JOINED_BYTES, found, (size_t)rows[1] * JOINED_BYTES);
    ww_quant_destroy(q);
    q = NULL;
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_gguf_load_joined(g, unlike, 2, *state, NULL, NULL, &q));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_gguf_load_joined(g, indices, 0, *state, NULL, NULL, &q));
    CHECK_FAILS(WW_CANCELLED, ww_gguf_load_joined(g, indices, 2, *state, stop_at_once, &told, &q));
    ww_gguf_close(g);
    bytes[rows[0] * JOINED_BYTES + 1] = 0x7c; /* one factor is not finite */
    CHECK_OK(ww_gguf_open(file_to_join(bytes, rows), &g));
    CHECK_OK(ww_gguf_load_joined(g, indices, 2, *state, NULL, NULL, &q));
    CHECK_OK(ww_quant_describe(q, &info));
    assert_false(info.finite);
    ww_quant_destroy(q);
    ww_gguf_close(g);
    free(found);
    free(bytes);
}

/* Weights that are called finite decode to finite numbers, wherever infinite bits are in a block. The reverse also holds,
 * except for formats whose weights are not checked. */
static void finite_weights_are_seen_by_the_factors_of_blocks(void **state)
{
    ww_device *cpu;
    (void)state;
    CHECK_OK(ww_device_open("cpu", &cpu));
    for (const golden_type *t = golden_types; t->name; t++) {
        const size_t bytes = (size_t)ww_quant_block_bytes(t->type);
        const int64_t elements = ww_quant_block_elements(t->type);
        const bool seen_at_all = t->type != WW_QUANT_MXFP4 && t->type != WW_QUANT_Q8_1 && t->type != WW_QUANT_Q8_K;
        unsigned char block[512];
        float numbers[256];
        for (size_t at = 0; at + 2 <= bytes; at++) {
            ww_quant *q;
            bool finite = true;
            memset(block, 0x21, bytes);
            memcpy(block + at, (const unsigned char[]){0x80, 0x7f},
                   2); /* NaN in f16, infinite in bf16, NaN at the end of f32 */
            CHECK_OK(ww_quant_load(cpu, t->type, block, bytes, 1, elements, &q));
            CHECK_OK(ww_quant_read_f32(q, 0, 1, numbers));
            ww_quant_destroy(q);
            for (int64_t i = 0; i < elements; i++)
                finite &= (bool)isfinite(numbers[i]);
            if (gguf_finite(t->type, block, bytes) != (finite && seen_at_all))
                fail_msg("%s with infinite bits at byte %zu: weights are %s", t->name, at, finite ? "finite" : "not finite");
        }
    }
    ww_device_close(cpu);
}

static void loading_reports_its_progress_and_can_be_cancelled(void **state)
{
    static float x[ROWS * COLS];
    ww_gguf *g;
    ww_quant *q = NULL, *all[EVERY_TYPE];
    long long told = 0;
    CHECK_OK(ww_gguf_open(file_of_every_type(x), &g));
    CHECK_FAILS(WW_CANCELLED, ww_gguf_load(g, 0, *state, stop_at_once, &told, &q));
    assert_null(q);
    assert_int_equal(told, ROWS * COLS * 2);
    CHECK_FAILS(WW_CANCELLED, ww_gguf_load_all(g, *state, stop_at_once, &told, all));
    for (int i = 0; i < EVERY_TYPE; i++)
        assert_null(all[i]);
    told = 0;
    CHECK_OK(ww_gguf_load_all(g, *state, count_up, &told, all));
    for (int i = 0; i < EVERY_TYPE; i++)
        ww_quant_destroy(all[i]);
    ww_gguf_info info = ww_gguf_info_default();
    CHECK_OK(ww_gguf_describe(g, &info));
    assert_int_equal(told, info.data_bytes - 6);
    ww_gguf_close(g);
}

static void a_writer_refuses_whatever_a_reader_refuses(void **state)
{
    (void)state;
    ww_gguf_writer *w;
    ww_gguf_tensor t = tensor_of("t", 2, 33, 1);
    CHECK_OK(ww_gguf_writer_create(&w));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_gguf_writer_tensor(w, &t));
    t = tensor_of("0123456789012345678901234567890123456789012345678901234567890123", 0, 4, 1);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_gguf_writer_tensor(w, &t));
    t = tensor_of("t", 0, INT64_MAX, 2);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_gguf_writer_tensor(w, &t));
    t = tensor_of("t", 99, 4, 2);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_gguf_writer_tensor(w, &t));
    t = tensor_of("t", 0, 4, 2);
    CHECK_OK(ww_gguf_writer_tensor(w, &t));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_gguf_writer_tensor(w, &t));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_gguf_writer_u32(w, "", 1));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_gguf_writer_u32(w, "general.alignment", 64));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_gguf_writer_data(w, "", 1));
    CHECK_OK(ww_gguf_writer_open(w, scratch_path("never.gguf")));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_gguf_writer_u32(w, "late", 1));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_gguf_writer_finish(w));
    CHECK_OK(ww_gguf_writer_data(w, "0123456789012345678901234567890", 31));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_gguf_writer_finish(w));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_gguf_writer_data(w, "xx", 2));
    ww_gguf_writer_destroy(w);
    ww_gguf_writer_destroy(NULL);
    assert_int_equal(access(scratch_path("never.gguf"), F_OK), -1);
}

/* ---- failures ------------------------------------------------------------------------------------------------------------ */

static const char *faulty_path;
static ww_device *faulty_device;

static ww_status open_and_load(void)
{
    ww_gguf *g = NULL;
    ww_quant *q = NULL, *all[EVERY_TYPE];
    ww_status status = ww_gguf_open(faulty_path, &g);
    if (status == WW_OK)
        status = ww_gguf_load(g, 2, faulty_device, NULL, NULL, &q);
    ww_quant_destroy(q);
    if (status == WW_OK) {
        status = ww_gguf_load_all(g, faulty_device, NULL, NULL, all);
        for (int i = 0; i < EVERY_TYPE; i++)
            ww_quant_destroy(all[i]);
    }
    ww_gguf_close(g);
    g = NULL;
    if (status == WW_OK) {
        char name[32];
        const int descriptor = scratch_pipe(faulty_path, name);
        status = ww_gguf_open_stream(name, &g);
        close(descriptor);
    }
    ww_gguf_close(g);
    return status;
}

static ww_status write_small(void)
{
    ww_gguf_writer *w = NULL;
    const ww_gguf_tensor t = tensor_of("t", 0, 1, 1);
    ww_status status = ww_gguf_writer_create(&w);
    if (status == WW_OK)
        status = ww_gguf_writer_string(w, "k", "v");
    if (status == WW_OK)
        status = ww_gguf_writer_tensor(w, &t);
    if (status == WW_OK)
        status = ww_gguf_writer_open(w, scratch_path("small.gguf"));
    if (status == WW_OK)
        status = ww_gguf_writer_data(w, "1234", 4);
    if (status == WW_OK)
        status = ww_gguf_writer_finish(w);
    ww_gguf_writer_destroy(w);
    return status;
}

static void fail_every_allocation(const char *name, ww_status (*call)(void))
{
    int64_t n = 1;
    for (; n < 1000; n++) {
        const int64_t held = blocks_held();
        const int files = scratch_open_files();
        fail_allocation_at(n);
        const ww_status status = call();
        fail_allocation_at(0);
        if (status == WW_OK)
            break;
        if (status != WW_OUT_OF_MEMORY || blocks_held() != held || scratch_open_files() != files)
            fail_msg("%s, allocation %d: %s: %s", name, (int)n, ww_status_name(status), ww_error_message());
    }
    assert_true(n > 4 && n < 1000);
}

/* A writer finds every existing name among many, and no other; comparing with all of them each time would take long. */
static void a_writer_knows_many_names(void **state)
{
    (void)state;
    enum { NAMES = 40000 };
    ww_gguf_writer *w = NULL;
    char name[32];
    CHECK_OK(ww_gguf_writer_create(&w));
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "key.%d", (int)((int64_t)i * 7919 % NAMES));
        if (ww_gguf_writer_u32(w, name, 1) != WW_OK)
            fail_msg("%s: %s", name, ww_error_message());
    }
    for (int i = 0; i < NAMES; i += 97) {
        snprintf(name, sizeof name, "key.%d", i);
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_gguf_writer_u32(w, name, 1));
    }
    const ww_gguf_tensor tensor = {.struct_size = sizeof tensor, .name = "key.7", .rank = 1, .shape = {1, 1, 1, 1}};
    CHECK_OK(ww_gguf_writer_tensor(w, &tensor));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_gguf_writer_tensor(w, &tensor));
    ww_gguf_writer_destroy(w);
}

static void every_failure_leaves_nothing_behind(void **state)
{
    static float x[ROWS * COLS];
    faulty_device = *state;
    faulty_path = file_of_every_type(x);
    fail_every_allocation("open and load", open_and_load);
    fail_every_allocation("write", write_small);
    long n = 1;
    for (; n < 1000; n++) {
        const int64_t held = blocks_held();
        faulty_attach(faulty_device);
        faults = (fault_plan){.first = n, .count = 1, .after_work = n % 2};
        const ww_status status = open_and_load();
        faulty_detach(faulty_device);
        if (status == WW_OK)
            break;
        assert_int_equal(status, WW_DRIVER_ERROR);
        assert_int_equal(blocks_held(), held);
    }
    assert_true(n > 10 && n < 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_of_every_type_are_loaded_as_they_were_written),
        cmocka_unit_test(every_kind_of_value_is_read_back_unchanged),
        cmocka_unit_test(a_split_model_is_one),
        cmocka_unit_test(a_stream_is_read_to_its_end),
        cmocka_unit_test(tensors_of_equal_shape_are_loaded_as_one_matrix),
        cmocka_unit_test(finite_weights_are_seen_by_the_factors_of_blocks),
        cmocka_unit_test(loading_reports_its_progress_and_can_be_cancelled),
        cmocka_unit_test(a_writer_refuses_whatever_a_reader_refuses),
        cmocka_unit_test(a_writer_knows_many_names),
        cmocka_unit_test(every_failure_leaves_nothing_behind),
    };
    void *none = NULL;
    if (scratch_setup(&none) != 0)
        return 1;
    const int failures = RUN_ON_EVERY_DEVICE("gguf", tests);
    return scratch_teardown(&none) != 0 || failures;
}
