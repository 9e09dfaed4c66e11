/* Several threads read and map one .safetensors file at once, and each read uses several threads itself. */
#include "support/check.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "support/scratch.h"

enum { READERS = 3, WORDS = 9 << 20 }; /* 36 MiB: large enough to be shared */

typedef struct reader {
    pthread_t thread;
    ww_safetensors *file;
    const uint32_t *expected;
    int equal; /* how often what was read was what was written */
} reader;

static void *read_it(void *context)
{
    reader *r = context;
    const void *mapped = NULL;
    uint32_t *words = malloc(WORDS * sizeof *words);
    if (words && ww_safetensors_read(r->file, 0, 0, words, WORDS * sizeof *words) == WW_OK)
        r->equal += memcmp(words, r->expected, WORDS * sizeof *words) == 0;
    if (ww_safetensors_map(r->file, 0, &mapped) == WW_OK)
        r->equal += memcmp(mapped, r->expected, WORDS * sizeof *words) == 0;
    free(words);
    return NULL;
}

static void threads_read_one_file(void **state)
{
    (void)state;
    reader readers[READERS];
    uint32_t *words = malloc(WORDS * sizeof *words);
    ww_array array = ww_array_default();
    ww_safetensors *file = NULL;
    assert_non_null(words);
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = i * 2654435761u;
    array.name = "w";
    array.element = WW_ELEMENT_U32;
    array.rank = 1;
    array.shape[0] = WORDS;
    array.data = words;
    CHECK_OK(ww_safetensors_write(scratch_path("w.safetensors"), &array, 1, NULL));
    CHECK_OK(ww_safetensors_open(scratch_path("w.safetensors"), &file));
    for (int i = 0; i < READERS; i++) {
        readers[i] = (reader){.file = file, .expected = words};
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_it, &readers[i]), 0);
    }
    for (int i = 0; i < READERS; i++) {
        pthread_join(readers[i].thread, NULL);
        assert_int_equal(readers[i].equal, 2);
    }
    ww_safetensors_close(file);
    free(words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(threads_read_one_file, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
