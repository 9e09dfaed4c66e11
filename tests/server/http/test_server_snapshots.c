/* Snapshots over HTTP: made while writes go on, listed, sent, uploaded, recovered in one step; and who may, and what is
 * refused. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <warpwave/store.h>
#include <warpwave/vectors.h>

#include "base/files/sha256.h"
#include "server/client.h"
#include "server/state.h"
#include "snapshot/snapshot.h"
#include "support/faults/fault_counts.h"
#include "support/memory.h"

enum { ROWS = 300 };

static server *running;
static int port;

static void put_rows(int first, int count, const char *collection)
{
    char path[200];
    out body = {0};
    out_text(&body, "{\"points\":[");
    for (int i = first; i < first + count; i++)
        out_format(&body, "%s{\"id\":%d,\"vector\":[1,%d],\"payload\":{\"n\":%d}}", i > first ? "," : "", i, i, i);
    out_text(&body, "]}");
    snprintf(path, sizeof path, "/collections/%s/points", collection);
    ASK_STATUS(port, 200, "PUT", path, body.bytes);
    out_free(&body);
}

static void fill(void)
{
    ASK_STATUS(port, 200, "PUT", "/collections/docs", "{\"vectors\": {\"size\": 2, \"distance\": \"Manhattan\"}}");
    ASK_STATUS(port, 200, "PUT", "/collections/other", "{\"vectors\": {\"size\": 3, \"distance\": \"Dot\"}}");
    ASK_STATUS(port, 200, "PUT", "/collections/docs/index", "{\"field_name\": \"n\", \"field_schema\": \"integer\"}");
    put_rows(0, ROWS, "docs");
}

static int begin_with(void **state, void (*change)(server_config *config))
{
    scratch_setup(state);
    running = server_for_test(change);
    port = server_port(running);
    return 0;
}

static int begin(void **state)
{
    begin_with(state, NULL);
    fill();
    return 0;
}

static int end(void **state)
{
    server_test_end(running);
    return scratch_teardown(state);
}

static int64_t count_of(const char *collection)
{
    char path[200];
    snprintf(path, sizeof path, "/collections/%s/points/count", collection);
    json_t *answer = ASK(port, 200, "POST", path, "{}");
    const int64_t count = json_integer_value(json_object_get(json_object_get(answer, "result"), "count"));
    json_decref(answer);
    return count;
}

/* Makes a snapshot; its name. */
static const char *make_at(const char *path, char name[300])
{
    json_t *answer = ASK(port, 200, "POST", path, NULL);
    const json_t *made = json_object_get(answer, "result");
    snprintf(name, 300, "%s", json_string_value(json_object_get(made, "name")));
    assert_int_equal(json_string_length(json_object_get(made, "checksum")), 64);
    assert_true(json_integer_value(json_object_get(made, "size")) > 4096);
    assert_int_equal(json_string_length(json_object_get(made, "creation_time")), 19);
    json_decref(answer);
    return name;
}

static http_answer download(const char *folder, const char *name)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return http_ask(port, "GET", path, NULL);
}

static http_answer upload(const char *collection, const char *query, const char *bytes, size_t length)
{
    out all = {0};
    const char head[] = "--frontier\r\nContent-Disposition: form-data; name=\"snapshot\"; filename=\"x.snapshot\"\r\n"
                        "Content-Type: application/octet-stream\r\n\r\n",
               tail[] = "\r\n--frontier--\r\n";
    out_format(&all,
               "POST /collections/%s/snapshots/upload%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
               "Content-Type: multipart/form-data; boundary=frontier\r\nContent-Length: %zu\r\n\r\n%s",
               collection, query, sizeof head - 1 + length + sizeof tail - 1, head);
    out_bytes(&all, bytes, length);
    out_text(&all, tail);
    const int connection = http_connect(port);
    http_send(connection, all.bytes, all.length);
    http_answer a = http_receive(connection);
    close(connection);
    out_free(&all);
    return a;
}

static int unfinished(void)
{
    char command[SCRATCH_PATH_BYTES + 100];
    int count = -1;
    snprintf(command, sizeof command, "find '%s.snapshots'/work-* -type f 2>/dev/null | wc -l", scratch_path("served.db"));
    FILE *pipe = popen(command, "r"); /* NOLINT: a test's own command */
    assert_non_null(pipe);
    assert_int_equal(fscanf(pipe, "%d", &count), 1);
    pclose(pipe);
    return count;
}

static void *write_on(void *user)
{
    atomic_bool *go_on = user;
    for (int i = ROWS; atomic_load(go_on); i++)
        put_rows(i, 1, "docs");
    return NULL;
}

static void a_snapshot_made_during_writes_is_a_store_with_one_collection(void **state)
{
    (void)state;
    atomic_bool go_on = true;
    pthread_t writer;
    char name[300];
    assert_int_equal(pthread_create(&writer, NULL, write_on, &go_on), 0);
    for (int i = 0; i < 5; i++)
        make_at("/collections/docs/snapshots", name);
    atomic_store(&go_on, false);
    pthread_join(writer, NULL);
    json_t *answer = ASK(port, 200, "GET", "/collections/docs/snapshots", NULL);
    const json_t *list = json_object_get(answer, "result"), *last = json_array_get(list, 4);
    assert_int_equal(json_array_size(list), 5);
    assert_string_equal(json_string_value(json_object_get(last, "name")), name);
    http_answer a = download("/collections/docs/snapshots", name);
    assert_int_equal(a.status, 200);
    sha256 sum;
    char text[SHA256_TEXT];
    sha256_begin(&sum);
    sha256_add(&sum, a.body, a.length);
    sha256_end(&sum, text);
    assert_string_equal(json_string_value(json_object_get(last, "checksum")), text);
    json_decref(answer);

    ww_device *device = NULL;
    ww_store *copy = NULL;
    ww_results *names = NULL;
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_store_open(scratch_write("copy.db", a.body, a.length), device, NULL, &copy));
    CHECK_OK(ww_store_check(copy, NULL, NULL));
    CHECK_OK(ww_store_list(copy, &names));
    assert_int_equal(ww_results_count(names, 0), 2);
    assert_string_equal(ww_results_id(names, 0, 0), "docs");
    assert_string_equal(ww_results_id(names, 0, 1), NOTES_COLLECTION);
    ww_results_destroy(names);
    ww_store_close(copy);
    ww_device_close(device);
    http_free(&a);
    assert_int_equal(unfinished(), 0);
}

static void snapshots_are_deleted_and_unknown_ones_are_not_found(void **state)
{
    (void)state;
    static const char *const WRONG[] = {"..%2F..%2Fserved.db", "..", ".x.snapshot", "x.snapshot", "x", "%2Fetc%2Fpasswd"};
    char name[300], path[700];
    make_at("/collections/docs/snapshots", name);
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        snprintf(path, sizeof path, "/collections/docs/snapshots/%s", WRONG[i]);
        ASK_STATUS(port, 404, "GET", path, NULL);
        ASK_STATUS(port, 404, "DELETE", path, NULL);
        snprintf(path, sizeof path, "/snapshots/%s", WRONG[i]);
        ASK_STATUS(port, 404, "GET", path, NULL);
    }
    ASK_STATUS(port, 404, "GET", "/collections/nobody/snapshots", NULL);
    ASK_STATUS(port, 404, "POST", "/collections/nobody/snapshots", NULL);
    snprintf(path, sizeof path, "/collections/docs/snapshots/%s", name);
    ASK_STATUS(port, 200, "DELETE", path, NULL);
    ASK_STATUS(port, 404, "DELETE", path, NULL);
    json_t *answer = ASK(port, 200, "GET", "/collections/docs/snapshots", NULL);
    assert_int_equal(json_array_size(json_object_get(answer, "result")), 0);
    json_decref(answer);
}

/* Recovers from a file below the folder of snapshots. */
static int recover(const char *collection, const char *file, const char *more)
{
    out body = {0};
    char path[300];
    out_format(&body, "{\"location\": \"file://%s.snapshots/%s\"%s}", scratch_path("served.db"), file, more);
    snprintf(path, sizeof path, "/collections/%s/snapshots/recover", collection);
    http_answer a = http_ask(port, "PUT", path, body.bytes);
    const int status = a.status;
    if (status >= 500)
        print_message("%s\n", a.body);
    http_free(&a);
    out_free(&body);
    return status;
}

static void check_recovered(const char *collection)
{
    char path[300];
    assert_int_equal(count_of(collection), ROWS);
    snprintf(path, sizeof path, "/collections/%s", collection);
    json_t *answer = ASK(port, 200, "GET", path, NULL);
    const json_t *result = json_object_get(answer, "result");
    const json_t *vectors = json_object_get(json_object_get(json_object_get(result, "config"), "params"), "vectors");
    assert_string_equal(json_string_value(json_object_get(vectors, "distance")), "Manhattan");
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(json_object_get(result, "payload_schema"), "n"), "points")), ROWS);
    json_decref(answer);
}

static void a_collection_is_replaced_or_made_by_its_snapshot(void **state)
{
    (void)state;
    char name[300], file[400];
    make_at("/collections/docs/snapshots", name);
    snprintf(file, sizeof file, "collections/docs/%s", name);
    put_rows(0, 20, "docs");
    put_rows(5000, 20, "docs");
    assert_int_equal(recover("docs", file, ""), 200);
    check_recovered("docs");
    assert_int_equal(recover("new%20one", file, ", \"priority\": \"snapshot\""), 200);
    check_recovered("new%20one");
    assert_int_equal(recover("other", file, ""), 200); /* it had another dimension */
    check_recovered("other");
    put_rows(7000, 3, "other");
    assert_int_equal(count_of("other"), ROWS + 3);
    ASK_STATUS(port, 200, "DELETE", "/collections/docs", NULL);
    assert_int_equal(recover("docs", file, ""), 200); /* the snapshot outlives its collection */
    check_recovered("docs");
    assert_int_equal(unfinished(), 0);
    json_t *answer = ASK(port, 200, "GET", "/collections/docs/snapshots", NULL);
    http_answer a = download("/collections/docs/snapshots", name); /* recovering changed nothing in it */
    sha256 sum;
    char text[SHA256_TEXT];
    sha256_begin(&sum);
    sha256_add(&sum, a.body, a.length);
    sha256_end(&sum, text);
    assert_string_equal(json_string_value(json_object_get(json_array_get(json_object_get(answer, "result"), 0), "checksum")),
                        text);
    json_decref(answer);
    http_free(&a);
}

static void what_cannot_be_recovered_changes_nothing(void **state)
{
    (void)state;
    char name[300], file[400], wrong[200], damaged[SCRATCH_PATH_BYTES];
    make_at("/collections/docs/snapshots", name);
    snprintf(file, sizeof file, "collections/docs/%s", name);
    snprintf(wrong, sizeof wrong, ", \"checksum\": \"%064d\"", 0);
    put_rows(5000, 1, "docs");
    assert_int_equal(recover("docs", file, wrong), 400);
    assert_int_equal(recover("docs", "../served.db", ""), 400);
    assert_int_equal(recover("docs", "../../../../../etc/passwd", ""), 400);
    assert_int_equal(recover("docs", "collections/docs/none.snapshot", ""), 400);
    assert_int_equal(recover("docs", file, ", \"priority\": \"mine\""), 400);
    assert_int_equal(recover("warpwave.notes", file, ""), 400);
    ASK_STATUS(port, 403, "PUT", "/collections/docs/snapshots/recover", "{\"location\": \"http://169.254.169.254/x\"}");
    ASK_STATUS(port, 400, "PUT", "/collections/docs/snapshots/recover", "{\"location\": \"ftp://a/x\"}");
    ASK_STATUS(port, 400, "PUT", "/collections/docs/snapshots/recover", "{}");
    snprintf(damaged, sizeof damaged, "%s.snapshots/collections/docs/bad.snapshot", scratch_path("served.db"));
    FILE *bad = fopen(damaged, "w");
    assert_non_null(bad);
    fputs("no database at all, but long enough to be read as one", bad);
    fclose(bad);
    assert_int_equal(recover("docs", "collections/docs/bad.snapshot", ""), 400);
    assert_int_equal(count_of("docs"), ROWS + 1);
    assert_int_equal(unfinished(), 0);
}

static void a_snapshot_is_uploaded_whole_or_not_at_all(void **state)
{
    (void)state;
    char name[300], query[200];
    make_at("/collections/docs/snapshots", name);
    http_answer a = download("/collections/docs/snapshots", name);
    put_rows(5000, 1, "docs");
    http_answer u = upload("docs", "?priority=snapshot&wait=true", a.body, a.length);
    assert_int_equal(u.status, 200);
    http_free(&u);
    check_recovered("docs");
    u = upload("second", "", a.body, a.length);
    assert_int_equal(u.status, 200);
    http_free(&u);
    check_recovered("second");
    put_rows(5000, 1, "docs");
    snprintf(query, sizeof query, "?checksum=%064d", 0);
    u = upload("docs", query, a.body, a.length);
    assert_int_equal(u.status, 400);
    http_free(&u);
    u = upload("docs", "", a.body, a.length / 2);
    assert_int_equal(u.status, 400);
    http_free(&u);
    u = upload("docs", "?priority=all", a.body, a.length);
    assert_int_equal(u.status, 400);
    http_free(&u);
    ASK_STATUS(port, 415, "POST", "/collections/docs/snapshots/upload", "{}");
    const int connection = http_connect(port); /* a client that leaves in the middle */
    const char begun[] =
        "POST /collections/docs/snapshots/upload HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; "
        "boundary=frontierrontier\r\nContent-Length: 100000\r\n\r\n--frontier\r\nContent-Disposition: form-data; "
        "name=\"snapshot\"\r\n\r\nabc";
    http_send(connection, begun, sizeof begun - 1);
    for (int i = 0; i < 500 && unfinished() == 0; i++)
        usleep(10000);
    assert_int_equal(unfinished(), 1);
    close(connection);
    for (int i = 0; i < 500 && unfinished() > 0; i++)
        usleep(10000);
    assert_int_equal(unfinished(), 0);
    assert_int_equal(count_of("docs"), ROWS + 1);
    http_free(&a);
}

static void with_a_small_limit(server_config *config)
{
    config->upload_bytes = 100000;
}

static int begin_with_a_small_limit(void **state)
{
    begin_with(state, with_a_small_limit);
    fill();
    return 0;
}

static void a_large_upload_and_a_full_disk_are_refused(void **state)
{
    (void)state;
    char *bytes = calloc(1, 90000);
    http_answer a = upload("docs", "", bytes, 90000);
    assert_int_equal(a.status, 400); /* it is no store */
    http_free(&a);
    assert_int_equal(http_raw_status(port,
                                     "POST /collections/docs/snapshots/upload HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                                     "multipart/form-data; boundary=frontier\r\nContent-Length: 200000\r\n\r\n"),
                     413);
    running->config.disk_reserve_bytes = INT64_MAX / 2;
    a = upload("docs", "", bytes, 90000);
    assert_int_equal(a.status, 507);
    http_free(&a);
    ASK_STATUS(port, 507, "POST", "/collections/docs/snapshots", NULL);
    free(bytes);
    assert_int_equal(unfinished(), 0);
}

static atomic_int seen_wrong, seen;

/* Reads while the collection is replaced: all rows have the same payload, before or after. */
static void *read_on(void *user)
{
    atomic_bool *go_on = user;
    while (atomic_load(go_on)) {
        http_answer a = http_ask(port, "POST", "/collections/docs/points/query",
                                 "{\"query\": [1, 5], \"limit\": 400, \"with_payload\": true}");
        json_t *answer = json_loads(a.body, 0, NULL);
        const json_t *points = json_object_get(json_object_get(answer, "result"), "points");
        const size_t count = json_array_size(points);
        if (a.status != 200 || (count != ROWS && count != ROWS + 7)) {
            print_message("%d %zu %s\n", a.status, count, a.status == 200 ? "" : a.body);
            atomic_fetch_add(&seen_wrong, 1);
        }
        atomic_fetch_add(&seen, 1);
        json_decref(answer);
        http_free(&a);
    }
    return NULL;
}

static void readers_see_the_collection_before_or_after(void **state)
{
    (void)state;
    atomic_bool go_on = true;
    pthread_t readers[3];
    char name[300], file[400], other[300], third[400];
    make_at("/collections/docs/snapshots", name);
    snprintf(file, sizeof file, "collections/docs/%s", name);
    put_rows(5000, 7, "docs");
    make_at("/collections/docs/snapshots", other);
    snprintf(third, sizeof third, "collections/docs/%s", other);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_on, &go_on), 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal(recover("docs", i % 2 == 0 ? file : third, ""), 200);
    for (int i = 0; i < 1000 && atomic_load(&seen) < 10; i++)
        usleep(10000);
    atomic_store(&go_on, false);
    for (size_t i = 0; i < 3; i++)
        pthread_join(readers[i], NULL);
    assert_int_equal(atomic_load(&seen_wrong), 0);
    assert_true(atomic_load(&seen) > 0);
}

static void what_a_killed_server_has_left_is_removed_or_finished(void **state)
{
    (void)state;
    char name[300], path[SCRATCH_PATH_BYTES], file[400];
    make_at("/collections/docs/snapshots", name);
    snprintf(file, sizeof file, "collections/docs/%s", name);
    server_test_end(running);
    snprintf(path, sizeof path, "%s.snapshots/work-abcdef", scratch_path("served.db"));
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s.snapshots/work-abcdef/7", scratch_path("served.db"));
    fclose(fopen(path, "w"));
    /* notes of a restore that did not get as far as its transaction */
    ww_device *device = NULL;
    ww_store *store = NULL;
    ww_collection *notes = NULL;
    const char *ids[] = {"recover/docs", "recover/docs:settings/docs"},
               *payloads[] = {"{\"token\":\"0123\"}", "{\"metadata\":{\"a\":1}}"};
    const float nothing[2] = {0, 0};
    ww_rows rows = ww_rows_default();
    rows.count = 2, rows.dim = 1, rows.vectors = nothing, rows.ids = ids, rows.payloads = payloads;
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_store_open(scratch_path("served.db"), device, NULL, &store));
    CHECK_OK(ww_store_collection(store, NOTES_COLLECTION, &notes));
    CHECK_OK(ww_collection_upsert(notes, &rows));
    CHECK_OK(snapshot_finish(store));
    ww_get get = ww_get_default();
    ww_results *found = NULL;
    get.count = 2, get.ids = ids;
    CHECK_OK(ww_collection_get(notes, &get, &found));
    assert_null(ww_results_id(found, 0, 0));
    assert_null(ww_results_id(found, 0, 1));
    ww_results_destroy(found);
    /* and one that did */
    CHECK_OK(ww_collection_upsert(notes, &rows));
    CHECK_OK(ww_store_set_note(store, "docs", "warpwave.recovered", "0123"));
    ww_collection_destroy(notes);
    ww_store_close(store);
    ww_device_close(device);
    running = server_for_test(NULL);
    port = server_port(running);
    assert_int_equal(access(path, F_OK), -1);
    json_t *answer = ASK(port, 200, "GET", "/collections/docs", NULL);
    assert_non_null(
        json_object_get(json_object_get(json_object_get(json_object_get(answer, "result"), "config"), "metadata"), "a"));
    json_decref(answer);
    assert_int_equal(recover("docs", file, ""), 200);
    check_recovered("docs");
}

static void a_restore_that_runs_out_of_memory_changes_nothing(void **state)
{
    (void)state;
    char name[300], path[SCRATCH_PATH_BYTES];
    make_at("/collections/docs/snapshots", name);
    put_rows(5000, 1, "docs");
    server_test_end(running);
    snprintf(path, sizeof path, "%s.snapshots/collections/docs/%s", scratch_path("served.db"), name);
    ww_device *device = NULL;
    ww_store *store = NULL;
    ww_collection *docs = NULL;
    CHECK_OK(ww_device_open("cpu", &device));
    CHECK_OK(ww_store_open(scratch_path("served.db"), device, NULL, &store));
    CHECK_OK(ww_store_collection(store, "docs", &docs));
    const snapshot_call call = {store, device, path, NULL, NULL};
    ww_status status = WW_OUT_OF_MEMORY;
    for (int64_t n = 1; status != WW_OK; n = fault_next(n)) {
        fail_allocation_at(n);
        status = snapshot_restore(&call, NULL, "docs");
        fail_allocation_at(0);
        CHECK_OK(snapshot_finish(store));
        if (status != WW_OK)
            CHECK_FAILS(WW_OUT_OF_MEMORY, status);
        const int64_t count = ww_collection_count(docs);
        assert_true(count == ROWS || (status != WW_OK && count == ROWS + 1));
    }
    assert_int_equal(ww_collection_count(docs), ROWS);
    ww_collection_destroy(docs);
    CHECK_OK(ww_store_check(store, NULL, NULL));
    ww_store_close(store);
    ww_device_close(device);
    running = server_for_test(NULL);
    port = server_port(running);
    check_recovered("docs");
}

static void with_keys(server_config *config)
{
    static char keys[SCRATCH_PATH_BYTES], readers[SCRATCH_PATH_BYTES];
    snprintf(keys, sizeof keys, "%s", scratch_write("keys", "secret\n", 7));
    snprintf(readers, sizeof readers, "%s", scratch_write("readers", "reader\n", 7));
    config->key_file = keys;
    config->read_only_key_file = readers;
}

static int begin_with_keys(void **state)
{
    return begin_with(state, with_keys);
}

static void a_key_that_may_only_read_gets_no_snapshot(void **state)
{
    (void)state;
    static const char *const REQUESTS[] = {"GET /snapshots",
                                           "POST /snapshots",
                                           "GET /snapshots/x.snapshot",
                                           "GET /collections/docs/snapshots",
                                           "POST /collections/docs/snapshots",
                                           "GET /collections/docs/snapshots/x.snapshot",
                                           "DELETE /collections/docs/snapshots/x.snapshot",
                                           "PUT /collections/docs/snapshots/recover",
                                           "POST /collections/docs/snapshots/upload"};
    for (size_t i = 0; i < sizeof REQUESTS / sizeof *REQUESTS; i++) {
        char text[400];
        snprintf(text, sizeof text, "%s HTTP/1.1\r\nHost: localhost\r\napi-key: reader\r\nContent-Length: 0\r\n\r\n",
                 REQUESTS[i]);
        assert_int_equal(http_raw_status(port, text), 403);
    }
    assert_int_equal(http_raw_status(port, "GET /snapshots HTTP/1.1\r\nHost: localhost\r\napi-key: secret\r\n\r\n"), 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_snapshot_made_during_writes_is_a_store_with_one_collection, begin, end),
        cmocka_unit_test_setup_teardown(snapshots_are_deleted_and_unknown_ones_are_not_found, begin, end),
        cmocka_unit_test_setup_teardown(a_collection_is_replaced_or_made_by_its_snapshot, begin, end),
        cmocka_unit_test_setup_teardown(what_cannot_be_recovered_changes_nothing, begin, end),
        cmocka_unit_test_setup_teardown(a_snapshot_is_uploaded_whole_or_not_at_all, begin, end),
        cmocka_unit_test_setup_teardown(a_large_upload_and_a_full_disk_are_refused, begin_with_a_small_limit, end),
        cmocka_unit_test_setup_teardown(readers_see_the_collection_before_or_after, begin, end),
        cmocka_unit_test_setup_teardown(what_a_killed_server_has_left_is_removed_or_finished, begin, end),
        cmocka_unit_test_setup_teardown(a_restore_that_runs_out_of_memory_changes_nothing, begin, end),
        cmocka_unit_test_setup_teardown(a_key_that_may_only_read_gets_no_snapshot, begin_with_keys, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
