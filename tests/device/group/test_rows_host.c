/* Rows on the host, codes on the device: the same bits as ever, by less memory of the device. */
#include <stdlib.h>
#include <string.h>

#include "support/collections.h"
#include "support/devices.h"
#include "support/pretend/pretend.h"
#include "vectors/collection.h"

enum { DIM = 70, ROWS = 900, K = 9 };

static ww_status create(ww_device *device, ww_vector_type type, ww_row_place place, ww_collection **c)
{
    ww_collection_config config = ww_collection_config_default();
    config.name = "far";
    config.dim = DIM;
    config.metric = WW_COSINE;
    config.type = type;
    config.rows = place;
    return ww_collection_create(device, &config, c);
}

static ww_collection *make(ww_device *device, ww_vector_type type, ww_row_place place)
{
    test_random random = {12};
    ww_collection *c = NULL;
    CHECK_OK(create(device, type, place, &c));
    collection_fill(c, &random, ROWS / 2, DIM, "r", 0);
    collection_fill(c, &random, ROWS / 2, DIM, "r", ROWS / 2);
    return c;
}

static ww_collection_info describe(ww_collection *c)
{
    ww_collection_info info = ww_collection_info_default();
    CHECK_OK(ww_collection_describe(c, &info));
    return info;
}

static void the_bits_are_the_same_and_the_device_holds_less(void **state)
{
    static const ww_vector_type types[] = {WW_VECTOR_F32, WW_VECTOR_F16, WW_VECTOR_BF16};
    const backend *api = ((ww_device *)*state)->backend;
    const bool cpu = api->on_host, group = api->member_id != NULL;
    for (size_t t = 0; t < 3; t++) {
        ww_collection *near = make(*state, types[t], WW_ROWS_DEVICE), *far = make(*state, types[t], WW_ROWS_HOST);
        snapshot a = snapshot_take(near), b = snapshot_take(far);
        assert_true(snapshot_equal_but_figures(&a, &b));
        const ww_collection_info here = describe(near), there = describe(far);
        assert_int_equal(here.rows, WW_ROWS_DEVICE);
        assert_int_equal(there.rows, WW_ROWS_HOST);
        assert_int_equal(here.bytes_rows_host, 0);
        assert_int_equal(here.bytes_rows, there.bytes_rows + there.bytes_rows_host);
        assert_int_equal(here.bytes_screen, there.bytes_screen);
        const int64_t all = there.rows_capacity * 128 * (types[t] == WW_VECTOR_F32 ? 4 : 2);
        if (group) /* a CPU among its members has them in its own memory */
            assert_true(there.bytes_rows_host > 0 && there.bytes_rows_host <= all);
        else
            assert_int_equal(there.bytes_rows_host, cpu ? 0 : all);
        snapshot_free(&a);
        snapshot_free(&b);
        ww_collection_destroy(near);
        ww_collection_destroy(far);
    }
}

static void check_same(ww_collection *near, ww_collection *far, const float *queries, int64_t count)
{
    int64_t rows[2][20 * K];
    float scores[2][20 * K];
    ww_query search = ww_query_default();
    search.queries = queries;
    search.query_count = count;
    search.dim = DIM;
    search.k = K;
    CHECK_OK(ww_collection_search(near, &search, rows[0], scores[0]));
    CHECK_OK(ww_collection_search(far, &search, rows[1], scores[1]));
    assert_memory_equal(rows[0], rows[1], (size_t)count * K * sizeof(int64_t));
    assert_memory_equal(scores[0], scores[1], (size_t)count * K * sizeof(float));
}

/* One query, a few, and many; with the screen, if there is one, and without it. */
static void every_shape_of_search_is_right(void **state)
{
    ww_device *device = *state;
    test_random random = {13};
    float queries[20 * DIM];
    random_normals(&random, queries, 20 * DIM);
    const device_tuning before = device->tuning;
    for (int i = 0; i < 3; i++) {
        pretend_screen(device, i == 1);
        device->tuning.screen = i == 2 ? TUNING_NEVER : device->tuning.screen;
        for (ww_vector_type type = WW_VECTOR_F32; type <= WW_VECTOR_F16; type++) {
            ww_collection *near = make(device, type, WW_ROWS_DEVICE), *far = make(device, type, WW_ROWS_HOST);
            check_same(near, far, queries, 1);
            check_same(near, far, queries, 3);
            check_same(near, far, queries, 20);
            ww_collection_destroy(near);
            ww_collection_destroy(far);
        }
    }
    pretend_screen(device, false);
    device->tuning = before;
}

/* If rows are on the host, a search with codes uses them, even if it would not with rows on the device: also one query of
 * f16. */
static void a_search_reads_codes_and_not_all_rows(void **state)
{
    ww_device *device = *state;
    if (device->backend->on_host || device->backend->member_id)
        return;
    ww_collection *c = make(device, WW_VECTOR_F16, WW_ROWS_HOST);
    static const float query[DIM] = {1, 2};
    int64_t rows[K];
    float scores[K];
    ww_search_stats stats = ww_search_stats_default();
    ww_query search = ww_query_default();
    search.queries = query;
    search.query_count = 1;
    search.dim = DIM;
    search.k = K;
    search.stats = &stats;
    CHECK_OK(ww_collection_search(c, &search, rows, scores));
    assert_int_equal(stats.rows_screened, ROWS);
    assert_true(stats.rows_scored < ROWS);
    ww_collection_destroy(c);
}

static void writes_moves_compact_and_check_work(void **state)
{
    ww_device *cpu = NULL;
    CHECK_OK(ww_device_open("cpu", &cpu));
    ww_collection *c = make(*state, WW_VECTOR_F16, WW_ROWS_HOST), *model = make(cpu, WW_VECTOR_F16, WW_ROWS_DEVICE);
    ww_collection *const both[2] = {c, model};
    for (int i = 0; i < 2; i++) {
        static const char *const gone[] = {"r3", "r64", "r700"};
        test_random random = {14};
        CHECK_OK(ww_collection_remove(both[i], gone, 3));
        test_rows rows = test_rows_make(&random, 40, DIM, "r", 100);
        CHECK_OK(ww_collection_upsert(both[i], &rows.rows));
        test_rows_free(&rows);
        CHECK_OK(ww_collection_compact(both[i], NULL, NULL));
    }
    CHECK_OK(ww_collection_check(c, NULL, NULL, NULL));
    snapshot a = snapshot_take(c), b = snapshot_take(model);
    assert_true(snapshot_equal_but_figures(&a, &b));
    CHECK_OK(ww_collection_move(c, cpu));
    assert_int_equal(describe(c).bytes_rows_host, 0);
    CHECK_OK(ww_collection_move(c, *state));
    snapshot back = snapshot_take(c);
    assert_true(snapshot_equal_but_figures(&a, &back));
    CHECK_OK(ww_collection_check(c, NULL, NULL, NULL));
    snapshot_free(&a);
    snapshot_free(&b);
    snapshot_free(&back);
    ww_collection_destroy(c);
    ww_collection_destroy(model);
    ww_device_close(cpu);
}

static void damage_to_rows_on_the_host_is_found(void **state)
{
    ww_device *device = *state;
    ww_collection *c = make(device, WW_VECTOR_F32, WW_ROWS_HOST);
    const segment *part = &c->store.segments[0];
    if (!part->rows_on_host) {
        ww_collection_destroy(c);
        return;
    }
    float *numbers = part->rows.data;
    const float before = numbers[5 * 128]; /* any element of row 5 */
    numbers[5 * 128] = before + 1;
    ww_damage_report report = ww_damage_report_default();
    CHECK_FAILS(WW_DAMAGED, ww_collection_check(c, &report, NULL, NULL));
    assert_int_equal(report.first_row, 5);
    numbers[5 * 128] = before;
    CHECK_OK(ww_collection_check(c, NULL, NULL, NULL));
    ww_collection_destroy(c);
}

static void tensors_that_were_not_coded_on_the_device_are_refused(void **state)
{
    ww_collection *c = NULL;
    CHECK_FAILS(WW_INVALID_ARGUMENT, create(*state, WW_VECTOR_I8, WW_ROWS_HOST, &c));
    assert_non_null(strstr(ww_error_message(), "their own codes"));
    CHECK_FAILS(WW_INVALID_ARGUMENT, create(*state, WW_VECTOR_F32, (ww_row_place)7, &c));
    ww_collection_config config = ww_collection_config_default();
    config.dim = DIM;
    config.screen = WW_SCREEN_NONE;
    config.rows = WW_ROWS_HOST;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_create(*state, &config, &c));
    assert_non_null(strstr(ww_error_message(), "screen"));
    assert_null(c);
    assert_string_equal(ww_row_place_name(WW_ROWS_HOST), "host");
    assert_string_equal(ww_row_place_name(WW_ROWS_DEVICE), "device");
    assert_null(ww_row_place_name((ww_row_place)2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bits_are_the_same_and_the_device_holds_less),
        cmocka_unit_test(every_shape_of_search_is_right),
        cmocka_unit_test(a_search_reads_codes_and_not_all_rows),
        cmocka_unit_test(writes_moves_compact_and_check_work),
        cmocka_unit_test(damage_to_rows_on_the_host_is_found),
        cmocka_unit_test(tensors_that_were_not_coded_on_the_device_are_refused),
    };
    return RUN_ON_EVERY_DEVICE("rows on the host", tests);
}
