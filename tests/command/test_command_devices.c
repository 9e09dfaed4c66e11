/* `warpwave devices`, and `bench` and `demo`, which are pointed at one. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/command.h"
#include "support/scratch.h"

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    if (!text)
        fail_msg("no text '%s'", key);
    return text;
}

static json_int_t integer_of(const json_t *object, const char *key)
{
    if (!json_is_integer(json_object_get(object, key)))
        fail_msg("no integer '%s'", key);
    return json_integer_value(json_object_get(object, key));
}

static double real_of(const json_t *object, const char *key)
{
    if (!json_is_number(json_object_get(object, key)))
        fail_msg("no number '%s'", key);
    return json_number_value(json_object_get(object, key));
}

static void every_field_of_every_device_is_in_the_json(void **state)
{
    (void)state;
    ww_device_info infos[16];
    size_t count;
    for (int i = 0; i < 16; i++)
        infos[i] = ww_device_info_default();
    CHECK_OK(ww_devices(infos, 16, &count));
    json_t *report = COMMAND_JSON("devices", "--json");
    assert_string_equal(text_of(report, "version"), ww_version());
    const json_t *devices = json_object_get(report, "devices");
    assert_int_equal(json_array_size(devices), count);
    for (size_t i = 0; i < count && i < 16; i++) {
        const json_t *device = json_array_get(devices, i);
        assert_string_equal(text_of(device, "id"), infos[i].id);
        assert_string_equal(text_of(device, "name"), infos[i].name);
        assert_string_equal(text_of(device, "vendor"), infos[i].vendor);
        assert_string_equal(text_of(device, "backend"), infos[i].backend);
        assert_string_equal(text_of(device, "arch"), infos[i].arch);
        assert_string_equal(text_of(device, "instruction_sets"), infos[i].instruction_sets);
        assert_string_equal(text_of(device, "kernels"), infos[i].kernels);
        assert_string_equal(text_of(device, "driver_version"), infos[i].driver_version);
        assert_string_equal(text_of(device, "pci_address"), infos[i].pci_address);
        assert_int_equal(integer_of(device, "index"), infos[i].index);
        assert_int_equal(integer_of(device, "wave_size"), infos[i].wave_size);
        assert_int_equal(integer_of(device, "compute_units"), infos[i].compute_units);
        assert_int_equal(integer_of(device, "max_threads_per_block"), infos[i].max_threads_per_block);
        assert_int_equal(integer_of(device, "shared_bytes_per_block"), infos[i].shared_bytes_per_block);
        assert_int_equal(integer_of(device, "memory_total_bytes"), infos[i].memory_total_bytes);
        assert_true(integer_of(device, "memory_free_bytes") > 0);
        assert_true(integer_of(device, "memory_used_bytes") >= 0);
    }
    json_decref(report);
}

static void chips_and_absent_backends_are_in_the_json(void **state)
{
    (void)state;
    static const char *const backends[] = {"cuda", "rocm"};
    json_t *report = COMMAND_JSON("devices", "--json");
    const json_t *kernels = json_object_get(report, "kernels"), *absent = json_object_get(report, "absent");
    assert_true(json_is_array(kernels));
    assert_int_equal(json_array_size(kernels), ww_kernel_chip_count());
    for (size_t i = 0; i < ww_kernel_chip_count(); i++)
        assert_string_equal(json_string_value(json_array_get(kernels, i)), ww_kernel_chip(i));
    assert_true(json_is_object(absent));
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        const char *reason = ww_backend_absence(backends[i]);
        if (*reason)
            assert_string_equal(text_of(absent, backends[i]), reason);
        else
            assert_null(json_object_get(absent, backends[i]));
    }
    json_decref(report);
}

static void the_table_names_each_device(void **state)
{
    (void)state;
    command_result result = COMMAND_RUN("devices");
    json_t *report = COMMAND_JSON("devices", "--json");
    const json_t *device;
    size_t i;
    char line[256];
    assert_int_equal(result.code, 0);
    json_array_foreach(json_object_get(report, "devices"), i, device)
    {
        snprintf(line, sizeof line, "%s: %s\n", text_of(device, "id"), text_of(device, "name"));
        assert_non_null(strstr(result.out, line));
    }
    assert_non_null(strstr(result.out, "cpu: "));
    assert_non_null(strstr(result.out, " free of "));
    if (ww_kernel_chip_count() > 0)
        assert_non_null(strstr(result.out, "GPU kernels in this library: "));
    else /* why, and what to type */
        assert_non_null(strstr(result.out, "this library has no GPU kernels: "));
    const json_t *rocm =
        json_object_get(json_object_get(report, "absent"), "rocm"); /* told also without kernels: it can compile */
    assert_true(rocm == NULL || strstr(result.out, "\nrocm: ") != NULL);
    assert_true(ww_kernel_chip_count() > 0 || strstr(result.out, "make build") != NULL);
    json_decref(report);
    command_free(&result);
}

/* Test equipment is never mistaken for a card: its devices say in the table and in the JSON that they are emulated. */
static void a_stand_in_is_marked_as_one(void **state)
{
    (void)state;
    if (access(BUILD_DIR "/standin/libamdhip64.so", R_OK) != 0) {
        printf("SKIP: the stand-in for ROCm was not built\n");
        skip();
    }
    if (ww_kernel_chip_count() == 0) {
        printf("SKIP: this build has no kernels, so no device of ROCm's is looked for\n");
        skip();
    }
    setenv("WARPWAVE_HIP_LIBRARY", BUILD_DIR "/standin/libamdhip64.so", 1);
    setenv("HIP_VISIBLE_DEVICES", "1", 1);
    command_result result = COMMAND_RUN("devices");
    json_t *report = COMMAND_JSON("devices", "--json");
    unsetenv("HIP_VISIBLE_DEVICES");
    unsetenv("WARPWAVE_HIP_LIBRARY");
    assert_non_null(strstr(result.out, "rocm:0: stand-in for an AMD gfx1100\n"));
    assert_null(strstr(result.out, "rocm:1"));
    size_t i;
    int found = 0;
    const json_t *device;
    json_array_foreach(json_object_get(report, "devices"), i, device)
    {
        if (strcmp(text_of(device, "backend"), "rocm") != 0)
            continue;
        assert_string_equal(text_of(device, "name"), "stand-in for an AMD gfx1100");
        assert_string_equal(text_of(device, "arch"), "gfx1100");
        assert_int_equal(integer_of(device, "wave_size"), 32);
        found++;
    }
    assert_int_equal(found, 1);
    json_decref(report);
    command_free(&result);
}

static void bench_measures_the_requested_sizes(void **state)
{
    (void)state;
    static const int64_t batches[] = {1, 16, 20};
    json_t *report = COMMAND_JSON("bench", "--device", "cpu", "--rows", "300", "--dim", "70", "--queries", "20", "-k", "5",
                                  "--metric", "dot", "--repeat", "2", "--json");
    assert_string_equal(text_of(report, "device"), "cpu");
    assert_string_equal(text_of(report, "metric"), "dot");
    assert_int_equal(integer_of(report, "rows"), 300);
    assert_int_equal(integer_of(report, "dim"), 70);
    assert_int_equal(integer_of(report, "k"), 5);
    assert_int_equal(integer_of(report, "repeat"), 2);
    assert_int_equal(integer_of(report, "bytes"), 300 * 70 * 4);
    assert_true(integer_of(report, "read_threads") >= 1);
    assert_true(real_of(report, "add_gigabytes_per_second") > 0.0);
    assert_true(real_of(report, "read_gigabytes_per_second") > 0.0);
    const json_t *searches = json_object_get(report, "searches");
    assert_int_equal(json_array_size(searches), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *search = json_array_get(searches, i);
        const double seconds = real_of(search, "seconds");
        assert_int_equal(integer_of(search, "queries"), batches[i]);
        assert_true(seconds > 0.0);
        assert_true(abs((int)(1e6 * (real_of(search, "gigabytes_per_second") * seconds * 1e9 / (300.0 * 70 * 4) - 1.0))) < 10);
        const double flops = 2.0 * 300 * 70 * (double)batches[i];
        assert_true(abs((int)(1e6 * (real_of(search, "gigaflops") * seconds * 1e9 / flops - 1.0))) < 10);
    }
    json_decref(report);
}

static void bench_measures_an_index(void **state)
{
    (void)state;
    json_t *report = COMMAND_JSON("bench", "--ivf", "--device", "cpu", "--rows", "900", "--dim", "20", "--queries", "20", "-k",
                                  "5", "--nlist", "30", "--repeat", "2", "--json");
    json_t *searches = json_object_get(report, "searches");
    const size_t count = json_array_size(searches);
    assert_int_equal(json_integer_value(json_object_get(report, "nlist")), 30);
    assert_true(count >= 3);
    double last = 0.0;
    const json_t *again = json_array_get(searches, count - 1);
    assert_int_equal(json_integer_value(json_object_get(again, "nprobe")), 0);
    assert_true(json_boolean_value(json_object_get(again, "indexed")));
    assert_true(json_real_value(json_object_get(again, "recall")) == 1.0);
    for (size_t i = 0; i < count - 1; i++) { /* the exact search, then 1, 2, 4, ... lists, and the exact search again */
        const json_t *search = json_array_get(searches, i);
        const double recall = json_real_value(json_object_get(search, "recall"));
        assert_int_equal(json_integer_value(json_object_get(search, "nprobe")), i == 0 ? 0 : 1 << (i - 1));
        assert_true(recall >= (i == 1 ? 0.0 : last) || i == 0);
        assert_true(recall <= 1.0 && json_real_value(json_object_get(search, "seconds")) > 0.0);
        assert_true(json_real_value(json_object_get(search, "proven")) <= recall);
        last = recall;
    }
    assert_true(last > 0.8);
    json_decref(report);
    COMMAND_SAYS(0, "recall", "bench", "--ivf", "--device", "cpu", "--rows", "40", "--queries", "3", "--repeat", "1");
    COMMAND_SAYS(2, "--nlist needs --ivf", "bench", "--nlist", "5");
}

static void bench_leaves_out_batches_that_are_not_smaller(void **state)
{
    (void)state;
    json_t *report = COMMAND_JSON("bench", "--device", "cpu", "--rows", "10", "--queries", "1", "--repeat", "1", "--json");
    assert_int_equal(json_array_size(json_object_get(report, "searches")), 1);
    json_decref(report);
    COMMAND_SAYS(0, "search, 16 queries", "bench", "--device", "cpu", "--rows", "10", "--queries", "17", "--repeat", "1");
    COMMAND_SAYS(0, "plain read", "bench", "--device", "cpu", "--rows", "10", "--queries", "17", "--repeat", "1");
}

/* Returns the number after a word in text. */
static double number_after(const char *text, const char *word)
{
    const char *at = strstr(text, word);
    if (at)
        return strtod(at + strlen(word), NULL);
    fail_msg("no '%s' in:\n%s", word, text);
    return 0.0;
}

static void demo_recognises_digits(void **state)
{
    (void)state;
    command_result result = COMMAND_RUN("demo", "--device", "cpu");
    assert_int_equal(result.code, 0);
    assert_string_equal(result.err, "");
    assert_non_null(
        strstr(result.out, "the vote of the 5 nearest by cosine was right for 282 of 297")); /* the same everywhere */
    assert_non_null(strstr(result.out, "device    cpu: "));
    assert_non_null(strstr(result.out, "What to try next"));
    command_free(&result);
}

/* How often a text occurs. */
static int occurrences(const char *text, const char *part)
{
    int count = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
        count++;
    return count;
}

/* One digest for every instruction set and device of every machine: this test has it, the program has not. */
static void demo_ends_with_the_same_digest_of_every_device(void **state)
{
    (void)state;
    static const char DIGEST[] = "2ea7f77435e79242";
    command_result result = COMMAND_RUN("demo", "--device", "cpu");
    assert_non_null(strstr(result.out, "  cpu, scalar "));
    const int equal = occurrences(result.out, "  equal\n");
    assert_int_equal(occurrences(result.out, DIGEST), equal > 0 ? equal : 1);
    assert_int_equal(occurrences(result.out, " ms  "), equal > 0 ? equal : 1);
    command_free(&result);
    setenv("WARPWAVE_ISA", "scalar", 1);
    result = COMMAND_RUN("demo", "--device", "cpu");
    unsetenv("WARPWAVE_ISA");
    assert_int_equal(occurrences(result.out, "  cpu, "), 1);
    assert_non_null(strstr(result.out, DIGEST));
    command_free(&result);
}

/* A file gets no escape sequences. Each picture has eight lines of shades, with its neighbours next to it. */
static void demo_draws_plain_shades_into_a_file(void **state)
{
    (void)state;
    command_result result = COMMAND_RUN("demo", "--device", "cpu", "-k", "3");
    assert_null(strchr(result.out, '\033'));
    int lines = 0;
    for (char *line = strtok(result.out, "\n"); line; line = strtok(NULL, "\n")) {
        const bool shades = strspn(line, " .:-=+*#%@") == strlen(line);
        lines += shades;
        if (shades)
            assert_int_equal(strlen(line), 4 * 16 + 3 * 2);
    }
    assert_int_equal(lines, 2 * 8); /* a digit and a mistake */
    command_free(&result);
}

static void demo_takes_metric_and_k(void **state)
{
    (void)state;
    command_result result = COMMAND_RUN("demo", "--device=cpu", "--metric", "cosine", "-k", "1");
    assert_int_equal(result.code, 0);
    assert_true(number_after(result.out, "accuracy ") > 0.93);
    assert_non_null(strstr(result.out, "the 1 nearest by cosine"));
    command_free(&result);
    result = COMMAND_RUN("demo", "--device", "cpu", "--metric", "dot");
    assert_int_equal(result.code, 0);
    assert_true(number_after(result.out, "accuracy ") < 0.8); /* bright digits win by dot: it really is another metric */
    command_free(&result);
}

/* The second run finds the rows of the first, and prints the same except for the time. */
static void demo_keeps_its_digits_in_a_store(void **state)
{
    (void)state;
    const char *path = scratch_path("digits.db");
    command_result first = COMMAND_RUN("demo", "--device", "cpu", "--store", path);
    if (strstr(first.err, "built without stores")) {
        command_free(&first);
        return;
    }
    command_result second = COMMAND_RUN("demo", "--device", "cpu", "--store", path);
    command_result memory = COMMAND_RUN("demo", "--device", "cpu");
    assert_int_equal(first.code, 0);
    assert_int_equal(second.code, 0);
    assert_non_null(strstr(first.out, "ms to add 1500 rows"));
    assert_non_null(strstr(second.out, "the 1500 rows were in"));
    for (int i = 0; i < 3; i++)
        *strstr((i == 0 ? first : i == 1 ? second : memory).out, "time   ") = '\0';
    assert_string_equal(first.out, memory.out);
    assert_string_equal(second.out, memory.out);
    command_free(&first);
    command_free(&second);
    command_free(&memory);
    COMMAND_SAYS(3, "give --metric cosine, or another file", "demo", "--device", "cpu", "--store", path, "--metric", "dot");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_of_every_device_is_in_the_json),
        cmocka_unit_test(chips_and_absent_backends_are_in_the_json),
        cmocka_unit_test(the_table_names_each_device),
        cmocka_unit_test(a_stand_in_is_marked_as_one),
        cmocka_unit_test(bench_measures_the_requested_sizes),
        cmocka_unit_test(bench_measures_an_index),
        cmocka_unit_test(bench_leaves_out_batches_that_are_not_smaller),
        cmocka_unit_test(demo_recognises_digits),
        cmocka_unit_test(demo_ends_with_the_same_digest_of_every_device),
        cmocka_unit_test(demo_draws_plain_shades_into_a_file),
        cmocka_unit_test(demo_takes_metric_and_k),
        cmocka_unit_test_setup_teardown(demo_keeps_its_digits_in_a_store, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
