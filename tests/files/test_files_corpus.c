/* The corpus, replayed: every file through the function its fuzzer calls, and through the library by its name, whose beginning
 * says what must happen (tests/fuzz/corpus/make).
 */
#include "support/check.h"

#include <dirent.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"
#include "support/scratch.h"

/* The fuzz targets, each under a name of its own. */
#define LLVMFuzzerTestOneInput fuzz_npy
#include "fuzz/fuzz_npy.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_vecs
#include "fuzz/fuzz_vecs.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_bin
#include "fuzz/fuzz_bin.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_csv
#include "fuzz/fuzz_csv.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_number
#include "fuzz/fuzz_number.c"
#undef LLVMFuzzerTestOneInput

#define LLVMFuzzerTestOneInput fuzz_safetensors
#include "fuzz/fuzz_safetensors.c"
#undef LLVMFuzzerTestOneInput

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static void check_good(const char *path, const char *name)
{
    ww_matrix *matrix = NULL;
    ww_matrix_info info = ww_matrix_info_default();
    CHECK_OK(ww_matrix_open(path, &matrix));
    CHECK_OK(ww_matrix_describe(matrix, &info));
    float *values = reading_block(info.rows * info.dim);
    if (begins(name, "late-"))
        CHECK_FAILS(WW_CORRUPT_FILE, ww_matrix_read_f32(matrix, 0, info.rows, values));
    else
        CHECK_OK(ww_matrix_read_f32(matrix, 0, info.rows, values));
    free(values);
    ww_matrix_close(matrix);
}

/* A refusal must name the file, where in it, and change nothing. */
static void check_refused(const char *path, ww_status status, bool text)
{
    ww_matrix *matrix = NULL;
    CHECK_FAILS(status, ww_matrix_open(path, &matrix));
    assert_null(matrix);
    assert_non_null(strstr(ww_error_message(), strrchr(path, '/')));
    if (!strstr(ww_error_message(), ": offset ") && !(text && strstr(ww_error_message(), ": line ")))
        fail_msg("no place in: %s", ww_error_message());
}

/* The same for a file of tensors. */
static void check_safetensors(const char *path, const char *name)
{
    ww_safetensors *file = NULL;
    const ww_status expected = begins(name, "good-") ? WW_OK : begins(name, "bad-") ? WW_CORRUPT_FILE : WW_UNSUPPORTED;
    const ww_status status = ww_safetensors_open(path, &file);
    if (status != expected)
        fail_msg("%s: %s, not %s: %s", name, ww_status_name(status), ww_status_name(expected), ww_error_message());
    if (status != WW_OK && (!strstr(ww_error_message(), ": offset ") || !strstr(ww_error_message(), name)))
        fail_msg("no file or place in: %s", ww_error_message());
    ww_safetensors_close(file);
}

static void check_file(const char *path, const char *name, bool text)
{
    if (strstr(name, ".safetensors")) {
        check_safetensors(path, name);
        return;
    }
    if (begins(name, "good-") || begins(name, "late-"))
        check_good(path, name);
    else if (begins(name, "bad-"))
        check_refused(path, WW_CORRUPT_FILE, text);
    else if (begins(name, "unsupported-"))
        check_refused(path, WW_UNSUPPORTED, text);
    else
        fail_msg("%s: the name does not say what must happen", path);
}

static void replay(const char *folder, int (*target)(const uint8_t *bytes, size_t size), bool files, int least)
{
    char path[4096];
    int count = 0;
    snprintf(path, sizeof path, "%s/tests/fuzz/corpus/%s", SOURCE_DIR, folder);
    DIR *entries = opendir(path);
    assert_non_null(entries);
    for (struct dirent *entry; (entry = readdir(entries));) {
        if (entry->d_name[0] == '.')
            continue;
        size_t size;
        const int64_t held = blocks_held();
        snprintf(path, sizeof path, "%s/tests/fuzz/corpus/%s/%s", SOURCE_DIR, folder, entry->d_name);
        char *content = scratch_content(path, &size);
        target((const uint8_t *)content, size);
        free(content);
        if (files)
            check_file(path, entry->d_name, strcmp(folder, "csv") == 0);
        assert_int_equal(blocks_held(), held);
        count++;
    }
    closedir(entries);
    assert_true(count >= least);
}

static void the_npy_corpus_is_accepted_and_refused_as_its_names_say(void **state)
{
    (void)state;
    replay("npy", fuzz_npy, true, 50);
}

static void the_vecs_corpus_is_accepted_and_refused_as_its_names_say(void **state)
{
    (void)state;
    replay("vecs", fuzz_vecs, true, 15);
}

static void the_bin_corpus_is_accepted_and_refused_as_its_names_say(void **state)
{
    (void)state;
    replay("bin", fuzz_bin, true, 15);
}

static void the_csv_corpus_is_accepted_and_refused_as_its_names_say(void **state)
{
    (void)state;
    replay("csv", fuzz_csv, true, 30);
}

static void the_safetensors_corpus_is_accepted_and_refused_as_its_names_say(void **state)
{
    (void)state;
    replay("safetensors", fuzz_safetensors, true, 45);
}

static void the_number_corpus_agrees_with_the_c_library(void **state)
{
    (void)state;
    replay("number", fuzz_number, false, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_npy_corpus_is_accepted_and_refused_as_its_names_say),
        cmocka_unit_test(the_vecs_corpus_is_accepted_and_refused_as_its_names_say),
        cmocka_unit_test(the_bin_corpus_is_accepted_and_refused_as_its_names_say),
        cmocka_unit_test(the_csv_corpus_is_accepted_and_refused_as_its_names_say),
        cmocka_unit_test(the_safetensors_corpus_is_accepted_and_refused_as_its_names_say),
        cmocka_unit_test(the_number_corpus_agrees_with_the_c_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
