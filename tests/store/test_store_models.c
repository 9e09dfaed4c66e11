/* The model that made the vectors of a collection: recorded with it; another one is refused. */
#include <string.h>

#include "store/store_support.h"
#include "support/check.h"
#include "support/faults/fault_counts.h"
#include "support/memory.h"
#include "support/scratch.h"

static ww_device *device;
static ww_store *store;

static ww_store_model a_model(const char *name, const char *fingerprint)
{
    ww_store_model m = ww_store_model_default();
    snprintf(m.name, sizeof m.name, "%s", name);
    snprintf(m.fingerprint, sizeof m.fingerprint, "%s", fingerprint);
    return m;
}

static int setup(void **state)
{
    ww_collection_config config = ww_collection_config_default();
    scratch_setup(state);
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_store_open(scratch_path("models.db"), device, NULL, &store));
    config.name = "docs";
    config.dim = 4;
    CHECK_OK(ww_store_create(store, &config, NULL));
    return 0;
}

static int teardown(void **state)
{
    ww_store_close(store);
    ww_device_close(device);
    return scratch_teardown(state);
}

static void a_model_is_kept_and_another_refused(void **state)
{
    (void)state;
    ww_store_model first = a_model("mini'lm", "0011"), other = a_model("other", "2233"), found = ww_store_model_default();
    CHECK_FAILS(WW_NOT_FOUND, ww_store_get_model(store, "docs", &found));
    CHECK_OK(ww_store_set_model(store, "docs", &first));
    CHECK_OK(ww_store_get_model(store, "DOCS", &found));
    assert_string_equal(found.name, "mini'lm");
    assert_string_equal(found.fingerprint, "0011");
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_set_model(store, "docs", &other));
    assert_non_null(strstr(ww_error_message(), "'mini'lm'"));
    snprintf(first.path, sizeof first.path, "/elsewhere"); /* it has moved */
    CHECK_OK(ww_store_set_model(store, "docs", &first));
    ww_store_close(store);
    store = NULL;
    CHECK_OK(ww_store_open(scratch_path("models.db"), device, NULL, &store));
    CHECK_OK(ww_store_get_model(store, "docs", &found));
    assert_string_equal(found.path, "/elsewhere");
    CHECK_OK(ww_store_check(store, NULL, NULL));
}

static void another_collection_of_the_name_knows_no_model(void **state)
{
    (void)state;
    ww_collection_config config = ww_collection_config_default();
    ww_store_model other = a_model("other", "2233"), found = ww_store_model_default();
    CHECK_OK(ww_store_drop(store, "docs"));
    CHECK_FAILS(WW_NOT_FOUND, ww_store_get_model(store, "docs", &found));
    config.name = "docs";
    config.dim = 4;
    CHECK_OK(ww_store_create(store, &config, NULL));
    CHECK_FAILS(WW_NOT_FOUND, ww_store_get_model(store, "docs", &found));
    CHECK_OK(ww_store_set_model(store, "docs", &other));
}

static void nonsensical_arguments_are_refused(void **state)
{
    (void)state;
    ww_store_model none = a_model("x", ""), full = a_model("x", "1"), found = ww_store_model_default();
    ww_store *reading = NULL;
    ww_store_config config = ww_store_config_default();
    memset(full.name, 'x', sizeof full.name);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_set_model(store, "docs", &none));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_set_model(store, "docs", &full));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_set_model(store, "docs", NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_set_model(store, NULL, &none));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_set_model(NULL, "docs", &none));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_get_model(store, "docs", NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_get_model(NULL, "docs", &found));
    none = a_model("x", "1");
    CHECK_FAILS(WW_NOT_FOUND, ww_store_set_model(store, "nobody", &none));
    config.read_only = 1;
    CHECK_OK(ww_store_open(scratch_path("models.db"), device, &config, &reading));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_store_set_model(reading, "docs", &none));
    ww_store_close(reading);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    ww_store_model m = a_model("other", "2233"), found = ww_store_model_default();
    const int64_t held = blocks_held();
    for (int64_t n = 1;; n++) {
        fail_allocation_at(n);
        ww_status status = ww_store_set_model(store, "docs", &m);
        if (status == WW_OK)
            status = ww_store_get_model(store, "docs", &found);
        fail_allocation_at(0);
        assert_int_equal(blocks_held(), held);
        if (status == WW_OK) {
            fault_count("allocation", (long)n - 1);
            break;
        }
        assert_int_equal(status, WW_OUT_OF_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_kept_and_another_refused),
        cmocka_unit_test(another_collection_of_the_name_knows_no_model),
        cmocka_unit_test(nonsensical_arguments_are_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
