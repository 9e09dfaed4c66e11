/* Structs that contain their size, initialised by a caller with an older header, this one, a newer one, or none at all. */
#include <string.h>

#include <warpwave.h>

#include "support/check.h"

enum { ROOM = 2048, CANARY = 0xa5 };

typedef ww_status (*init_call)(void *value, size_t struct_size);

/* Filled from ww_X_default(), so that both are compared; the pool of ..._init() is 1 x 1. */
typedef struct case_of {
    const char *name;
    init_call init;
    size_t bytes;
    unsigned char defaults[ROOM];
} case_of;

static case_of cases[32];
static size_t case_count;

#define CASE_WITH(type, value)                                                                                                 \
    do {                                                                                                                       \
        const type defaults = (value);                                                                                         \
        case_of *c = &cases[case_count++];                                                                                     \
        *c = (case_of){.name = #type, .init = type##_init, .bytes = sizeof defaults};                                          \
        memcpy(c->defaults, &defaults, sizeof defaults);                                                                       \
    } while (0)
#define CASE(type) CASE_WITH(type, type##_default())

static int make_cases(void **state)
{
    (void)state;
    CASE(ww_device_info);
    CASE(ww_memory_info);
    CASE(ww_error_info);
    CASE(ww_kernel_info);
    CASE(ww_launch);
    CASE(ww_matrix_info);
    CASE(ww_matrix_options);
    CASE(ww_array_info);
    CASE(ww_array);
    CASE(ww_gguf_info);
    CASE(ww_gguf_value);
    CASE(ww_gguf_tensor);
    CASE(ww_quant_info);
    CASE(ww_quant_product);
    CASE(ww_conv);
    CASE_WITH(ww_pool, ww_pool_default(1, 1));
    CASE(ww_collection_config);
    CASE(ww_rows);
    CASE(ww_query);
    CASE(ww_get);
    CASE(ww_search_stats);
    CASE(ww_ivf_config);
    CASE(ww_ivf_info);
    CASE(ww_calibrate_config);
    CASE(ww_collection_info);
    CASE(ww_damage_report);
    CASE(ww_results_columns);
    return 0;
}

/* Every size from the smallest to well past this library's struct: the defaults as far as they go, then zeros, then nothing. */
static void init_fills_the_callers_struct_and_not_a_byte_more(void **state)
{
    (void)state;
    assert_int_equal(case_count, 27);
    for (size_t i = 0; i < case_count; i++) {
        const case_of *c = &cases[i];
        assert_true(c->bytes + 64 < ROOM);
        for (size_t size = sizeof(size_t); size <= c->bytes + 64; size++) {
            _Alignas(16) unsigned char value[ROOM];
            memset(value, CANARY, sizeof value);
            CHECK_OK(c->init(value, size));
            size_t own;
            memcpy(&own, value, sizeof own);
            assert_int_equal(own, size);
            for (size_t b = sizeof own; b < ROOM; b++) {
                const unsigned char expected = b >= size ? CANARY : b < c->bytes ? c->defaults[b] : 0;
                if (value[b] != expected)
                    fail_msg("%s, size %zu: byte %zu is 0x%02x instead of 0x%02x", c->name, size, b, value[b], expected);
            }
        }
    }
}

static void init_refuses_an_invalid_struct(void **state)
{
    (void)state;
    for (size_t i = 0; i < case_count; i++) {
        const case_of *c = &cases[i];
        _Alignas(16) unsigned char value[ROOM];
        memset(value, CANARY, sizeof value);
        const size_t wrong[] = {0, 1, sizeof(size_t) - 1, 1 << 16, SIZE_MAX};
        for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
            CHECK_FAILS(WW_INVALID_ARGUMENT, c->init(value, wrong[w]));
            assert_non_null(strstr(ww_error_message(), c->name));
        }
        CHECK_FAILS(WW_INVALID_ARGUMENT, c->init(NULL, c->bytes));
        for (size_t b = 0; b < ROOM; b++)
            assert_int_equal(value[b], CANARY);
    }
}

static void defaults_that_are_not_zero_match_the_headers(void **state)
{
    (void)state;
    const ww_conv conv = ww_conv_default();
    assert_true(conv.stride[0] == 1 && conv.stride[1] == 1 && conv.dilation[0] == 1 && conv.dilation[1] == 1);
    assert_true(conv.groups == 1 && conv.padding[0] == 0 && conv.output_padding[1] == 0 && conv.math == WW_MATH_CANONICAL);
    const ww_pool pool = ww_pool_default(3, 2);
    assert_true(pool.kernel[0] == 3 && pool.kernel[1] == 2 && pool.stride[0] == 3 && pool.stride[1] == 2);
    assert_true(pool.padding[0] == 0 && pool.padding[1] == 0 && pool.padding_counts == 1);
}

/* Like a binding of another language: no C struct, only bytes and offsets. */
static void the_calls_accept_a_struct_made_by_init(void **state)
{
    (void)state;
    ww_device *device;
    ww_collection *collection;
    CHECK_OK(ww_device_open("cpu", &device));
    _Alignas(16) unsigned char config[ROOM];
    CHECK_OK(ww_collection_config_init(config, sizeof(ww_collection_config) + 40));
    const int32_t dim = 3;
    memcpy(config + offsetof(ww_collection_config, dim), &dim, sizeof dim);
    CHECK_OK(ww_collection_create(device, (const ww_collection_config *)config, &collection));
    _Alignas(16) unsigned char info[ROOM];
    CHECK_OK(ww_collection_info_init(info, offsetof(ww_collection_info, metric)));
    CHECK_OK(ww_collection_describe(collection, (ww_collection_info *)info));
    int32_t found;
    memcpy(&found, info + offsetof(ww_collection_info, dim), sizeof found);
    assert_int_equal(found, dim);
    ww_collection_destroy(collection);
    ww_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(init_fills_the_callers_struct_and_not_a_byte_more),
        cmocka_unit_test(init_refuses_an_invalid_struct),
        cmocka_unit_test(defaults_that_are_not_zero_match_the_headers),
        cmocka_unit_test(the_calls_accept_a_struct_made_by_init),
    };
    return cmocka_run_group_tests(tests, make_cases, NULL);
}
