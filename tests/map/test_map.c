/* Maps: the same bits on every device and for any number of threads; rows that are added, removed and changed; rows that are
 * few, equal or extreme. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/tables/hash.h"
#include "map/making.h"
#include "support/data/indexed.h"
#include "support/devices.h"

enum { DIM = 20, ROWS = 300, CENTERS = 6, STEPS = 60, THREADED_ROWS = 5000 };

static ww_map_config few_steps(void)
{
    ww_map_config config = ww_map_config_default();
    config.steps = STEPS;
    return config;
}

static ww_collection *clustered(ww_device *device, ww_metric metric, int64_t count)
{
    test_random random = {77};
    ww_collection_config config = ww_collection_config_default();
    config.name = "test";
    config.dim = DIM;
    config.metric = metric;
    float *rows = malloc((size_t)count * DIM * sizeof *rows);
    clustered_rows(&random, rows, count, DIM, CENTERS, WW_VECTOR_F32);
    ww_collection *c = collection_of(device, &config, rows, count);
    free(rows);
    return c;
}

static ww_map *map_of(ww_collection *c, const ww_map_config *config)
{
    ww_map *map = NULL;
    CHECK_OK(ww_collection_map(c, config, &map));
    return map;
}

static ww_map_info info_of(const ww_map *map)
{
    ww_map_info info = ww_map_info_default();
    CHECK_OK(ww_map_describe(map, &info));
    return info;
}

static void check_same_map(const ww_map *a, const ww_map *b)
{
    assert_int_equal(ww_map_count(a), ww_map_count(b));
    const size_t count = (size_t)ww_map_count(a);
    assert_memory_equal(ww_map_handles(a), ww_map_handles(b), count * sizeof(int64_t));
    assert_memory_equal(ww_map_points(a), ww_map_points(b), count * 2 * sizeof(float));
}

/* Returns the point of a row, or NULL if it is not on the map. */
static const float *point_of(const ww_map *map, int64_t handle)
{
    for (int64_t i = 0; i < ww_map_count(map); i++)
        if (ww_map_handles(map)[i] == handle)
            return ww_map_points(map) + 2 * i;
    return NULL;
}

/* Rows that are on both have the same place on both; returns how many these are. */
static int64_t check_same_places(const ww_map *a, const ww_map *b, int64_t but)
{
    int64_t found = 0;
    for (int64_t i = 0; i < ww_map_count(a); i++) {
        const float *other = point_of(b, ww_map_handles(a)[i]);
        if (!other || ww_map_handles(a)[i] == but)
            continue;
        assert_memory_equal(other, ww_map_points(a) + 2 * i, 2 * sizeof(float));
        found++;
    }
    return found;
}

static uint64_t hash_of(const ww_map *map)
{
    return fnv_bytes(FNV_BEGIN, ww_map_points(map), (size_t)ww_map_count(map) * 8);
}

/* ---- bits ---------------------------------------------------------------------------------------------------------------- */

static void the_bits_are_the_same_on_every_device_and_machine(void **state)
{
    static const struct {
        ww_metric metric;
        uint64_t hash; /* of the points, the same on every device */
    } cases[] = {{WW_COSINE, UINT64_C(0x6c14020c707a00e1)},
                 {WW_L2, UINT64_C(0x52946a46aa0db8be)},
                 {WW_DOT, UINT64_C(0x6c37cf281ea006b8)}};
    const ww_map_config config = few_steps();
    for (int i = 0; i < 3; i++) {
        ww_collection *c = clustered(*state, cases[i].metric, ROWS);
        ww_map *map = map_of(c, &config);
        assert_int_equal(ww_map_count(map), ROWS);
        if (hash_of(map) != cases[i].hash)
            fail_msg("metric %d: the points' hash is 0x%llx", i, (unsigned long long)hash_of(map));
        ww_map_destroy(map);
        ww_collection_destroy(c);
    }
}

static void the_bits_do_not_depend_on_threads(void **state)
{
    static const int32_t threads[] = {1, 2, 5};
    const ww_map_config config = few_steps();
    float *first = NULL;
    if (device_is_slow(*state)) /* every device uses the host's threads, and the host computes the layout */
        return;
    ww_collection *c = clustered(*state, WW_L2, THREADED_ROWS);
    for (int i = 0; i < 3; i++) {
        making m = {.job = {.collection = c, .config = &config}};
        pool *workers = NULL;
        CHECK_OK(pool_create(NULL, threads[i], &workers));
        CHECK_OK(making_begin(&m));
        m.job.threads = workers;
        CHECK_OK(map_make(&m));
        if (!first) {
            first = malloc(2 * THREADED_ROWS * sizeof *first);
            memcpy(first, m.job.x, THREADED_ROWS * sizeof *first);
            memcpy(first + THREADED_ROWS, m.job.y, THREADED_ROWS * sizeof *first);
        }
        assert_memory_equal(first, m.job.x, THREADED_ROWS * sizeof *first);
        assert_memory_equal(first + THREADED_ROWS, m.job.y, THREADED_ROWS * sizeof *first);
        making_end(&m);
        pool_destroy(workers);
    }
    free(first);
    ww_collection_destroy(c);
}

/* Is the nearest point of each row one of its 40 nearest neighbours? */
static void neighbours_are_near_each_other_on_the_map(void **state)
{
    if (device_is_slow(*state) && !test_is_long()) /* the layout is the host's */
        return;
    ww_collection *c = clustered(*state, WW_L2, ROWS);
    ww_map_config config = few_steps();
    config.steps = 500;
    ww_map *map = map_of(c, &config);
    const float *p = ww_map_points(map);
    int64_t kept = 0;
    for (int64_t i = 0; i < ROWS; i++) {
        float vector[DIM], best = INFINITY;
        int64_t nearest = -1, rows[40];
        float scores[40];
        for (int64_t j = 0; j < ROWS; j++) {
            const float dx = p[2 * i] - p[2 * j], dy = p[2 * i + 1] - p[2 * j + 1];
            if (j != i && dx * dx + dy * dy < best) {
                best = dx * dx + dy * dy;
                nearest = j;
            }
        }
        CHECK_OK(ww_collection_vector(c, i, vector));
        ww_query query = ww_query_default();
        query.queries = vector, query.query_count = 1, query.dim = DIM, query.k = 40;
        CHECK_OK(ww_collection_search(c, &query, rows, scores));
        for (int k = 0; k < 40; k++)
            kept += rows[k] == nearest;
    }
    assert_true(kept > ROWS * 9 / 10); /* 40 would be chance */
    ww_map_destroy(map);
    ww_collection_destroy(c);
}

static void another_seed_is_another_map_and_is_kept(void **state)
{
    ww_collection *c = clustered(*state, WW_L2, ROWS);
    ww_map_config config = few_steps();
    config.neighbours = 7;
    ww_map *first = map_of(c, &config);
    config.seed = 5;
    ww_map *other = map_of(c, &config), *kept = map_of(c, NULL);
    assert_int_equal(info_of(other).origin, WW_MAP_MADE);
    assert_true(hash_of(first) != hash_of(other));
    check_same_map(other, kept);
    const ww_map_info info = info_of(kept);
    assert_int_equal(info.origin, WW_MAP_KEPT);
    assert_int_equal(info.seed, 5);
    assert_int_equal(info.neighbours, 7);
    assert_int_equal(info.steps, STEPS);
    assert_true(info.kept && info.rows == ROWS && info.rows_placed == 0);
    config.remake = 1;
    ww_map *again = map_of(c, &config);
    assert_int_equal(info_of(again).origin, WW_MAP_MADE);
    check_same_map(other, again);
    CHECK_OK(ww_collection_drop_map(c));
    CHECK_OK(ww_collection_drop_map(c));
    config = few_steps();
    config.neighbours = 7;
    ww_map *dropped = map_of(c, &config);
    assert_int_equal(info_of(dropped).seed, 0);
    check_same_map(first, dropped);
    ww_map *const all[] = {first, other, kept, again, dropped};
    for (int i = 0; i < 5; i++)
        ww_map_destroy(all[i]);
    ww_collection_destroy(c);
}

static void lists_of_an_index_find_the_same_neighbours(void **state)
{
    ww_collection *c = clustered(*state, WW_L2, ROWS);
    ww_map_config config = few_steps();
    ww_map *other = NULL, *exact = map_of(c, &config);
    config.nprobe = 8;
    config.remake = 1;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_map(c, &config, &other));
    index_build(c, 8);
    other = map_of(c, &config);
    check_same_map(exact, other); /* all lists are read */
    ww_map_destroy(other);
    config.nprobe = 1;
    other = map_of(c, &config);
    assert_int_equal(ww_map_count(other), ROWS);
    ww_map_destroy(other);
    ww_map_destroy(exact);
    ww_collection_destroy(c);
}

/* ---- rows that come and go ----------------------------------------------------------------------------------------------- */

static void add(ww_collection *c, const float *vector, const char *id)
{
    ww_rows rows = ww_rows_default();
    rows.count = 1;
    rows.dim = DIM;
    rows.vectors = vector;
    rows.ids = &id;
    CHECK_OK(ww_collection_upsert(c, &rows));
}

/* The weighted mean of the places of a row's neighbours, computed once more. */
static void mean_of_neighbours(ww_collection *c, const ww_map *map, const float *vector, int64_t self, double mean[2])
{
    int64_t rows[17], handles[16];
    float scores[17], gaps[16], weights[16];
    uint32_t numbers[16];
    int32_t taken = 0;
    ww_query query = ww_query_default();
    query.queries = vector, query.query_count = 1, query.dim = DIM, query.k = 16;
    CHECK_OK(ww_collection_search(c, &query, rows, scores));
    for (int i = 0; i < 16 && taken < 15; i++) {
        int64_t handle = -1;
        CHECK_OK(ww_collection_handle(c, rows[i], &handle));
        if (handle == self)
            continue;
        handles[taken] = handle;
        numbers[taken] = (uint32_t)taken;
        gaps[taken] = fabsf(scores[i] - (taken == 0 ? scores[i] : gaps[15]));
        if (taken == 0)
            gaps[15] = scores[i]; /* the nearest's score */
        taken++;
    }
    neighbour_weights(gaps, numbers, taken, weights);
    double sum = 0.0;
    mean[0] = mean[1] = 0.0;
    for (int32_t i = 0; i < taken; i++) {
        const float *p = point_of(map, handles[i]);
        mean[0] += (double)weights[i] * (double)p[0];
        mean[1] += (double)weights[i] * (double)p[1];
        sum += (double)weights[i];
    }
    mean[0] /= sum;
    mean[1] /= sum;
}

static void new_rows_are_placed_and_the_others_stay(void **state)
{
    ww_collection *c = clustered(*state, WW_L2, ROWS);
    const ww_map_config config = few_steps();
    ww_map *before = map_of(c, &config);
    float vector[DIM];
    double mean[2];
    CHECK_OK(ww_collection_vector(c, 17, vector));
    vector[3] += 1.5f;
    add(c, vector, "new");
    ww_map *after = map_of(c, NULL);
    assert_int_equal(ww_map_count(after), ROWS + 1);
    assert_int_equal(info_of(after).origin, WW_MAP_GROWN);
    assert_int_equal(info_of(after).rows_placed, 1);
    assert_int_equal(check_same_places(before, after, -1), ROWS);
    mean_of_neighbours(c, before, vector, ROWS, mean);
    const float *placed = point_of(after, ROWS);
    assert_true(fabs((double)placed[0] - mean[0]) < 1e-4 && fabs((double)placed[1] - mean[1]) < 1e-4);
    ww_map *again = map_of(c, NULL);
    assert_int_equal(info_of(again).origin, WW_MAP_KEPT);
    assert_int_equal(info_of(again).rows_placed, 1);
    check_same_map(after, again);
    ww_map_destroy(again);
    ww_map_destroy(after);
    ww_map_destroy(before);
    ww_collection_destroy(c);
}

static void removed_rows_leave_and_replaced_ones_move(void **state)
{
    ww_collection *c = clustered(*state, WW_L2, ROWS);
    const ww_map_config config = few_steps();
    ww_map *before = map_of(c, &config);
    const char *const gone[] = {"5", "299"};
    float vector[DIM];
    CHECK_OK(ww_collection_remove(c, gone, 2));
    CHECK_OK(ww_collection_vector(c, 100, vector));
    for (int i = 0; i < DIM; i++)
        vector[i] = 90.0f - vector[i];
    add(c, vector, "298"); /* the last row: compact gives it its old number again */
    CHECK_OK(ww_collection_compact(c, NULL, NULL));
    ww_map *after = map_of(c, NULL);
    assert_int_equal(ww_map_count(after), ROWS - 2);
    assert_int_equal(info_of(after).rows_placed, 1);
    assert_null(point_of(after, 5));
    assert_null(point_of(after, 299));
    assert_int_equal(check_same_places(before, after, 298), ROWS - 3);
    assert_memory_not_equal(point_of(after, 298), point_of(before, 298), 2 * sizeof(float));
    CHECK_OK(ww_collection_clear(c));
    ww_map *empty = map_of(c, NULL);
    assert_int_equal(ww_map_count(empty), 0);
    ww_map_destroy(empty);
    ww_map_destroy(after);
    ww_map_destroy(before);
    ww_collection_destroy(c);
}

/* A cluster of only new rows: its first row has no neighbour with a place. */
static void rows_that_are_new_among_themselves_are_placed(void **state)
{
    ww_collection *c = clustered(*state, WW_L2, 40);
    const ww_map_config config = few_steps();
    ww_map *before = map_of(c, &config);
    for (int i = 0; i < 40; i++) {
        char id[16];
        float vector[DIM] = {0};
        snprintf(id, sizeof id, "far%d", i);
        vector[0] = 5000.0f + (float)i;
        add(c, vector, id);
    }
    ww_map *after = map_of(c, NULL);
    assert_int_equal(ww_map_count(after), 80);
    assert_int_equal(check_same_places(before, after, -1), 40);
    for (int64_t i = 0; i < 160; i++)
        assert_true(isfinite(ww_map_points(after)[i]));
    ww_map_destroy(after);
    ww_map_destroy(before);
    ww_collection_destroy(c);
}

/* ---- few, equal and wild rows -------------------------------------------------------------------------------------------- */

static void check_finite(const ww_map *map, int64_t count)
{
    assert_int_equal(ww_map_count(map), count);
    for (int64_t i = 0; i < 2 * count; i++)
        assert_true(isfinite(ww_map_points(map)[i]));
}

static void a_map_may_have_no_rows_or_few(void **state)
{
    for (int64_t count = 0; count <= 20; count += count < 4 ? 1 : 8) {
        ww_collection *c = clustered(*state, WW_COSINE, count);
        const ww_map_config config = few_steps();
        ww_map *map = map_of(c, &config);
        check_finite(map, count);
        for (int64_t i = 1; i < count; i++)
            assert_memory_not_equal(ww_map_points(map), ww_map_points(map) + 2 * i, 2 * sizeof(float));
        ww_map_destroy(map);
        ww_collection_destroy(c);
    }
    assert_int_equal(ww_map_count(NULL), 0);
    assert_null(ww_map_points(NULL));
    assert_null(ww_map_handles(NULL));
    ww_map_destroy(NULL);
}

static void rows_may_be_equal_or_zero(void **state)
{
    for (int value = 0; value < 2; value++) {
        float rows[100 * DIM];
        ww_collection_config how = ww_collection_config_default();
        how.dim = DIM;
        for (int i = 0; i < 100 * DIM; i++)
            rows[i] = (float)value;
        ww_collection *c = collection_of(*state, &how, rows, 100);
        const ww_map_config config = few_steps();
        ww_map *map = map_of(c, &config);
        check_finite(map, 100);
        assert_memory_not_equal(ww_map_points(map), ww_map_points(map) + 2, 2 * sizeof(float));
        ww_map_destroy(map);
        ww_collection_destroy(c);
    }
}

static void rows_may_be_wild(void **state)
{
    static const ww_metric metrics[] = {WW_COSINE, WW_L2, WW_DOT};
    for (int m = 0; m < 3; m++) {
        test_random random = {5};
        float rows[60 * DIM];
        ww_collection_config how = ww_collection_config_default();
        how.dim = DIM;
        how.metric = metrics[m];
        for (int i = 0; i < 60 * DIM; i++)
            rows[i] = random_uniform(&random) * (i % 3 == 0 ? 1e18f : i % 3 == 1 ? 1e-38f : 1.0f);
        ww_collection *c = collection_of(*state, &how, rows, 60);
        const ww_map_config config = few_steps();
        ww_map *map = map_of(c, &config);
        check_finite(map, 60);
        ww_map_destroy(map);
        ww_collection_destroy(c);
    }
}

/* ---- callers ------------------------------------------------------------------------------------------------------------- */

typedef struct watch {
    int64_t calls, stop_at, last, total;
} watch;

static int look(int64_t done, int64_t total, void *user)
{
    watch *w = user;
    assert_true(done >= w->last && done <= total);
    w->last = done;
    w->total = total;
    return ++w->calls == w->stop_at;
}

static void a_cancelled_map_changes_nothing(void **state)
{
    if (device_is_slow(*state) && !test_is_long()) /* the layout is the host's */
        return;
    ww_collection *c = clustered(*state, WW_L2, ROWS);
    ww_map_config config = few_steps();
    ww_map *before = map_of(c, &config), *map = NULL;
    watch w = {0};
    config.seed = 3;
    config.progress = look;
    config.progress_user = &w;
    for (int64_t n = 1; n < 30; n += 7) {
        w = (watch){.stop_at = n};
        CHECK_FAILS(WW_CANCELLED, ww_collection_map(c, &config, &map));
        assert_null(map);
        assert_int_equal(w.calls, n);
    }
    ww_map *after = map_of(c, NULL);
    check_same_map(before, after);
    w = (watch){0};
    map = map_of(c, &config);
    assert_true(w.calls >= STEPS && w.last == w.total);
    ww_map_destroy(map);
    ww_map_destroy(after);
    ww_map_destroy(before);
    ww_collection_destroy(c);
}

static void impossible_arguments_are_refused(void **state)
{
    ww_collection *c = clustered(*state, WW_L2, 5);
    ww_map_config config = ww_map_config_default();
    ww_map_info info = ww_map_info_default();
    ww_map *map = NULL;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_map(NULL, NULL, &map));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_map(c, NULL, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_drop_map(NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_map_describe(NULL, &info));
    config.neighbours = 1;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_map(c, &config, &map));
    config.neighbours = WW_MAP_NEIGHBOURS_MAX + 1;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_map(c, &config, &map));
    config = ww_map_config_default();
    config.steps = -1;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_map(c, &config, &map));
    config = ww_map_config_default();
    config.seed = -2;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_collection_map(c, &config, &map));
    config = ww_map_config_default();
    config.neighbours = WW_MAP_NEIGHBOURS_MAX; /* more than there are rows */
    config.steps = STEPS;
    map = map_of(c, &config);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_map_describe(map, NULL));
    assert_int_equal(info_of(map).neighbours, WW_MAP_NEIGHBOURS_MAX);
    assert_string_equal(ww_map_origin_name(WW_MAP_GROWN), "grown");
    assert_null(ww_map_origin_name((ww_map_origin)9));
    ww_map_destroy(map);
    ww_collection_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bits_are_the_same_on_every_device_and_machine),
        cmocka_unit_test(the_bits_do_not_depend_on_threads),
        cmocka_unit_test(neighbours_are_near_each_other_on_the_map),
        cmocka_unit_test(another_seed_is_another_map_and_is_kept),
        cmocka_unit_test(lists_of_an_index_find_the_same_neighbours),
        cmocka_unit_test(new_rows_are_placed_and_the_others_stay),
        cmocka_unit_test(removed_rows_leave_and_replaced_ones_move),
        cmocka_unit_test(rows_that_are_new_among_themselves_are_placed),
        cmocka_unit_test(a_map_may_have_no_rows_or_few),
        cmocka_unit_test(rows_may_be_equal_or_zero),
        cmocka_unit_test(rows_may_be_wild),
        cmocka_unit_test(a_cancelled_map_changes_nothing),
        cmocka_unit_test(impossible_arguments_are_refused),
    };
    return RUN_ON_EVERY_DEVICE("map", tests);
}
