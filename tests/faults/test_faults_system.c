/* Every writer and reader of files with each of its system calls failing in turn, in the library: the call returns a status and
 * a message, the old file is unchanged, and no file or descriptor is left. An interrupted or partial call changes nothing.
 * Also: threads that cannot be created. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "inject/inject.h"
#include "support/check.h"
#include "support/data/random.h"
#include "support/faults/fault_counts.h"
#include "support/memory.h"
#include "support/scratch.h"

enum { ROWS = 300, DIM = 40, FLOATS = ROWS * DIM };

static float values[FLOATS];
static int32_t integers[FLOATS];

static int make_values(void **state)
{
    test_random random = {5};
    random_normals(&random, values, FLOATS);
    for (int i = 0; i < FLOATS; i++)
        integers[i] = i;
    return scratch_setup(state);
}

/* ---- writers ------------------------------------------------------------------------------------------------------------- */

static ww_status write_npy(const char *path)
{
    return ww_matrix_write_f32(path, values, ROWS, DIM);
}

static ww_status write_ibin(const char *path)
{
    return ww_matrix_write_i32(path, integers, ROWS, DIM);
}

static ww_status write_safetensors(const char *path)
{
    static const char *const metadata[] = {"format", "test", NULL};
    ww_array arrays[2] = {ww_array_default(), ww_array_default()};
    for (int i = 0; i < 2; i++) {
        arrays[i].name = i ? "second" : "first";
        arrays[i].rank = 2;
        arrays[i].shape[0] = ROWS;
        arrays[i].shape[1] = DIM;
        arrays[i].data = values;
    }
    return ww_safetensors_write(path, arrays, 2, metadata);
}

/* Continues after a failure, like a careless caller: later calls must fail, too. */
static ww_status write_gguf(const char *path)
{
    ww_gguf_writer *writer = NULL;
    ww_gguf_tensor t = ww_gguf_tensor_default();
    t.name = "weights";
    t.rank = 2;
    t.shape[0] = DIM;
    t.shape[1] = ROWS;
    ww_status status = ww_gguf_writer_create(&writer);
    if (status == WW_OK)
        status = ww_gguf_writer_string(writer, "general.architecture", "test");
    if (status == WW_OK)
        status = ww_gguf_writer_tensor(writer, &t);
    if (status == WW_OK)
        status = ww_gguf_writer_open(writer, path);
    for (int i = 0; status == WW_OK && i < 3; i++)
        (void)ww_gguf_writer_data(writer, values + i * FLOATS / 3, sizeof values / 3);
    if (status == WW_OK)
        status = ww_gguf_writer_finish(writer);
    ww_gguf_writer_destroy(writer);
    return status;
}

static const struct {
    const char *name;
    ww_status (*write)(const char *path);
} writers[] = {{"a.npy", write_npy}, {"a.ibin", write_ibin}, {"a.safetensors", write_safetensors}, {"a.gguf", write_gguf}};

enum { WRITERS = sizeof writers / sizeof *writers };

static void check_content(const char *name, const char *expected, size_t expected_size)
{
    size_t size;
    char *content = scratch_content(scratch_path(name), &size);
    assert_int_equal(size, expected_size);
    assert_memory_equal(content, expected, size);
    free(content);
}

/* The n-th call of the kind fails. Returns false if there are fewer calls. Every failure except one of the directory's must be
 * reported. */
static bool write_with_fault(int w, inject_kind kind, long n, const char *good, size_t good_size)
{
    static const char old[] = "the old file";
    scratch_write(writers[w].name, old, sizeof old);
    const int entries = scratch_entries(), files = scratch_open_files();
    const int64_t held = blocks_held();
    inject_arm(kind, n);
    const ww_status status = writers[w].write(scratch_path(writers[w].name));
    inject_arm(INJECT_NONE, 0);
    const bool fired = inject_fired();
    const bool harmless = kind == INJECT_WRITE_SHORT || kind == INJECT_INTERRUPT;
    /* After the rename: the file is complete. */
    const bool of_directory = (kind == INJECT_SYNC || kind == INJECT_OPEN) && n == 2;
    assert_int_equal(blocks_held(), held);
    assert_int_equal(scratch_entries(), entries);
    assert_int_equal(scratch_open_files(), files);
    if (!fired || harmless || of_directory) {
        CHECK_OK(status);
        check_content(writers[w].name, good, good_size);
    } else {
        CHECK_FAILS(WW_IO_ERROR, status);
        assert_non_null(strstr(ww_error_message(), writers[w].name));
        check_content(writers[w].name, old, sizeof old);
    }
    return fired;
}

static void a_writer_with_a_failure_leaves_the_old_file(void **state)
{
    (void)state;
    static const inject_kind kinds[] = {INJECT_OPEN,      INJECT_WRITE, INJECT_WRITE_SHORT,
                                        INJECT_INTERRUPT, INJECT_SYNC,  INJECT_RENAME};
    for (int w = 0; w < WRITERS; w++) {
        size_t size;
        CHECK_OK(writers[w].write(scratch_path(writers[w].name)));
        char *good = scratch_content(scratch_path(writers[w].name), &size);
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            long n = 1;
            while (write_with_fault(w, kinds[k], n, good, size))
                n++;
            if (n == 1)
                fail_msg("%s makes no call that '%s' is for", writers[w].name, inject_name(kinds[k]));
            fault_count(inject_name(kinds[k]), n - 1);
        }
        free(good);
        unlink(scratch_path(writers[w].name));
    }
}

/* The process ignores neither the signal for a file at its size limit nor that for a pipe without a reader, and neither ends
 * it. */
static void limits_and_closed_pipes_are_statuses(void **state)
{
    (void)state;
    static const char old[] = "the old file";
    struct rlimit before, tight = {.rlim_cur = 4096};
    int ends[2];
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    tight.rlim_max = before.rlim_max;
    for (int w = 0; w < WRITERS; w++) {
        scratch_write(writers[w].name, old, sizeof old);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
        const ww_status status = writers[w].write(scratch_path(writers[w].name));
        setrlimit(RLIMIT_FSIZE, &before);
        CHECK_FAILS(WW_IO_ERROR, status);
        check_content(writers[w].name, old, sizeof old);
        unlink(scratch_path(writers[w].name));
    }
    fault_count("limit of a file's size", WRITERS);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const int output = dup(STDOUT_FILENO);
    assert_true(output >= 0);
    for (int w = 2; w < WRITERS; w++) { /* those that take any name */
        assert_int_equal(dup2(ends[1], STDOUT_FILENO), STDOUT_FILENO);
        close(w == 2 ? ends[0] : -1);
        const ww_status status = writers[w].write("/dev/stdout");
        assert_int_equal(dup2(output, STDOUT_FILENO), STDOUT_FILENO);
        CHECK_FAILS(WW_IO_ERROR, status);
        assert_non_null(strstr(ww_error_message(), "Broken pipe"));
    }
    fault_count("closed pipe", WRITERS - 2);
    close(ends[1]);
    close(output);
}

/* ---- readers ------------------------------------------------------------------------------------------------------------- */

static ww_status read_matrix(const char *path)
{
    static float rows[FLOATS];
    ww_matrix *matrix = NULL;
    ww_status status = ww_matrix_open(path, &matrix);
    if (status == WW_OK)
        status = ww_matrix_read_f32(matrix, 0, ROWS, rows);
    if (status == WW_OK)
        assert_memory_equal(rows, values, sizeof rows);
    ww_matrix_close(matrix);
    return status;
}

static ww_status read_view(const char *path)
{
    ww_matrix *matrix = NULL;
    ww_status status = ww_matrix_open(path, &matrix);
    const float *view = status == WW_OK ? ww_matrix_view_f32(matrix) : NULL;
    if (view)
        assert_memory_equal(view, values, sizeof values);
    else
        status = WW_IO_ERROR;
    ww_matrix_close(matrix);
    return status;
}

static ww_status read_safetensors(const char *path)
{
    static float read[FLOATS];
    const void *mapped = NULL;
    ww_safetensors *file = NULL;
    ww_status status = ww_safetensors_open(path, &file);
    if (status == WW_OK)
        status = ww_safetensors_read(file, 0, 0, read, sizeof read);
    if (status == WW_OK)
        status = ww_safetensors_map(file, 1, &mapped);
    if (status == WW_OK) {
        assert_memory_equal(read, values, sizeof read);
        assert_memory_equal(mapped, values, sizeof read);
    }
    ww_safetensors_close(file);
    return status;
}

static ww_status read_gguf(const char *path)
{
    static float rows[FLOATS];
    ww_gguf *gguf = NULL;
    ww_quant *matrix = NULL;
    ww_device *device = NULL;
    ww_status status = ww_gguf_open(path, &gguf);
    if (status == WW_OK)
        status = ww_device_open("cpu", &device);
    if (status == WW_OK)
        status = ww_gguf_load(gguf, 0, device, NULL, NULL, &matrix);
    if (status == WW_OK)
        status = ww_quant_read_f32(matrix, 0, ROWS, rows);
    if (status == WW_OK)
        assert_memory_equal(rows, values, sizeof rows);
    ww_quant_destroy(matrix);
    ww_device_close(device);
    ww_gguf_close(gguf);
    return status;
}

static const struct {
    int writer;
    ww_status (*read)(const char *path);
} readers[] = {{0, read_matrix}, {0, read_view}, {2, read_safetensors}, {3, read_gguf}};

static bool read_with_fault(int r, inject_kind kind, long n)
{
    const int files = scratch_open_files();
    const int64_t held = blocks_held();
    inject_arm(kind, n);
    const ww_status status = readers[r].read(scratch_path(writers[readers[r].writer].name));
    inject_arm(INJECT_NONE, 0);
    if (kind == INJECT_READ_SHORT || kind == INJECT_INTERRUPT)
        CHECK_OK(status);
    if (status != WW_OK && (!inject_fired() || !*ww_error_message()))
        fail_msg("%s: %s without a fault or a message: %s", inject_name(kind), ww_status_name(status), ww_error_message());
    assert_int_equal(blocks_held(), held);
    assert_int_equal(scratch_open_files(), files);
    return inject_fired();
}

/* A file that describes the machine may be unreadable without a failure. So a status is only expected when the file itself
 * fails: the first open is for it, and its contents are either read correctly or refused. */
static void a_reader_with_a_failure_gives_a_status_and_holds_nothing(void **state)
{
    (void)state;
    static const inject_kind kinds[] = {INJECT_OPEN, INJECT_READ, INJECT_READ_SHORT, INJECT_INTERRUPT, INJECT_THREAD};
    for (int w = 0; w < WRITERS; w++)
        CHECK_OK(writers[w].write(scratch_path(writers[w].name)));
    CHECK_OK(read_gguf(scratch_path("a.gguf"))); /* opens what is only opened once in a process */
    for (size_t r = 0; r < sizeof readers / sizeof *readers; r++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            long n = 1;
            while (read_with_fault((int)r, kinds[k], n))
                n++;
            if (n == 1 && kinds[k] != INJECT_THREAD)
                fail_msg("reader %zu makes no call that '%s' is for", r, inject_name(kinds[k]));
            fault_count(inject_name(kinds[k]), n - 1);
        }
    inject_arm(INJECT_OPEN, 1);
    CHECK_FAILS(WW_IO_ERROR, read_matrix(scratch_path("a.npy")));
    inject_arm(INJECT_READ, 1);
    CHECK_FAILS(WW_IO_ERROR, read_matrix(scratch_path("a.npy")));
    inject_arm(INJECT_THREAD, 1);
    const ww_status status = read_gguf(scratch_path("a.gguf"));
    inject_arm(INJECT_NONE, 0);
    if (status != WW_OK)
        assert_int_equal(status, WW_OUT_OF_MEMORY);
}

/* ---- threads ------------------------------------------------------------------------------------------------------------- */

/* A device whose threads cannot all be created works with fewer or is refused, and a search on it is right. */
static void threads_that_cannot_be_created(void **state)
{
    (void)state;
    bool fired = true;
    long n = 0;
    while (fired && n < 64) {
        const int64_t held = blocks_held();
        ww_device *device = NULL;
        inject_arm(INJECT_THREAD, ++n);
        const ww_status status = ww_device_open("cpu", &device);
        inject_arm(INJECT_NONE, 0);
        fired = inject_fired();
        if (status != WW_OK && (!fired || !*ww_error_message()))
            fail_msg("%s: %s", ww_status_name(status), ww_error_message());
        ww_device_close(device);
        assert_int_equal(blocks_held(), held);
    }
    fault_count("thread", n - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_writer_with_a_failure_leaves_the_old_file),
        cmocka_unit_test(limits_and_closed_pipes_are_statuses),
        cmocka_unit_test(a_reader_with_a_failure_gives_a_status_and_holds_nothing),
        cmocka_unit_test(threads_that_cannot_be_created),
    };
    return cmocka_run_group_tests(tests, make_values, scratch_teardown);
}
