/* Memory and a log that the program provides. */
#include <stdlib.h>
#include <string.h>

#include <warpwave/hooks.h>
#include <warpwave/vectors.h>

#include "support/check.h"

typedef struct counts {
    long allocated, released, failed;
    ww_status status;
    char message[256];
    bool refuse;
} counts;

static void *allocate(size_t bytes, size_t alignment, void *user)
{
    counts *c = user;
    if (c->refuse)
        return NULL;
    c->allocated++;
    return alignment > sizeof(void *) ? aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment)
                                      : malloc(bytes);
}

static void *resize(void *block, size_t bytes, void *user)
{
    counts *c = user;
    if (c->refuse)
        return NULL;
    c->allocated += block == NULL;
    return realloc(block, bytes);
}

static void release(void *block, void *user)
{
    counts *c = user;
    c->released++;
    free(block);
}

static void failed(ww_status status, const char *message, void *user)
{
    counts *c = user;
    c->failed++;
    c->status = status;
    strncpy(c->message, message, sizeof c->message - 1);
}

static ww_status work(void)
{
    static const float numbers[] = {1, 0, 0, 1};
    ww_device *device = NULL;
    ww_collection *collection = NULL;
    ww_collection_config config = ww_collection_config_default();
    ww_rows rows = ww_rows_default();
    config.dim = rows.dim = 2;
    rows.count = 2, rows.vectors = numbers;
    ww_status status = ww_device_open("cpu", &device);
    if (status == WW_OK)
        status = ww_collection_create(device, &config, &collection);
    if (status == WW_OK)
        status = ww_collection_add(collection, &rows);
    ww_collection_destroy(collection);
    ww_device_close(device);
    return status;
}

static void host_memory_comes_from_the_program(void **state)
{
    (void)state;
    counts c = {0};
    ww_hooks hooks = ww_hooks_default();
    hooks.user = &c, hooks.allocate = allocate, hooks.resize = resize, hooks.release = release;
    CHECK_OK(ww_set_hooks(&hooks));
    CHECK_OK(work());
    assert_true(c.allocated > 5);
    assert_int_equal(c.allocated, c.released);
    c.refuse = true;
    CHECK_FAILS(WW_OUT_OF_MEMORY, work());
    c.refuse = false;
    CHECK_OK(ww_set_hooks(NULL));
    const long before = c.allocated;
    CHECK_OK(work());
    assert_int_equal(c.allocated, before);
}

static void memory_hooks_do_not_change_while_memory_is_held(void **state)
{
    (void)state;
    counts c = {0};
    ww_device *device = NULL;
    ww_hooks hooks = ww_hooks_default();
    hooks.user = &c, hooks.allocate = allocate, hooks.resize = resize;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_set_hooks(&hooks));
    hooks.release = release;
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_FAILS(WW_BUSY, ww_set_hooks(&hooks));
    ww_device_close(device);
    CHECK_OK(ww_set_hooks(&hooks));
    CHECK_OK(ww_set_hooks(NULL));
}

static void the_log_hears_of_failures(void **state)
{
    (void)state;
    counts c = {0};
    ww_device *device = NULL;
    ww_hooks hooks = ww_hooks_default();
    hooks.user = &c, hooks.failed = failed;
    CHECK_OK(ww_set_hooks(&hooks));
    CHECK_FAILS(WW_NO_DEVICE, ww_device_open("nothing:7", &device));
    assert_true(c.failed > 0);
    assert_int_equal(c.status, WW_NO_DEVICE);
    assert_string_equal(c.message, ww_error_message());
    CHECK_OK(ww_set_hooks(NULL));
    c.failed = 0;
    CHECK_FAILS(WW_NO_DEVICE, ww_device_open("nothing:7", &device));
    assert_int_equal(c.failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_memory_comes_from_the_program),
        cmocka_unit_test(memory_hooks_do_not_change_while_memory_is_held),
        cmocka_unit_test(the_log_hears_of_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
