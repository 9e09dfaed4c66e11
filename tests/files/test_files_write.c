/* Writing: written files can be read back, an old file is replaced by a complete new one or not at all, and no other file is
 * left behind. */
#include "support/check.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/memory.h"
#include "support/scratch.h"

static const float floats[6] = {1.5f, -0.0f, INFINITY, 0x1p-149f, 16777216.0f, -3.25f};
static const int32_t integers[6] = {0, -1, INT32_MIN, INT32_MAX, 16777217, 42};

static void check_holds_floats(const char *path)
{
    ww_matrix *matrix = NULL;
    ww_matrix_info info = ww_matrix_info_default();
    float values[6];
    CHECK_OK(ww_matrix_open(path, &matrix));
    CHECK_OK(ww_matrix_describe(matrix, &info));
    assert_int_equal(info.rows, 2);
    assert_int_equal(info.dim, 3);
    assert_int_equal(info.element, WW_ELEMENT_F32);
    CHECK_OK(ww_matrix_read_f32(matrix, 0, 2, values));
    assert_memory_equal(values, floats, sizeof floats);
    assert_memory_equal(ww_matrix_view_f32(matrix), floats, sizeof floats); /* aligned, so that it can be viewed */
    ww_matrix_close(matrix);
}

static void floats_written_read_back_bit_for_bit(void **state)
{
    (void)state;
    static const char *const names[] = {"a.npy", "a.fbin", "a.f32bin", "A.NPY"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CHECK_OK(ww_matrix_write_f32(scratch_path(names[i]), floats, 2, 3));
        check_holds_floats(scratch_path(names[i]));
        assert_int_equal(scratch_entries(), i + 1);
    }
}

static void integers_written_read_back(void **state)
{
    (void)state;
    static const char *const names[] = {"a.npy", "a.ibin", "a.i32bin"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ww_matrix *matrix = NULL;
        int32_t values[6];
        CHECK_OK(ww_matrix_write_i32(scratch_path(names[i]), integers, 3, 2));
        CHECK_OK(ww_matrix_open(scratch_path(names[i]), &matrix));
        CHECK_OK(ww_matrix_read_i32(matrix, 0, 3, values));
        assert_memory_equal(values, integers, sizeof integers);
        ww_matrix_close(matrix);
        assert_int_equal(scratch_entries(), i + 1);
    }
}

static void the_bytes_are_those_of_the_formats(void **state)
{
    (void)state;
    size_t size;
    CHECK_OK(ww_matrix_write_i32(scratch_path("a.ibin"), integers, 3, 2));
    char *content = scratch_content(scratch_path("a.ibin"), &size);
    const uint32_t counts[2] = {3, 2};
    assert_int_equal(size, 8 + sizeof integers);
    assert_memory_equal(content, counts, sizeof counts);
    assert_memory_equal(content + 8, integers, sizeof integers);
    free(content);

    CHECK_OK(ww_matrix_write_f32(scratch_path("a.npy"), floats, 2, 3));
    content = scratch_content(scratch_path("a.npy"), &size);
    static const char header[] = "\x93NUMPY\x01\0\x76\0{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  ";
    assert_int_equal(size, 128 + sizeof floats);
    assert_memory_equal(content, header, sizeof header - 1);
    assert_int_equal(content[127], '\n');
    assert_memory_equal(content + 128, floats, sizeof floats);
    free(content);
}

static void no_rows_are_written_and_read(void **state)
{
    (void)state;
    static const char *const names[] = {"a.npy", "a.fbin"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ww_matrix *matrix = NULL;
        ww_matrix_info info = ww_matrix_info_default();
        CHECK_OK(ww_matrix_write_f32(scratch_path(names[i]), NULL, 0, 7));
        CHECK_OK(ww_matrix_open(scratch_path(names[i]), &matrix));
        CHECK_OK(ww_matrix_describe(matrix, &info));
        assert_int_equal(info.rows, 0);
        assert_int_equal(info.dim, 7);
        ww_matrix_close(matrix);
    }
}

static void an_old_file_is_replaced_and_keeps_its_permissions(void **state)
{
    (void)state;
    struct stat facts;
    const char *path = scratch_write("a.npy", "old", 3);
    assert_int_equal(chmod(path, 0640), 0);
    CHECK_OK(ww_matrix_write_f32(path, floats, 2, 3));
    check_holds_floats(path);
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0640);
    assert_int_equal(scratch_entries(), 1);
}

static void a_new_file_has_the_permissions_that_the_user_gives_new_files(void **state)
{
    (void)state;
    struct stat facts;
    const mode_t before = umask(027);
    CHECK_OK(ww_matrix_write_f32(scratch_path("a.npy"), floats, 2, 3));
    umask(before);
    assert_int_equal(stat(scratch_path("a.npy"), &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0640);
}

/* A program that has the old file open must keep all of it. */
static void a_reader_of_the_old_file_keeps_it(void **state)
{
    (void)state;
    const float old[3] = {7, 8, 9};
    float values[3];
    ww_matrix *matrix = NULL;
    CHECK_OK(ww_matrix_write_f32(scratch_path("a.fbin"), old, 1, 3));
    CHECK_OK(ww_matrix_open(scratch_path("a.fbin"), &matrix));
    CHECK_OK(ww_matrix_write_f32(scratch_path("a.fbin"), floats, 2, 3));
    CHECK_OK(ww_matrix_read_f32(matrix, 0, 1, values));
    assert_memory_equal(values, old, sizeof old);
    assert_memory_equal(ww_matrix_view_f32(matrix), old, sizeof old);
    ww_matrix_close(matrix);
    check_holds_floats(scratch_path("a.fbin"));
}

static void a_link_stays_a_link_and_its_target_is_replaced(void **state)
{
    (void)state;
    struct stat facts;
    scratch_write("real.npy", "old", 3);
    assert_int_equal(symlink("real.npy", scratch_path("link.npy")), 0);
    CHECK_OK(ww_matrix_write_f32(scratch_path("link.npy"), floats, 2, 3));
    assert_int_equal(lstat(scratch_path("link.npy"), &facts), 0);
    assert_true(S_ISLNK(facts.st_mode));
    check_holds_floats(scratch_path("real.npy"));
    assert_int_equal(scratch_entries(), 2);
}

static void a_disk_that_takes_no_more_leaves_the_old_file_and_nothing_else(void **state)
{
    (void)state;
    static float large[50000];
    size_t size;
    struct rlimit before, tight = {.rlim_cur = 100000};
    scratch_write("a.npy", "old", 3);
    const int open_files = scratch_open_files();
    const int64_t held = blocks_held();
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    tight.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    const ww_status status = ww_matrix_write_f32(scratch_path("a.npy"), large, 500, 100);
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK_FAILS(WW_IO_ERROR, status);
    assert_non_null(strstr(ww_error_message(), "a.npy: cannot write: "));
    char *content = scratch_content(scratch_path("a.npy"), &size);
    assert_string_equal(content, "old");
    free(content);
    assert_int_equal(scratch_entries(), 1);
    assert_int_equal(scratch_open_files(), open_files);
    assert_int_equal(blocks_held(), held);
}

static void invalid_files_are_refused_and_nothing_is_created(void **state)
{
    (void)state;
    const int open_files = scratch_open_files();
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_matrix_write_f32(NULL, floats, 2, 3));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_matrix_write_f32(scratch_path("a.npy"), NULL, 2, 3));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_matrix_write_f32(scratch_path("a.npy"), floats, -1, 3));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_matrix_write_f32(scratch_path("a.npy"), floats, 2, 0));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_matrix_write_f32(scratch_path("a.npy"), floats, INT64_MAX, INT64_MAX));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_matrix_write_f32(scratch_path("a.npy"), floats, INT64_MAX / 4 + 1, 1));
    CHECK_FAILS(WW_UNSUPPORTED, ww_matrix_write_f32(scratch_path("a.fbin"), floats, INT64_C(1) << 32, 1));
    CHECK_FAILS(WW_UNSUPPORTED, ww_matrix_write_f32(scratch_path("a.ibin"), floats, 2, 3));
    CHECK_FAILS(WW_UNSUPPORTED, ww_matrix_write_i32(scratch_path("a.fbin"), integers, 2, 3));
    CHECK_FAILS(WW_UNSUPPORTED, ww_matrix_write_f32(scratch_path("a.csv"), floats, 2, 3));
    assert_non_null(strstr(ww_error_message(), ".fbin"));
    CHECK_FAILS(WW_IO_ERROR, ww_matrix_write_f32(scratch_path("no/such/directory/a.npy"), floats, 2, 3));
    assert_int_equal(scratch_entries(), 0);

    assert_int_equal(mkdir(scratch_path("directory.npy"), 0777), 0);
    CHECK_FAILS(WW_IO_ERROR, ww_matrix_write_f32(scratch_path("directory.npy"), floats, 2, 3));
    assert_int_equal(symlink("nowhere", scratch_path("dangling.npy")), 0);
    CHECK_FAILS(WW_IO_ERROR, ww_matrix_write_f32(scratch_path("dangling.npy"), floats, 2, 3));
    assert_int_equal(scratch_entries(), 2);
    assert_int_equal(scratch_open_files(), open_files);
}

/* A pipe has no old content to keep, and is written directly; so is /dev/null. */
static void a_pipe_and_a_device_are_written_to_as_they_are(void **state)
{
    (void)state;
    unsigned char back[64];
    const char *pipe_path = scratch_path("pipe.fbin");
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    const int reader = open(pipe_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    CHECK_OK(ww_matrix_write_f32(pipe_path, floats, 2, 3));
    assert_int_equal(read(reader, back, sizeof back), 8 + 24);
    assert_memory_equal(back + 8, floats, 24);
    close(reader);
    assert_int_equal(symlink("/dev/null", scratch_path("null.npy")), 0);
    CHECK_OK(ww_matrix_write_f32(scratch_path("null.npy"), floats, 2, 3));
    assert_int_equal(scratch_entries(), 2);
}

static void paths_without_a_directory_and_long_names_are_written(void **state)
{
    (void)state;
    char before[4096], name[256];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(scratch_path("")), 0);
    memset(name, 'n', sizeof name - 1);
    strcpy(name + sizeof name - 5, ".npy"); /* the maximum length of a name: 255 */
    const ww_status plain = ww_matrix_write_f32("a.npy", floats, 2, 3), longest = ww_matrix_write_f32(name, floats, 2, 3);
    assert_int_equal(chdir(before), 0);
    CHECK_OK(plain);
    CHECK_OK(longest);
    check_holds_floats(scratch_path("a.npy"));
    check_holds_floats(scratch_path(name));
    assert_int_equal(scratch_entries(), 2);
    char path[5000];
    memset(path, 'p', sizeof path);
    strcpy(path + sizeof path - 5, ".npy");
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_matrix_write_f32(path, floats, 2, 3));
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(floats_written_read_back_bit_for_bit),
        IN_SCRATCH(integers_written_read_back),
        IN_SCRATCH(the_bytes_are_those_of_the_formats),
        IN_SCRATCH(no_rows_are_written_and_read),
        IN_SCRATCH(an_old_file_is_replaced_and_keeps_its_permissions),
        IN_SCRATCH(a_new_file_has_the_permissions_that_the_user_gives_new_files),
        IN_SCRATCH(a_reader_of_the_old_file_keeps_it),
        IN_SCRATCH(a_link_stays_a_link_and_its_target_is_replaced),
        IN_SCRATCH(a_disk_that_takes_no_more_leaves_the_old_file_and_nothing_else),
        IN_SCRATCH(invalid_files_are_refused_and_nothing_is_created),
        IN_SCRATCH(a_pipe_and_a_device_are_written_to_as_they_are),
        IN_SCRATCH(paths_without_a_directory_and_long_names_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
