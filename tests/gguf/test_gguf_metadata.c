/* Metadata of a GGUF file by name and type: converted exactly or refused, with the key and the stored type in the message.
 * Also, a tensor of an unknown type next to others, which can be loaded. */
#include <math.h>
#include <string.h>

#include "gguf/gguf.h"
#include "support/check.h"
#include "support/data/bytes.h"

static test_bytes b;

static void put_value(const char *key, uint32_t kind, const void *bytes, size_t size)
{
    put_key(&b, key, kind);
    put_bytes(&b, bytes, size);
}

#define PUT(key, kind, type, ...) put_value(key, kind, &(type){__VA_ARGS__}, sizeof(type))

static ww_gguf *open_values(void)
{
    ww_gguf *g = NULL;
    b.size = 0;
    put_start(&b, 3, 0, 20);
    PUT("u8", WW_GGUF_U8, uint8_t, 200);
    PUT("i8", WW_GGUF_I8, int8_t, -100);
    PUT("u16", WW_GGUF_U16, uint16_t, 60000);
    PUT("i16", WW_GGUF_I16, int16_t, -30000);
    PUT("u32", WW_GGUF_U32, uint32_t, 4000000000u);
    PUT("i32", WW_GGUF_I32, int32_t, -2000000000);
    PUT("u64", WW_GGUF_U64, uint64_t, UINT64_MAX);
    PUT("odd", WW_GGUF_U64, uint64_t, (UINT64_C(1) << 53) + 1);
    PUT("i64", WW_GGUF_I64, int64_t, INT64_MIN);
    PUT("f32", WW_GGUF_F32, float, 0.1f);
    PUT("whole", WW_GGUF_F32, float, -4096.0f);
    PUT("f64", WW_GGUF_F64, double, 1e300);
    PUT("nan", WW_GGUF_F64, double, NAN);
    PUT("yes", WW_GGUF_BOOL, uint8_t, 1);
    PUT("one", WW_GGUF_U32, uint32_t, 1);
    put_key(&b, "text", WW_GGUF_STRING);
    put_text(&b, "hello");
    put_key(&b, "empty", WW_GGUF_STRING);
    put_text(&b, "");
    put_key(&b, "nul", WW_GGUF_STRING);
    put_u64(&b, 3);
    put_bytes(&b, "a\0b", 3);
    put_key(&b, "numbers", WW_GGUF_ARRAY);
    put_u32(&b, WW_GGUF_F32);
    put_u64(&b, 3);
    put_bytes(&b, (const float[]){1.0f, -2.0f, 0.5f}, 12);
    put_key(&b, "words", WW_GGUF_ARRAY);
    put_u32(&b, WW_GGUF_STRING);
    put_u64(&b, 3);
    put_text(&b, "a");
    put_text(&b, "");
    put_text(&b, "three");
    CHECK_OK(gguf_open_bytes("m.gguf", b.data, b.size, &g));
    return g;
}

static void numbers_are_given_exactly(void **state)
{
    (void)state;
    ww_gguf *g = open_values();
    uint64_t u = 7;
    int64_t i = 7;
    double f = 7;
    int32_t flag = 7;
    CHECK_OK(ww_gguf_u64(g, "u8", &u));
    assert_int_equal(u, 200);
    CHECK_OK(ww_gguf_u64(g, "u32", &u));
    assert_int_equal(u, 4000000000u);
    CHECK_OK(ww_gguf_u64(g, "u64", &u));
    assert_true(u == UINT64_MAX);
    CHECK_OK(ww_gguf_i64(g, "i8", &i));
    assert_int_equal(i, -100);
    CHECK_OK(ww_gguf_i64(g, "i16", &i));
    assert_int_equal(i, -30000);
    CHECK_OK(ww_gguf_i64(g, "u16", &i));
    assert_int_equal(i, 60000);
    CHECK_OK(ww_gguf_i64(g, "i32", &i));
    assert_int_equal(i, -2000000000);
    CHECK_OK(ww_gguf_i64(g, "i64", &i));
    assert_true(i == INT64_MIN);
    CHECK_OK(ww_gguf_i64(g, "whole", &i));
    assert_int_equal(i, -4096);
    CHECK_OK(ww_gguf_f64(g, "f32", &f));
    assert_true(f == (double)0.1f);
    CHECK_OK(ww_gguf_f64(g, "f64", &f));
    assert_true(f == 1e300);
    CHECK_OK(ww_gguf_f64(g, "i64", &f));
    assert_true(f == -0x1p63);
    CHECK_OK(ww_gguf_f64(g, "nan", &f));
    assert_true(isnan(f));
    CHECK_OK(ww_gguf_bool(g, "yes", &flag));
    assert_int_equal(flag, 1);
    flag = 0;
    CHECK_OK(ww_gguf_bool(g, "one", &flag));
    assert_int_equal(flag, 1);
    ww_gguf_close(g);
}

/* A message names the file, the key and the stored type; the caller's variable does not change. */
static void conversions_that_change_a_value_are_refused(void **state)
{
    (void)state;
    ww_gguf *g = open_values();
    uint64_t u = 7;
    int64_t i = 7;
    double f = 7;
    int32_t flag = 7;
    const char *text = "kept";
#define REFUSED(status, reason, call)                                                                                          \
    do {                                                                                                                       \
        CHECK_FAILS(status, call);                                                                                             \
        if (!strstr(ww_error_message(), reason))                                                                               \
            fail_msg("'%s' does not say '%s'", ww_error_message(), reason);                                                    \
    } while (0)
    REFUSED(WW_OUT_OF_RANGE, "m.gguf: 'i8' is i8, -100; no u64 is equal to it", ww_gguf_u64(g, "i8", &u));
    REFUSED(WW_OUT_OF_RANGE, "'u64' is u64, 18446744073709551615; no i64", ww_gguf_i64(g, "u64", &i));
    REFUSED(WW_OUT_OF_RANGE, "'odd' is u64, 9007199254740993; no f64", ww_gguf_f64(g, "odd", &f));
    REFUSED(WW_OUT_OF_RANGE, "'u64' is u64", ww_gguf_f64(g, "u64", &f));
    REFUSED(WW_OUT_OF_RANGE, "'f32' is f32, 0.10000000149011612; no i64", ww_gguf_i64(g, "f32", &i));
    REFUSED(WW_OUT_OF_RANGE, "'f64' is f64, 1.0000000000000001e+300; no u64", ww_gguf_u64(g, "f64", &u));
    REFUSED(WW_OUT_OF_RANGE, "'nan' is f64", ww_gguf_i64(g, "nan", &i));
    REFUSED(WW_OUT_OF_RANGE, "'u8' is u8, 200; no bool", ww_gguf_bool(g, "u8", &flag));
    REFUSED(WW_UNSUPPORTED, "'text' is string; a u64 was asked for", ww_gguf_u64(g, "text", &u));
    REFUSED(WW_UNSUPPORTED, "'yes' is bool; an i64 was asked for", ww_gguf_i64(g, "yes", &i));
    REFUSED(WW_UNSUPPORTED, "'f32' is f32; a bool", ww_gguf_bool(g, "f32", &flag));
    REFUSED(WW_UNSUPPORTED, "'numbers' is an array of f32; an f64", ww_gguf_f64(g, "numbers", &f));
    REFUSED(WW_UNSUPPORTED, "'u8' is u8; a string", ww_gguf_text(g, "u8", &text, NULL));
    REFUSED(WW_OUT_OF_RANGE, "'nul' has a NUL inside", ww_gguf_text(g, "nul", &text, NULL));
    REFUSED(WW_NOT_FOUND, "there is no key 'absent'", ww_gguf_u64(g, "absent", &u));
    REFUSED(WW_INVALID_ARGUMENT, "ww_gguf_u64: key is NULL", ww_gguf_u64(g, NULL, &u));
    REFUSED(WW_INVALID_ARGUMENT, "ww_gguf_f64: the place for the value is NULL", ww_gguf_f64(g, "f64", NULL));
    REFUSED(WW_INVALID_ARGUMENT, "ww_gguf_bool: gguf is NULL", ww_gguf_bool(NULL, "yes", &flag));
    assert_true(u == 7 && i == 7 && f == 7 && flag == 7 && strcmp(text, "kept") == 0);
    ww_gguf_close(g);
}

static void texts_and_arrays_are_given(void **state)
{
    (void)state;
    ww_gguf *g = open_values();
    const char *text = NULL;
    size_t bytes = 0;
    int64_t count = 0, integers[3] = {9, 9, 9};
    double reals[3];
    ww_gguf_span words[3];
    CHECK_OK(ww_gguf_text(g, "text", &text, &bytes));
    assert_string_equal(text, "hello");
    assert_int_equal(bytes, 5);
    CHECK_OK(ww_gguf_text(g, "empty", &text, NULL));
    assert_string_equal(text, "");
    CHECK_OK(ww_gguf_text(g, "nul", &text, &bytes));
    assert_memory_equal(text, "a\0b", 4);
    CHECK_OK(ww_gguf_f64s(g, "numbers", NULL, 0, &count));
    assert_int_equal(count, 3);
    CHECK_OK(ww_gguf_f64s(g, "numbers", reals, 3, &count));
    assert_true(reals[0] == 1.0 && reals[1] == -2.0 && reals[2] == 0.5);
    REFUSED(WW_OUT_OF_RANGE, "'numbers'[2] is f32, 0.5; no i64", ww_gguf_i64s(g, "numbers", integers, 3, &count));
    assert_int_equal(integers[0], 9);
    count = 0;
    REFUSED(WW_OUT_OF_RANGE, "'numbers' has 3 elements; there is room for 2", ww_gguf_f64s(g, "numbers", reals, 2, &count));
    assert_int_equal(count, 3);
    REFUSED(WW_UNSUPPORTED, "'words' is an array of string; an array of integers", ww_gguf_i64s(g, "words", NULL, 0, &count));
    REFUSED(WW_UNSUPPORTED, "'u8' is u8; an array of strings", ww_gguf_texts(g, "u8", NULL, 0, &count));
    CHECK_OK(ww_gguf_texts(g, "words", words, 3, &count));
    assert_int_equal(words[0].bytes, 1);
    assert_int_equal(words[1].bytes, 0);
    assert_memory_equal(words[2].text, "three", 5);
    ww_gguf_close(g);
}

static void an_unknown_type_does_not_keep_the_others_from_loading(void **state)
{
    (void)state;
    ww_gguf *g = NULL;
    ww_device *device = NULL;
    ww_quant *all[3] = {NULL}, *one = NULL;
    const float x[2] = {1.5f, -2.0f};
    float back[2] = {0};
    unsigned char bytes[32];
    b.size = 0;
    put_start(&b, 3, 3, 0);
    put_tensor(&b, "a", 2, 1, 0, 0);
    put_tensor(&b, "future", 32, 1, 123456, 32);
    put_tensor(&b, "b", 2, 1, 0, 64);
    put_padding(&b, 32);
    for (int i = 0; i < 3; i++) {
        put_bytes(&b, x, sizeof x);
        put_zeros(&b, i < 2 ? 24 : 0);
    }
    CHECK_OK(gguf_open_bytes("m.gguf", b.data, b.size, &g));
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_gguf_load(g, 2, device, NULL, NULL, &one));
    CHECK_OK(ww_quant_read_f32(one, 0, 1, back));
    assert_memory_equal(back, x, sizeof x);
    ww_quant_destroy(one);
    one = NULL;
    REFUSED(WW_UNSUPPORTED, "tensor 'future' has type 123456, which this version does not know",
            ww_gguf_load(g, 1, device, NULL, NULL, &one));
    assert_null(one);
    CHECK_OK(ww_gguf_load_all(g, device, NULL, NULL, all));
    assert_true(all[0] && !all[1] && all[2]);
    CHECK_OK(ww_gguf_read(g, 1, 0, bytes, sizeof bytes));
    assert_memory_equal(bytes, x, sizeof x);
    ww_quant_destroy(all[0]);
    ww_quant_destroy(all[2]);
    ww_device_close(device);
    ww_gguf_close(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_given_exactly),
        cmocka_unit_test(conversions_that_change_a_value_are_refused),
        cmocka_unit_test(texts_and_arrays_are_given),
        cmocka_unit_test(an_unknown_type_does_not_keep_the_others_from_loading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
