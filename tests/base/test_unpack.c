/* Data packed by zstd is unpacked to the byte. Damaged data is refused with a status, wherever the damage is. */
#include "support/check.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/unpack.h"
#include "kernels/embedded.h"
#include "support/data/random.h"
#include "support/memory.h"
#include "support/scratch.h"

static bool have_zstd(void)
{
    if (system("zstd --version > /dev/null 2>&1") == 0)
        return true;
    printf("SKIP: zstd is not here to pack with\n");
    return false;
}

/* Packs with the options; the caller frees. */
static char *pack(const void *bytes, size_t count, const char *options, size_t *packed_bytes)
{
    char command[3 * SCRATCH_PATH_BYTES + 256];
    const char *plain = scratch_write("plain", bytes, count);
    snprintf(command, sizeof command, "zstd %s --check --quiet --stdout %s > %s", options, plain, scratch_path("packed"));
    assert_int_equal(system(command), 0);
    return scratch_content(scratch_path("packed"), packed_bytes);
}

static void check_round_trip(const void *bytes, size_t count, const char *options)
{
    size_t packed_bytes = 0;
    size_t size = 0;
    char *content = NULL;
    char *packed = pack(bytes, count, options, &packed_bytes);
    const int64_t held = blocks_held();
    CHECK_OK(unpack("a test", packed, packed_bytes, &content, &size));
    assert_int_equal(size, count);
    assert_memory_equal(content, bytes, count);
    assert_int_equal(content[size], 0);
    memory_free(content);
    assert_int_equal(blocks_held(), held);
    free(packed);
}

/* Text that repeats itself near and far, with bytes that nothing foretells between: all kinds of items, and several chunks. */
static char *mixture(size_t count)
{
    test_random random = {9};
    char *bytes = malloc(count);
    for (size_t i = 0; i < count;) {
        const size_t length = 1 + random_below(&random, 300);
        const size_t kind = random_below(&random, 4);
        const size_t from = i > 0 ? random_below(&random, (uint32_t)i) : 0;
        for (size_t j = 0; j < length && i < count; j++, i++)
            bytes[i] = kind == 0   ? (char)random_bits(&random)
                       : kind == 1 ? "abcdefgh"[random_below(&random, 8)]
                       : from < i  ? bytes[from + j % (i - from)]
                                   : 'x';
    }
    return bytes;
}

static void packed_data_is_unpacked(void **state)
{
    (void)state;
    static const char *const options[] = {"-15 --single-thread", "-1", "-19", "--fast=5"};
    static const size_t sizes[] = {1, 2, 300, 70000, 2500000};
    if (!have_zstd())
        skip();
    char *bytes = mixture(sizes[4]);
    for (size_t o = 0; o < sizeof options / sizeof *options; o++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            if (sizes[s] < 1000000 || o == 0)
                check_round_trip(bytes, sizes[s], options[o]);
    test_random random = {4};
    for (size_t i = 0; i < 300000; i++) /* data that cannot be compressed is stored unchanged */
        bytes[i] = (char)random_bits(&random);
    check_round_trip(bytes, 300000, options[0]);
    memset(bytes, 0, sizes[4]);
    check_round_trip(bytes, sizes[4], options[0]);
    free(bytes);
}

/* Changes every byte of a small file in turn, and cuts the file at every place. */
static void damaged_data_is_refused(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    size_t packed_bytes = 0;
    size_t size = 77;
    char *content = NULL;
    if (!have_zstd())
        skip();
    char *bytes = mixture(COUNT);
    char *packed = pack(bytes, COUNT, "-15 --single-thread", &packed_bytes);
    const int64_t held = blocks_held();
    int refused = 0;
    for (size_t i = 0; i < packed_bytes; i++) {
        packed[i] = (char)(packed[i] ^ (1 << i % 8));
        const ww_status status = unpack("a test", packed, packed_bytes, &content, &size);
        packed[i] = (char)(packed[i] ^ (1 << i % 8));
        if (status == WW_OK) { /* nothing that matters, or it was not noticed */
            assert_int_equal(size, COUNT);
            assert_memory_equal(content, bytes, COUNT);
            memory_free(content);
            content = NULL;
            size = 77;
            continue;
        }
        assert_true(status == WW_CORRUPT_FILE || status == WW_OUT_OF_MEMORY);
        assert_true(content == NULL && size == 77);
        refused++;
    }
    assert_true(refused > (int)packed_bytes - 8);
    for (size_t cut = 0; cut < packed_bytes; cut++) {
        char *shorter = memcpy(malloc(cut + 1), packed, cut); /* in a block of its exact length, for the address sanitizer */
        CHECK_FAILS(WW_CORRUPT_FILE, unpack("the test's file", shorter, cut, &content, &size));
        assert_non_null(strstr(ww_error_message(), "the test's file is damaged"));
        free(shorter);
    }
    assert_int_equal(blocks_held(), held);
    free(packed);
    free(bytes);
}

static void without_memory_nothing_is_left(void **state)
{
    (void)state;
    size_t packed_bytes = 0;
    size_t size = 0;
    char *content = NULL;
    if (!have_zstd())
        skip();
    char *packed = pack("some words, some words", 22, "-15 --single-thread", &packed_bytes);
    const int64_t held = blocks_held();
    fail_allocation_at(1);
    CHECK_FAILS(WW_OUT_OF_MEMORY, unpack("a test", packed, packed_bytes, &content, &size));
    fail_allocation_at(0);
    assert_null(content);
    assert_int_equal(blocks_held(), held);
    free(packed);
}

/* Like the wheel's kernels: a module for one chip, and the differences of the same module for another chip. */
static void a_module_that_is_packed_against_another_is_unpacked(void **state)
{
    (void)state;
    enum { COUNT = 60000, CHANGED = 40 };
    char *code = NULL;
    size_t bytes = 0;
    if (!have_zstd())
        skip();
    char *first = mixture(COUNT);
    char *second = memcpy(malloc(COUNT), first, COUNT);
    for (size_t i = 0; i < CHANGED; i++)
        second[i * (COUNT / CHANGED)] ^= 1;
    embedded_kernels kernels = {.module = "search", .chip = "gfx1151", .format = "HSACO"};
    char options[SCRATCH_PATH_BYTES + 64];
    char *base = pack(first, COUNT, "-15", &kernels.base_bytes);
    snprintf(options, sizeof options, "-9 --patch-from=%s", scratch_write("first", first, COUNT));
    char *packed = pack(second, COUNT, options, &kernels.packed_bytes);
    assert_true(kernels.packed_bytes < 1000);
    kernels.packed = packed;
    kernels.base = base;
    const int64_t held = blocks_held();
    CHECK_OK(embedded_unpack(&kernels, &code, &bytes));
    assert_int_equal(bytes, COUNT);
    assert_memory_equal(code, second, COUNT);
    assert_int_equal(code[bytes], 0);
    memory_free(code);
    code = NULL;
    for (int64_t n = 1; n <= 2; n++) {
        fail_allocation_at(n);
        CHECK_FAILS(WW_OUT_OF_MEMORY, embedded_unpack(&kernels, &code, &bytes));
        fail_allocation_at(0);
    }
    packed[kernels.packed_bytes / 2] ^= 4;
    CHECK_FAILS(WW_CORRUPT_FILE, embedded_unpack(&kernels, &code, &bytes));
    packed[kernels.packed_bytes / 2] ^= 4;
    memset(first, 'x', COUNT); /* no longer the base it was packed against */
    const packed_difference wrong = {
        .packed = packed, .packed_bytes = kernels.packed_bytes, .base = first, .base_bytes = COUNT};
    CHECK_FAILS(WW_CORRUPT_FILE, unpack_difference("a test", &wrong, &code, &bytes));
    assert_null(code);
    assert_int_equal(blocks_held(), held);
    free(first);
    free(second);
    free(base);
    free(packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(packed_data_is_unpacked, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(damaged_data_is_refused, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(without_memory_nothing_is_left, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_module_that_is_packed_against_another_is_unpacked, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
