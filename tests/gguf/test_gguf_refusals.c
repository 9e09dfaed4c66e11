/* GGUF files that are wrong (support/data/wrong_gguf.h): refused with the offset and the reason, nothing held, no crash. And a
 * small good file cut off at every byte.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gguf/gguf.h"
#include "support/check.h"
#include "support/data/bytes.h"
#include "support/data/wrong_gguf.h"
#include "support/memory.h"
#include "support/scratch.h"

/* A small file, nothing wrong with it. */
static void good(test_bytes *b)
{
    put_start(b, 3, 2, 4);
    put_key(b, "general.name", WW_GGUF_STRING);
    put_text(b, "small");
    put_key_u32(b, "general.alignment", 64);
    put_key(b, "flags", WW_GGUF_ARRAY);
    put_u32(b, WW_GGUF_BOOL);
    put_u64(b, 3);
    put_bytes(b, "\1\0\1", 3);
    put_key(b, "words", WW_GGUF_ARRAY);
    put_u32(b, WW_GGUF_STRING);
    put_u64(b, 2);
    put_text(b, "a");
    put_text(b, "");
    put_tensor(b, "first", 32, 2, 2 /* q4_0 */, 0);
    put_tensor(b, "second", 3, 1, 0 /* f32 */, 64);
    put_padding(b, 64);
    put_zeros(b, 36 + 28 + 12);
}

/* The bytes are in a block of their exact size, so that the address sanitizer detects reads after the end. */
static ww_status open_copy(const unsigned char *bytes, size_t size, ww_gguf **g)
{
    unsigned char *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    if (size > 0)
        memcpy(copy, bytes, size);
    const ww_status status = gguf_open_bytes("test.gguf", copy, size, g);
    if (status == WW_OK) {
        ww_gguf_close(*g);
        *g = NULL;
    }
    free(copy);
    return status;
}

static void every_way_to_be_wrong_is_refused_with_its_reason(void **state)
{
    (void)state;
    for (const wrong_gguf *wrong = wrong_ggufs; wrong->name; wrong++) {
        static test_bytes b;
        ww_gguf *g = NULL;
        const int64_t held = blocks_held();
        b.size = 0;
        wrong->make(&b);
        const ww_status status = open_copy(b.data, b.size, &g);
        if (status != wrong->status || g)
            fail_msg("%s: %s, not %s: %s", wrong->name, ww_status_name(status), ww_status_name(wrong->status),
                     ww_error_message());
        if (!strstr(ww_error_message(), wrong->reason) || !strstr(ww_error_message(), "test.gguf: offset "))
            fail_msg("%s: '%s' does not say '%s'", wrong->name, ww_error_message(), wrong->reason);
        assert_int_equal(blocks_held(), held);
    }
}

static void a_file_cut_off_at_any_byte_is_refused(void **state)
{
    (void)state;
    static test_bytes b;
    ww_gguf *g = NULL;
    b.size = 0;
    good(&b);
    const int64_t held = blocks_held();
    CHECK_OK(open_copy(b.data, b.size, &g));
    for (size_t size = 0; size < b.size; size++) {
        CHECK_FAILS(WW_CORRUPT_FILE, open_copy(b.data, size, &g));
        assert_non_null(strstr(ww_error_message(), "offset "));
    }
    assert_int_equal(blocks_held(), held);
}

/* Any byte with any other value: opened or refused, never more. */
static void a_file_with_any_byte_changed_is_opened_or_refused(void **state)
{
    (void)state;
    static test_bytes b;
    ww_gguf *g = NULL;
    b.size = 0;
    good(&b);
    for (size_t at = 0; at < b.size; at++) {
        static const unsigned char others[] = {0, 1, 2, 9, 0x7f, 0x80, 0xff};
        const unsigned char before = b.data[at];
        for (size_t i = 0; i < sizeof others; i++) {
            b.data[at] = others[i];
            const ww_status status = open_copy(b.data, b.size, &g);
            assert_true(status == WW_OK || status == WW_CORRUPT_FILE || status == WW_UNSUPPORTED);
        }
        b.data[at] = before;
    }
}

/* A write that fails spoils the whole file: the writer does not count it as written and then put the file in the old one's
 * place. */
static void a_writer_whose_write_failed_never_replaces_the_old_file(void **state)
{
    (void)state;
    enum { BYTES = 200000 };
    static const unsigned char data[BYTES];
    struct rlimit before, tight = {.rlim_cur = BYTES / 2};
    char path[SCRATCH_PATH_BYTES];
    snprintf(path, sizeof path, "%s", scratch_write("old.gguf", "old", 3));
    ww_gguf_writer *w;
    ww_gguf_tensor tensor = ww_gguf_tensor_default();
    tensor.name = "t";
    tensor.type = 24; /* i8 */
    tensor.rank = 1;
    tensor.shape[0] = BYTES;
    CHECK_OK(ww_gguf_writer_create(&w));
    CHECK_OK(ww_gguf_writer_tensor(w, &tensor));
    CHECK_OK(ww_gguf_writer_open(w, path));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    tight.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    const ww_status status = ww_gguf_writer_data(w, data, BYTES);
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK_FAILS(WW_IO_ERROR, status);
    CHECK_FAILS(WW_IO_ERROR,
                ww_gguf_writer_data(w, data, BYTES)); /* the disk has room again; the file is spoilt all the same */
    assert_true(ww_gguf_writer_finish(w) != WW_OK);
    ww_gguf_writer_destroy(w);
    size_t size;
    char *content = scratch_content(path, &size);
    assert_string_equal(content, "old");
    free(content);
    assert_int_equal(scratch_entries(), 1);
}

/* A file of a few kilobytes on the disk and of two gigabytes by its size must not be read into memory as a whole. */
static void metadata_in_a_hole_of_the_file_takes_little_memory(void **state)
{
    (void)state;
    static const struct {
        uint32_t magic, version;
        uint64_t tensors, values, key_bytes;
        char key[4];
    } __attribute__((packed)) start = {0x46554747, 3, 0, 1, 4, "hole"};
    static const struct {
        uint32_t kind, element;
        uint64_t count;
    } __attribute__((packed)) array = {9, 0, 1900000000};
    char bytes[sizeof start + sizeof array];
    memcpy(bytes, &start, sizeof start);
    memcpy(bytes + sizeof start, &array, sizeof array);
    const char *path = scratch_write("hole.gguf", bytes, sizeof bytes);
    assert_int_equal(truncate(path, 2000000000), 0);
    ww_gguf *gguf = NULL;
    CHECK_FAILS(WW_UNSUPPORTED, ww_gguf_open(path, &gguf));
    assert_non_null(strstr(ww_error_message(), "the metadata exceeds 268435456 bytes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_writer_whose_write_failed_never_replaces_the_old_file, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(metadata_in_a_hole_of_the_file_takes_little_memory, scratch_setup, scratch_teardown),
        cmocka_unit_test(every_way_to_be_wrong_is_refused_with_its_reason),
        cmocka_unit_test(a_file_cut_off_at_any_byte_is_refused),
        cmocka_unit_test(a_file_with_any_byte_changed_is_opened_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
