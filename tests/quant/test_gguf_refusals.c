/* GGUF files that are wrong (support/data/wrong_gguf.h): refused with the offset and the reason, nothing held, no crash. And a
 * small good file cut off at every byte.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "gguf/gguf.h"
#include "support/check.h"
#include "support/data/bytes.h"
#include "support/data/wrong_gguf.h"

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

/* The bytes stand alone in a block of their size, so that the address sanitizer sees one too many. */
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
        const int64_t held = memory_blocks_held();
        b.size = 0;
        wrong->make(&b);
        const ww_status status = open_copy(b.data, b.size, &g);
        if (status != wrong->status || g)
            fail_msg("%s: %s, not %s: %s", wrong->name, ww_status_name(status), ww_status_name(wrong->status),
                     ww_error_message());
        if (!strstr(ww_error_message(), wrong->reason) || !strstr(ww_error_message(), "test.gguf: offset "))
            fail_msg("%s: '%s' does not say '%s'", wrong->name, ww_error_message(), wrong->reason);
        assert_int_equal(memory_blocks_held(), held);
    }
}

static void a_file_cut_off_at_any_byte_is_refused(void **state)
{
    (void)state;
    static test_bytes b;
    ww_gguf *g = NULL;
    b.size = 0;
    good(&b);
    const int64_t held = memory_blocks_held();
    CHECK_OK(open_copy(b.data, b.size, &g));
    for (size_t size = 0; size < b.size; size++) {
        CHECK_FAILS(WW_CORRUPT_FILE, open_copy(b.data, size, &g));
        assert_non_null(strstr(ww_error_message(), "offset "));
    }
    assert_int_equal(memory_blocks_held(), held);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_to_be_wrong_is_refused_with_its_reason),
        cmocka_unit_test(a_file_cut_off_at_any_byte_is_refused),
        cmocka_unit_test(a_file_with_any_byte_changed_is_opened_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
