/* Each allocation fails in turn while a file is opened, read, closed or written: a status comes back, nothing is held, nothing
 * stays open, nothing is left on the disk.
 */
#include "support/check.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/memory.h"
#include "support/scratch.h"

enum { FAULTS_MAX = 200 };

static ww_status open_read_close(const char *path)
{
    ww_matrix *matrix = NULL;
    ww_matrix_info info = ww_matrix_info_default();
    ww_status status = ww_matrix_open(path, &matrix);
    if (status != WW_OK) {
        assert_null(matrix);
        return status;
    }
    status = ww_matrix_describe(matrix, &info);
    float *values = malloc((size_t)(info.rows * info.dim) * sizeof *values);
    if (status == WW_OK)
        status = ww_matrix_read_f32(matrix, 0, info.rows, values);
    free(values);
    ww_matrix_close(matrix);
    return status;
}

/* The same through a pipe, and with a column of ids. */
static ww_status open_stream_with_ids(const char *path)
{
    ww_matrix *matrix = NULL;
    ww_matrix_options options = ww_matrix_options_default();
    int ends[2];
    char name[64];
    size_t size;
    char *content = scratch_content(path, &size);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], content, size), size);
    close(ends[1]);
    free(content);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    options.format = "csv";
    options.id_column = "id";
    options.streams = 1;
    const ww_status status = ww_matrix_open_with(name, &options, &matrix);
    if (status == WW_OK)
        assert_string_equal(ww_matrix_id(matrix, 1), "b");
    else
        assert_null(matrix);
    ww_matrix_close(matrix);
    close(ends[0]);
    return status;
}

static ww_status write_floats(const char *path)
{
    static const float values[4] = {1, 2, 3, 4};
    return ww_matrix_write_f32(path, values, 2, 2);
}

/* Fails allocation 1, 2, ... until a call gets by without meeting the fault; returns how many there were. */
static int fail_each_allocation(ww_status (*call)(const char *path), const char *path, int entries)
{
    const int64_t held = blocks_held();
    const int open_files = scratch_open_files();
    for (int n = 1; n < FAULTS_MAX; n++) {
        fail_allocation_at(n);
        const ww_status status = call(path);
        const bool met = status != WW_OK;
        fail_allocation_at(0);
        assert_int_equal(blocks_held(), held);
        assert_int_equal(scratch_open_files(), open_files);
        if (!met)
            return n - 1;
        CHECK_FAILS(WW_OUT_OF_MEMORY, status);
        assert_non_null(strstr(ww_error_message(), " asked, "));
        assert_int_equal(scratch_entries(), entries);
    }
    fail_msg("%s: still failing after %d faults", path, FAULTS_MAX);
    return 0;
}

static void opening_and_reading_any_format_survives_every_failed_allocation(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        int least; /* allocations that must be there to fail */
    } cases[] = {
        {"npy/good-f8.npy", 2},           {"npy/good-version-2.npy", 2},  {"vecs/good-five-rows.bvecs", 1},
        {"bin/good-five-rows.f16bin", 1}, {"bin/good-five-rows.fbin", 1}, {"csv/good-long-line.csv", 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/tests/fuzz/corpus/%s", SOURCE_DIR, cases[i].file);
        const int faults = fail_each_allocation(open_read_close, path, 0);
        if (faults < cases[i].least)
            fail_msg("%s: %d allocations failed, at least %d were expected", cases[i].file, faults, cases[i].least);
        CHECK_OK(open_read_close(path));
    }
}

/* Long enough that the line and the values grow several times. */
static void a_growing_table_survives_every_failed_allocation(void **state)
{
    (void)state;
    enum { NUMBERS = 60000 };
    char *text = malloc(2 * NUMBERS);
    for (int i = 0; i < NUMBERS; i++) {
        text[2 * i] = (char)('0' + i % 10);
        text[2 * i + 1] = i % (NUMBERS / 2) == NUMBERS / 2 - 1 ? '\n' : ',';
    }
    const char *path = scratch_write("large.csv", text, 2 * NUMBERS);
    free(text);
    assert_true(fail_each_allocation(open_read_close, path, 1) >= 10);
    CHECK_OK(open_read_close(path));
}

static void a_stream_with_ids_survives_every_failed_allocation(void **state)
{
    (void)state;
    const char *path = scratch_write("ids.csv", "id,x\na,1\nb,2\n", 13);
    assert_true(fail_each_allocation(open_stream_with_ids, path, 1) >= 7);
    CHECK_OK(open_stream_with_ids(path));
}

static void writing_survives_every_failed_allocation_and_leaves_the_old_file(void **state)
{
    (void)state;
    static const char *const names[] = {"a.npy", "a.fbin"};
    for (int i = 0; i < 2; i++) {
        size_t size;
        const char *path = scratch_write(names[i], "old", 3);
        fail_allocation_at(1);
        CHECK_FAILS(WW_OUT_OF_MEMORY, write_floats(path));
        fail_allocation_at(0);
        char *content = scratch_content(path, &size);
        assert_string_equal(content, "old");
        free(content);
        assert_true(fail_each_allocation(write_floats, path, i + 1) >= 1);
        CHECK_OK(open_read_close(path));
        assert_int_equal(scratch_entries(), i + 1);
    }
}

/* A refusal is a failure like another: whatever was begun is undone. */
static void refused_files_leave_nothing_open(void **state)
{
    (void)state;
    static const char *const files[] = {"npy/bad-cut-in-data.npy", "npy/bad-unclosed-quote.npy", "vecs/bad-cut.fvecs",
                                        "bin/bad-dim-0.fbin", "csv/bad-ragged.csv"};
    const int64_t held = blocks_held();
    const int open_files = scratch_open_files();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/tests/fuzz/corpus/%s", SOURCE_DIR, files[i]);
        CHECK_FAILS(WW_CORRUPT_FILE, open_read_close(path));
    }
    assert_int_equal(blocks_held(), held);
    assert_int_equal(scratch_open_files(), open_files);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(opening_and_reading_any_format_survives_every_failed_allocation),
        IN_SCRATCH(a_growing_table_survives_every_failed_allocation),
        IN_SCRATCH(a_stream_with_ids_survives_every_failed_allocation),
        IN_SCRATCH(writing_survives_every_failed_allocation_and_leaves_the_old_file),
        cmocka_unit_test(refused_files_leave_nothing_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
