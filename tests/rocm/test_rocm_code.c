/* Code that is compiled at run time: the cache on disk, which is only used if it is unchanged, and the square root that old
 * compilers need help with. */
#include "support/check.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "arithmetic/root.h"
#include "base/memory.h"
#include "gpu/driver/code_cache.h"
#include "support/data/random.h"
#include "support/memory.h"
#include "support/scratch.h"

#define NAME "gfx1031-rows-0123456789abcdef.hsaco"

static const char code[] = "\177ELF and what follows";

static const char *file_path(void)
{
    return scratch_path("cache/warpwave/" NAME);
}

static int cache_setup(void **state)
{
    const int failed = scratch_setup(state);
    setenv("XDG_CACHE_HOME", scratch_path("cache"), 1);
    return failed;
}

static bool is_there(void)
{
    driver_compiled found = {0};
    const int64_t held = blocks_held();
    const bool there = code_cache_read(NAME, &found);
    if (there) {
        assert_int_equal(found.bytes, sizeof code);
        assert_memory_equal(found.image, code, sizeof code);
        assert_string_equal(found.cached, file_path());
        memory_free(found.image);
    }
    assert_int_equal(blocks_held(), held);
    return there;
}

/* Changes one byte of the file, counted from the end if negative. */
static void scribble(long at)
{
    FILE *file = fopen(file_path(), "r+b");
    assert_non_null(file);
    fseek(file, at, at < 0 ? SEEK_END : SEEK_SET);
    const int byte = fgetc(file);
    fseek(file, at, at < 0 ? SEEK_END : SEEK_SET);
    fputc(byte ^ 1, file);
    fclose(file);
}

static void written_values_are_read_back(void **state)
{
    (void)state;
    assert_false(is_there());
    code_cache_write(NAME, code, sizeof code);
    assert_true(is_there());
    code_cache_write(NAME, code, sizeof code);
    assert_true(is_there());
    char *content = NULL;
    size_t size = 0;
    content = scratch_content(file_path(), &size);
    assert_memory_equal(content, code, sizeof code); /* first, so that the file is an ELF to other tools */
    free(content);
}

static void a_file_that_was_changed_is_not_believed(void **state)
{
    (void)state;
    static const long places[] = {0, 5, (long)sizeof code - 1, (long)sizeof code, -1, -9, -17, -25, -32};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        code_cache_write(NAME, code, sizeof code);
        assert_true(is_there());
        scribble(places[i]);
        assert_false(is_there());
    }
}

static void a_file_that_was_cut_is_not_believed(void **state)
{
    (void)state;
    for (off_t size = 0; size < (off_t)sizeof code + 32; size++) {
        code_cache_write(NAME, code, sizeof code);
        assert_int_equal(truncate(file_path(), size), 0);
        assert_false(is_there());
    }
}

static void a_file_that_others_may_write_is_not_run(void **state)
{
    (void)state;
    code_cache_write(NAME, code, sizeof code);
    assert_int_equal(chmod(file_path(), 0666), 0);
    assert_false(is_there());
    assert_int_equal(chmod(file_path(), 0600), 0);
    assert_true(is_there());
    char elsewhere[SCRATCH_PATH_BYTES];
    snprintf(elsewhere, sizeof elsewhere, "%s", scratch_path("elsewhere"));
    assert_int_equal(rename(file_path(), elsewhere), 0);
    assert_int_equal(symlink(elsewhere, file_path()), 0);
    assert_false(is_there());
}

static void an_entry_in_anothers_place_is_not_believed(void **state)
{
    (void)state;
    driver_compiled found = {0};
    code_cache_write(NAME, code, sizeof code);
    assert_int_equal(rename(file_path(), scratch_path("cache/warpwave/gfx1100-rows-0123456789abcdef.hsaco")), 0);
    assert_false(code_cache_read("gfx1100-rows-0123456789abcdef.hsaco", &found));
}

static void entries_that_are_not_files_are_not_found(void **state)
{
    (void)state;
    code_cache_write(NAME, code, sizeof code);
    assert_int_equal(unlink(file_path()), 0);
    assert_int_equal(mkfifo(file_path(), 0600), 0);
    alarm(20); /* waiting for a writer would end the test */
    assert_false(is_there());
    alarm(0);
    code_cache_write(NAME, code, sizeof code); /* takes its place */
    assert_true(is_there());
    assert_int_equal(unlink(file_path()), 0);
    assert_int_equal(mkdir(file_path(), 0700), 0);
    assert_false(is_there());
    code_cache_write(NAME, code, sizeof code);
    assert_false(is_there());
}

static void only_the_owner_may_use_the_folder(void **state)
{
    (void)state;
    struct stat about;
    code_cache_write(NAME, code, sizeof code);
    assert_int_equal(chmod(scratch_path("cache/warpwave"), 0777), 0);
    assert_true(is_there());
    assert_int_equal(stat(scratch_path("cache/warpwave"), &about), 0);
    assert_int_equal(about.st_mode & 0777, 0700);
}

/* Makes a file of `bytes` bytes that was last used `seconds` ago. */
static void put_old(const char *name, off_t bytes, time_t seconds)
{
    char path[64];
    snprintf(path, sizeof path, "cache/warpwave/%s", name);
    const char *whole = scratch_write(path, "x", 1);
    assert_int_equal(truncate(whole, bytes), 0);
    const struct timespec then = {.tv_sec = time(NULL) - seconds};
    const struct timespec times[2] = {then, then};
    assert_int_equal(utimensat(AT_FDCWD, whole, times, 0), 0);
}

static bool exists(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "cache/warpwave/%s", name);
    return access(scratch_path(path), F_OK) == 0;
}

static void old_entries_are_removed_when_there_are_too_many(void **state)
{
    (void)state;
    code_cache_write(NAME, code, sizeof code);
    put_old("a.hsaco", 100 << 20, 3000);
    put_old("b.hsaco", 100 << 20, 9000);
    put_old("c.hsaco", 100 << 20, 6000);
    put_old("d.hsaco.Ab12Cd", 10, 100);
    put_old("e.hsaco.Ab12Cd", 10, 4000);
    code_cache_write(NAME, code, sizeof code);
    assert_true(is_there());
    assert_true(exists("a.hsaco") && !exists("b.hsaco") && exists("c.hsaco"));
    assert_true(exists("d.hsaco.Ab12Cd") && !exists("e.hsaco.Ab12Cd"));
}

static void an_entry_can_be_removed(void **state)
{
    (void)state;
    assert_false(code_cache_remove(NAME));
    code_cache_write(NAME, code, sizeof code);
    assert_true(code_cache_remove(NAME));
    assert_false(is_there());
}

static void without_a_place_nothing_is_kept_and_nothing_fails(void **state)
{
    (void)state;
    static const char *const places[] = {"/proc/nonexistent", "relative/path", "", "/dev/null"};
    char *home = getenv("HOME") != NULL ? strdup(getenv("HOME")) : NULL;
    unsetenv("HOME");
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        setenv("XDG_CACHE_HOME", places[i], 1);
        code_cache_write(NAME, code, sizeof code);
        assert_false(is_there());
    }
    unsetenv("XDG_CACHE_HOME");
    assert_false(is_there());
    if (home != NULL)
        setenv("HOME", home, 1);
    free(home);
}

static void memory_may_be_short(void **state)
{
    (void)state;
    code_cache_write(NAME, code, sizeof code);
    fail_allocation_at(1);
    assert_false(is_there());
    fail_allocation_at(0);
    assert_true(is_there());
}

/* ---- roots --------------------------------------------------------------------------------------------------------------- */

static void check_root(float x)
{
    const float right = sqrtf(x);
    for (int off = -1; off <= 1; off++) {
        float near = right;
        if (x > 0.0f && isfinite(x) && off != 0)
            near = nextafterf(right, off < 0 ? 0.0f : INFINITY);
        const float got = root_corrected(x, near);
        if (memcmp(&got, &right, sizeof got) != 0)
            fail_msg("the root of %a from %a came out as %a, not %a", (double)x, (double)near, (double)got, (double)right);
    }
}

static void a_root_that_is_off_by_one_is_put_right(void **state)
{
    (void)state;
    test_random random = {5};
    static const float special[] = {0.0f, 1.0f, 4.0f, 0x1p-96f, 0x1.fffffep-96f, 0x1p127f, 0x1.fffffep127f, INFINITY};
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
        check_root(special[i]);
    for (int exponent = -96; exponent < 128; exponent++)
        for (int i = 0; i < 3000; i++) {
            const uint32_t bits = (uint32_t)(exponent + 127) << 23 | (uint32_t)(random_bits(&random) & 0x7fffff);
            float x;
            memcpy(&x, &bits, sizeof x);
            check_root(x);
        }
    for (uint32_t whole = 1; whole < 4096; whole++) { /* squares, and their neighbours */
        const float square = (float)whole * (float)whole;
        check_root(square);
        check_root(nextafterf(square, 0.0f));
        check_root(nextafterf(square, INFINITY));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(written_values_are_read_back, cache_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(an_entry_in_anothers_place_is_not_believed, cache_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(entries_that_are_not_files_are_not_found, cache_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(only_the_owner_may_use_the_folder, cache_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(old_entries_are_removed_when_there_are_too_many, cache_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(an_entry_can_be_removed, cache_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_file_that_was_changed_is_not_believed, cache_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_file_that_was_cut_is_not_believed, cache_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_file_that_others_may_write_is_not_run, cache_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(without_a_place_nothing_is_kept_and_nothing_fails, cache_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(memory_may_be_short, cache_setup, scratch_teardown),
        cmocka_unit_test(a_root_that_is_off_by_one_is_put_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
