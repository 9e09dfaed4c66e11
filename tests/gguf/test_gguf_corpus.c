/* The corpus of GGUF files, replayed: every file through the function its fuzzer calls, and through the library by its name,
 * whose beginning says what must happen (tests/fuzz/corpus/make).
 */
#include "support/check.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"
#include "support/scratch.h"

#define LLVMFuzzerTestOneInput fuzz_gguf
#include "fuzz/fuzz_gguf.c"
#undef LLVMFuzzerTestOneInput

static void check_file(const char *path, const char *name)
{
    ww_gguf *g = NULL;
    const ww_status status = ww_gguf_open(path, &g);
    const ww_status expected = strncmp(name, "good-", 5) == 0  ? WW_OK
                               : strncmp(name, "bad-", 4) == 0 ? WW_CORRUPT_FILE
                                                               : WW_UNSUPPORTED;
    if (status != expected)
        fail_msg("%s: %s, not %s: %s", name, ww_status_name(status), ww_status_name(expected), ww_error_message());
    if (status != WW_OK)
        assert_non_null(strstr(ww_error_message(), ": offset "));
    ww_gguf_close(g);
}

static void the_gguf_corpus_is_accepted_and_refused_as_its_names_say(void **state)
{
    (void)state;
    char path[4096];
    int count = 0;
    DIR *entries = opendir(SOURCE_DIR "/tests/fuzz/corpus/gguf");
    assert_non_null(entries);
    for (struct dirent *entry; (entry = readdir(entries));) {
        if (entry->d_name[0] == '.')
            continue;
        size_t size;
        const int64_t held = blocks_held();
        snprintf(path, sizeof path, "%s/tests/fuzz/corpus/gguf/%s", SOURCE_DIR, entry->d_name);
        char *content = scratch_content(path, &size);
        fuzz_gguf((const uint8_t *)content, size);
        free(content);
        check_file(path, entry->d_name);
        assert_int_equal(blocks_held(), held);
        count++;
    }
    closedir(entries);
    assert_true(count >= 25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_gguf_corpus_is_accepted_and_refused_as_its_names_say)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
