/* A full disk and a lost device: requests that need them fail with a message, the others are answered, and no acknowledged
 * write is lost. */
#include <string.h>
#include <unistd.h>

#include "emulated/emulated.h"
#include "emulated/parts.h"
#include "gpu/backend.h"
#include "server/client.h"
#include "store/faulty_vfs.h"
#include "support/faults/faulty_driver.h"

static server *running;
static ww_device *device;
static int port;

static int begin_with(void **state, void (*change)(server_config *config))
{
    scratch_setup(state);
    running = server_for_test(change);
    port = server_port(running);
    ASK_STATUS(port, 200, "PUT", "/collections/docs", "{\"vectors\": {\"size\": 2, \"distance\": \"Dot\"}}");
    ASK_STATUS(port, 200, "PUT", "/collections/docs/points", "{\"points\": [{\"id\": 1, \"vector\": [1, 2]}]}");
    return 0;
}

static int begin(void **state)
{
    return begin_with(state, NULL);
}

static int end(void **state)
{
    server_test_end(running);
    return scratch_teardown(state);
}

static void check_count(int expected)
{
    json_t *answer = ASK(port, 200, "POST", "/collections/docs/points/count", "{}");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(answer, "result"), "count")), expected);
    json_decref(answer);
}

static http_answer upsert(void)
{
    return http_ask(port, "PUT", "/collections/docs/points", "{\"points\": [{\"id\": 2, \"vector\": [2, 1]}]}");
}

static http_answer search(void)
{
    return http_ask(port, "POST", "/collections/docs/points/query", "{\"query\": [1, 2]}");
}

static void check_status(http_answer a, int expected)
{
    if (a.status != expected)
        fail_msg("status %d, not %d: %s", a.status, expected, a.body ? a.body : "");
    http_free(&a);
}

/* Waits until the server has its reserve; ctest ends the test if that never happens. */
static void wait_for_reserve(const char *path)
{
    while (access(path, F_OK) != 0)
        usleep(10000);
}

static void a_full_disk_permits_deleting(void **state)
{
    (void)state;
    static const char *const requests[][3] = {
        {"POST", "/collections/docs/points/payload/clear", "{\"points\": [1]}"},
        {"POST", "/collections/docs/points/delete", "{\"points\": [1]}"},
        {"DELETE", "/collections/docs", NULL},
    };
    const char *reserve = scratch_path("served.db-reserve");
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        wait_for_reserve(reserve);
        vfs_arm(VFS_FULL_ONCE, 1);
        ASK_STATUS(port, 200, requests[i][0], requests[i][1], requests[i][2]);
        assert_true(vfs_disarm()); /* it was refused once */
    }
    ASK_STATUS(port, 404, "POST", "/collections/docs/points/count", "{}");
    wait_for_reserve(reserve);
    ASK_STATUS(port, 200, "PUT", "/collections/docs", "{\"vectors\": {\"size\": 2, \"distance\": \"Dot\"}}");
    vfs_arm(VFS_FULL_ONCE, 1);
    check_status(upsert(), 507); /* the reserve is not for what needs more room */
    assert_true(vfs_disarm());
    assert_int_equal(access(reserve, F_OK), 0);
}

static void a_full_disk_refuses_writes_only(void **state)
{
    (void)state;
    vfs_arm(VFS_STAYS_FULL, 1);
    http_answer a = upsert();
    assert_int_equal(a.status, 507);
    assert_non_null(strstr(a.body, "no space left"));
    http_free(&a);
    ASK_STATUS(port, 507, "PUT", "/collections/more", "{\"vectors\": {\"size\": 2, \"distance\": \"Dot\"}}");
    const int entries = scratch_entries();
    ASK_STATUS(port, 507, "POST", "/warpwave/backup", NULL);
    assert_int_equal(scratch_entries(), entries); /* nothing of the copy is left */
    ASK_STATUS(port, 507, "DELETE", "/collections/docs", NULL);
    check_status(search(), 200);
    check_count(1);
    assert_true(vfs_disarm());
    check_status(upsert(), 200);
    check_count(2);
}

static void on_faulty_device(server_config *config)
{
    faulty_arm(&emulated_driver, 0, 0, NULL);
    CHECK_OK(gpu_open(&backend_emulator, &faulty_driver, 0, &device));
    config->device = device;
}

static int begin_on_faulty_device(void **state)
{
    return begin_with(state, on_faulty_device);
}

static int end_on_faulty_device(void **state)
{
    server_test_end(running);
    faulty_arm(&emulated_driver, 0, 0, NULL);
    ww_device_close(device);
    running = server_for_test(NULL); /* the same store on another device */
    port = server_port(running);
    check_count(2);
    return end(state);
}

static void a_lost_device_only_fails_requests_that_need_it(void **state)
{
    (void)state;
    check_status(search(), 200);
    faulty_arm(&emulated_driver, 1, EMULATED_LAUNCH_FAILED, NULL);
    check_status(search(), 500);
    check_status(upsert(), 200); /* the point is in the store, which needs no device */
    check_status(search(), 500);
    check_count(2); /* rows are counted in the store */
    ASK_STATUS(port, 200, "GET", "/collections", NULL);
    check_status(http_ask(port, "GET", "/readyz", NULL), 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_full_disk_permits_deleting, begin, end),
        cmocka_unit_test_setup_teardown(a_full_disk_refuses_writes_only, begin, end),
        cmocka_unit_test_setup_teardown(a_lost_device_only_fails_requests_that_need_it, begin_on_faulty_device,
                                        end_on_faulty_device),
    };
    vfs_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
