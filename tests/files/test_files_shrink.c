/* Files that are cut short while they are open: between opening and reading, while a pointer to their content is in use, and at
 * any moment, by another thread. A status each time, never a signal.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"
#include "support/memory.h"
#include "support/scratch.h"

enum { ROWS = 4096, DIM = 32, FLOATS = ROWS * DIM, BYTES = FLOATS * (int)sizeof(float) };

static float values[FLOATS];

static int make_values(void **state)
{
    for (int i = 0; i < FLOATS; i++)
        values[i] = (float)(i % 1000);
    return scratch_setup(state);
}

/* A file of vectors with its dim before each row. */
static const char *write_vecs(const char *name)
{
    char *bytes = malloc(BYTES + ROWS * sizeof(int32_t)), *at = bytes;
    const int32_t dim = DIM;
    assert_non_null(bytes);
    for (int row = 0; row < ROWS; row++) {
        memcpy(at, &dim, sizeof dim);
        memcpy(at + sizeof dim, values + row * DIM, DIM * sizeof(float));
        at += sizeof dim + DIM * sizeof(float);
    }
    const char *path = scratch_write(name, bytes, (size_t)(at - bytes));
    free(bytes);
    return path;
}

static const char *write_matrix(const char *name)
{
    if (strstr(name, "vecs"))
        return write_vecs(name);
    CHECK_OK(ww_matrix_write_f32(scratch_path(name), values, ROWS, DIM));
    return scratch_path(name);
}

static const char *write_safetensors(void)
{
    ww_array array = ww_array_default();
    array.name = "weights";
    array.rank = 1;
    array.shape[0] = FLOATS;
    array.data = values;
    CHECK_OK(ww_safetensors_write(scratch_path("a.safetensors"), &array, 1, NULL));
    return scratch_path("a.safetensors");
}

static const char *write_gguf(void)
{
    ww_gguf_writer *writer = NULL;
    ww_gguf_tensor t = ww_gguf_tensor_default();
    t.name = "weights";
    t.type = 0;
    t.rank = 2;
    t.shape[0] = DIM;
    t.shape[1] = ROWS;
    CHECK_OK(ww_gguf_writer_create(&writer));
    CHECK_OK(ww_gguf_writer_tensor(writer, &t));
    CHECK_OK(ww_gguf_writer_open(writer, scratch_path("a.gguf")));
    CHECK_OK(ww_gguf_writer_data(writer, values, sizeof values));
    CHECK_OK(ww_gguf_writer_finish(writer));
    ww_gguf_writer_destroy(writer);
    return scratch_path("a.gguf");
}

static void check_says_it_was_cut(void)
{
    if (!strstr(ww_error_message(), "the file ends here, but had"))
        fail_msg("'%s' does not say that the file was cut", ww_error_message());
}

static const char *const matrices[] = {"a.npy", "a.fbin", "a.fvecs"};

static void rows_of_a_file_that_was_cut_are_refused(void **state)
{
    (void)state;
    static float rows[FLOATS];
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
        const int64_t held = blocks_held();
        ww_matrix *matrix = NULL;
        CHECK_OK(ww_matrix_open(write_matrix(matrices[i]), &matrix));
        assert_int_equal(truncate(scratch_path(matrices[i]), BYTES / 2), 0);
        CHECK_OK(ww_matrix_read_f32(matrix, 0, ROWS / 4, rows));
        assert_memory_equal(rows, values, BYTES / 4);
        CHECK_FAILS(WW_CORRUPT_FILE, ww_matrix_read_f32(matrix, 0, ROWS, rows));
        check_says_it_was_cut();
        CHECK_FAILS(WW_CORRUPT_FILE, ww_matrix_read_f32(matrix, ROWS - 1, 1, rows));
        assert_null(ww_matrix_view_f32(matrix));
        if (!strstr(matrices[i], "vecs"))
            check_says_it_was_cut();
        ww_matrix_close(matrix);
        assert_int_equal(blocks_held(), held);
    }
}

static void arrays_of_a_file_that_was_cut_are_refused(void **state)
{
    (void)state;
    static float read[FLOATS];
    const void *bytes = NULL;
    ww_npy *npy = NULL;
    CHECK_OK(ww_npy_open(write_matrix("b.npy"), &npy));
    assert_int_equal(truncate(scratch_path("b.npy"), BYTES / 2), 0);
    CHECK_OK(ww_npy_read(npy, 0, read, BYTES / 4));
    CHECK_FAILS(WW_CORRUPT_FILE, ww_npy_read(npy, 0, read, BYTES));
    check_says_it_was_cut();
    ww_npy_close(npy);
    const int64_t held = blocks_held();
    ww_safetensors *file = NULL;
    CHECK_OK(ww_safetensors_open(write_safetensors(), &file));
    assert_int_equal(truncate(scratch_path("a.safetensors"), BYTES / 2), 0);
    CHECK_OK(ww_safetensors_read(file, 0, 0, read, BYTES / 4));
    CHECK_FAILS(WW_CORRUPT_FILE, ww_safetensors_read(file, 0, 0, read, BYTES));
    check_says_it_was_cut();
    CHECK_FAILS(WW_CORRUPT_FILE, ww_safetensors_map(file, 0, &bytes));
    check_says_it_was_cut();
    assert_null(bytes);
    ww_safetensors_close(file);
    assert_int_equal(blocks_held(), held);
}

static void tensors_of_a_model_that_was_cut_are_refused(void **state)
{
    (void)state;
    static float read[FLOATS];
    const int64_t held = blocks_held();
    ww_gguf *gguf = NULL;
    ww_device *device = NULL;
    ww_quant *matrix = NULL;
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_gguf_open(write_gguf(), &gguf));
    assert_int_equal(truncate(scratch_path("a.gguf"), BYTES / 2), 0);
    CHECK_OK(ww_gguf_read(gguf, 0, 0, read, BYTES / 4));
    CHECK_FAILS(WW_CORRUPT_FILE, ww_gguf_read(gguf, 0, 0, read, BYTES));
    check_says_it_was_cut();
    assert_null(ww_gguf_view(gguf, 0));
    check_says_it_was_cut();
    CHECK_FAILS(WW_CORRUPT_FILE, ww_gguf_load(gguf, 0, device, NULL, NULL, &matrix));
    check_says_it_was_cut();
    assert_null(matrix);
    ww_gguf_close(gguf);
    ww_device_close(device);
    assert_int_equal(blocks_held(), held);
}

/* With a memory map, reading the missing part would raise SIGBUS. */
static void a_pointer_stays_good_when_the_file_is_cut(void **state)
{
    (void)state;
    ww_matrix *matrix = NULL;
    ww_safetensors *file = NULL;
    ww_gguf *gguf = NULL;
    const void *mapped = NULL;
    CHECK_OK(ww_matrix_open(write_matrix("a.fbin"), &matrix));
    CHECK_OK(ww_safetensors_open(write_safetensors(), &file));
    CHECK_OK(ww_gguf_open(write_gguf(), &gguf));
    const float *view = ww_matrix_view_f32(matrix);
    CHECK_OK(ww_safetensors_map(file, 0, &mapped));
    const void *tensor = ww_gguf_view(gguf, 0);
    assert_true(view && tensor);
    static const char *const names[] = {"a.fbin", "a.safetensors", "a.gguf"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(truncate(scratch_path(names[i]), 0), 0);
    assert_memory_equal(view, values, BYTES);
    assert_memory_equal(mapped, values, BYTES);
    assert_memory_equal(tensor, values, BYTES);
    assert_ptr_equal(ww_matrix_view_f32(matrix), view); /* read once */
    ww_gguf_close(gguf);
    ww_safetensors_close(file);
    ww_matrix_close(matrix);
}

/* ---- while it is read ---------------------------------------------------------------------------------------------------- */

typedef struct cutter {
    char path[SCRATCH_PATH_BYTES];
    atomic_bool stop;
} cutter;

/* Cuts the file and extends it to its old length with zeros, again and again. */
static void *cut_and_mend(void *context)
{
    cutter *c = context;
    while (!atomic_load(&c->stop))
        if (truncate(c->path, 4096) != 0 || truncate(c->path, (off_t)BYTES + 4096) != 0)
            return (void *)1;
    return NULL;
}

static void a_file_that_changes_while_it_is_read_gives_a_status(void **state)
{
    (void)state;
    enum { ROUNDS = 300 };
    static float read[FLOATS];
    cutter c = {.stop = false};
    pthread_t thread;
    void *failed = NULL;
    int good = 0, cut = 0;
    snprintf(c.path, sizeof c.path, "%s", write_gguf());
    assert_int_equal(truncate(c.path, (off_t)BYTES + 4096), 0);
    ww_gguf *gguf = NULL;
    CHECK_OK(ww_gguf_open(c.path, &gguf));
    assert_int_equal(pthread_create(&thread, NULL, cut_and_mend, &c), 0);
    for (int round = 0; round < ROUNDS; round++) {
        ww_gguf *own = NULL;
        ww_status status = ww_gguf_read(gguf, 0, 0, read, BYTES);
        if (status != WW_OK)
            check_says_it_was_cut();
        good += status == WW_OK;
        cut += status == WW_CORRUPT_FILE;
        assert_true(status == WW_OK || status == WW_CORRUPT_FILE);
        status = ww_gguf_open(c.path, &own); /* the header is in the part that remains; the size may not match */
        const float *view = status == WW_OK ? ww_gguf_view(own, 0) : NULL;
        float sum = 0.0f;
        for (int i = 0; view && i < FLOATS; i += 512) /* each page */
            sum += view[i];
        assert_true(sum >= 0.0f);
        ww_gguf_close(own);
    }
    atomic_store(&c.stop, true);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    ww_gguf_close(gguf);
    print_message("%d reads were whole, %d were cut\n", good, cut);
    assert_int_equal(good + cut, ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_a_file_that_was_cut_are_refused),
        cmocka_unit_test(arrays_of_a_file_that_was_cut_are_refused),
        cmocka_unit_test(tensors_of_a_model_that_was_cut_are_refused),
        cmocka_unit_test(a_pointer_stays_good_when_the_file_is_cut),
        cmocka_unit_test(a_file_that_changes_while_it_is_read_gives_a_status),
    };
    return cmocka_run_group_tests(tests, make_values, scratch_teardown);
}
