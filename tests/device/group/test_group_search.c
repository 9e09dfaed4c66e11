/* The same bits from any number of members: searches and range searches of rows full of ties and duplicates, compared with a
 * single CPU; statistics, progress, and all other calls of a collection, on a group. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/group/group.h"
#include "support/collections.h"
#include "support/devices.h"
#include "support/pretend/pretend.h"

enum { DIM = 20, QUERIES = 21, K = 12 };

/* Opens a group whose members are of alternating kinds: each kind that the build has, and those that the environment names,
 * such as the stand-in for ROCm. */
static ww_device *open_members(int32_t members)
{
    static const char *const kinds[] = {"cpu", "emulator:32", "emulator:64"};
    const char *named = getenv("WARPWAVE_TEST_DEVICES");
    char name[1024] = "", list[128] = "", *rest = NULL, *others[4] = {NULL};
    int32_t other_count = 0;
    ww_device *device = NULL;
    snprintf(list, sizeof list, "%s", named && strstr(named, "rocm") ? named : "");
    for (char *one = strtok_r(list, ",", &rest); one && other_count < 4; one = strtok_r(NULL, ",", &rest))
        others[other_count++] = one;
    for (int32_t m = 0; m < members; m++) {
        const int32_t kind = m % (3 + other_count);
        strcat(name, m > 0 ? "+" : "");
        strcat(name, kind < 3 ? kinds[kind] : others[kind - 3]);
    }
    CHECK_OK(ww_device_open(name, &device));
    device->tuning.group_even = device->tuning.group_apart = true;
    return device;
}

/* Small integers, every fifth row a copy of another: many equal scores, most of them on different members. */
static void fill_numbers(test_random *random, float *numbers, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++)
        for (int32_t d = 0; d < DIM; d++)
            numbers[i * DIM + d] = i % 5 == 4 ? numbers[(i - 4) / 2 * DIM + d] : (float)((int32_t)random_below(random, 5) - 2);
}

typedef struct answers {
    int64_t rows[QUERIES * K];
    float scores[QUERIES * K];
    ww_results *range;
} answers;

typedef struct setting {
    ww_metric metric;
    ww_vector_type type;
    int64_t rows;
    bool masked;
    ww_row_place place;
} setting;

static ww_collection *fill(ww_device *device, const setting *s)
{
    test_random random = {(uint64_t)s->rows};
    ww_collection *c = NULL;
    ww_collection_config config = ww_collection_config_default();
    config.name = "ties";
    config.dim = DIM;
    config.metric = s->metric;
    config.type = s->type;
    config.rows = s->place;
    CHECK_OK(ww_collection_create(device, &config, &c));
    float *numbers = malloc((size_t)s->rows * DIM * sizeof *numbers);
    fill_numbers(&random, numbers, s->rows);
    ww_rows rows = ww_rows_default();
    rows.dim = DIM;
    const int64_t batches[] = {s->rows / 2, s->rows / 3, s->rows - s->rows / 2 - s->rows / 3};
    int64_t done = 0;
    for (int b = 0; b < 3; b++) {
        rows.count = batches[b];
        rows.vectors = numbers + done * DIM;
        CHECK_OK(ww_collection_add(c, &rows));
        done += batches[b];
    }
    for (int64_t i = 1; i < s->rows; i += 17) {
        char text[32];
        const char *id = text;
        snprintf(text, sizeof text, "%lld", (long long)i);
        CHECK_OK(ww_collection_remove(c, &id, 1));
    }
    free(numbers);
    return c;
}

static void ask(ww_collection *c, const setting *s, answers *found)
{
    test_random random = {77};
    float queries[QUERIES * DIM];
    fill_numbers(&random, queries, QUERIES);
    uint64_t *mask = malloc((size_t)(s->rows / 64 + 1) * sizeof *mask);
    for (int64_t i = 0; i <= s->rows / 64; i++)
        mask[i] = random_bits(&random);
    ww_query search = ww_query_default();
    search.queries = queries;
    search.query_count = QUERIES;
    search.dim = DIM;
    search.k = K;
    search.mask = s->masked ? mask : NULL;
    search.mask_rows = s->masked ? s->rows - 3 : 0;
    CHECK_OK(ww_collection_search(c, &search, found->rows, found->scores));
    ww_query range = ww_query_default();
    range.mode = WW_QUERY_RANGE;
    range.queries = queries;
    range.query_count = QUERIES;
    range.dim = DIM;
    range.bound = s->metric == WW_L2 ? 5.5f : s->metric == WW_DOT ? 10.0f : 0.3f;
    range.limit = 40;
    range.mask = search.mask;
    range.mask_rows = search.mask_rows;
    CHECK_OK(ww_collection_query(c, &range, &found->range));
    free(mask);
}

static void compare(const answers *a, const answers *b)
{
    assert_memory_equal(a->rows, b->rows, sizeof a->rows);
    assert_memory_equal(a->scores, b->scores, sizeof a->scores);
    for (int64_t q = 0; q < QUERIES; q++) {
        const int64_t count = ww_results_count(a->range, q);
        assert_int_equal(count, ww_results_count(b->range, q));
        assert_int_equal(ww_results_total(a->range, q), ww_results_total(b->range, q));
        assert_memory_equal(ww_results_rows(a->range, q), ww_results_rows(b->range, q), (size_t)count * sizeof(int64_t));
        assert_memory_equal(ww_results_scores(a->range, q), ww_results_scores(b->range, q), (size_t)count * sizeof(float));
    }
}

static void any_number_of_members_gives_the_same_bits(void **state)
{
    (void)state;
    static const int32_t members[] = {1, 2, 3, 4, 16, 64};
    static const setting settings[] = {
        {WW_COSINE, WW_VECTOR_F32, 900, false, WW_ROWS_DEVICE}, {WW_L2, WW_VECTOR_F32, 1300, true, WW_ROWS_DEVICE},
        {WW_DOT, WW_VECTOR_F16, 700, true, WW_ROWS_DEVICE},     {WW_L2, WW_VECTOR_I8, 800, false, WW_ROWS_DEVICE},
        {WW_L2, WW_VECTOR_F16, 640, false, WW_ROWS_HOST},       {WW_DOT, WW_VECTOR_BF16, 4500, false, WW_ROWS_DEVICE},
    };
    ww_device *cpu = NULL;
    CHECK_OK(ww_device_open("cpu", &cpu));
    for (size_t m = 0; m < sizeof members / sizeof *members; m++) {
        ww_device *group = open_members(members[m]);
        for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
            setting s = settings[i];
            const bool large = s.rows > 4000; /* so that each of 64 members has rows */
            if (large != (members[m] == 64) && i > 0)
                continue;
            answers expected, found;
            ww_collection *here = fill(cpu, &s), *there = fill(group, &s);
            ask(here, &s, &expected);
            ask(there, &s, &found);
            compare(&expected, &found);
            group->tuning.group_apart = false; /* and with members of the same device combined */
            CHECK_OK(ww_collection_compact(there, NULL, NULL));
            CHECK_OK(ww_collection_compact(here, NULL, NULL));
            CHECK_OK(ww_collection_check(there, NULL, NULL, NULL));
            ww_results_destroy(expected.range);
            ww_results_destroy(found.range);
            ask(here, &s, &expected);
            ask(there, &s, &found);
            compare(&expected, &found);
            ww_results_destroy(expected.range);
            ww_results_destroy(found.range);
            ww_collection_destroy(here);
            ww_collection_destroy(there);
            group->tuning.group_apart = true;
        }
        ww_device_close(group);
    }
    ww_device_close(cpu);
}

static void vectors_of_hits_come_from_every_member(void **state)
{
    (void)state;
    ww_device *group = open_members(3), *cpu = NULL;
    CHECK_OK(ww_device_open("cpu", &cpu));
    const setting s = {WW_L2, WW_VECTOR_F32, 500, false, WW_ROWS_DEVICE};
    ww_collection *here = fill(cpu, &s), *there = fill(group, &s);
    ww_get get = ww_get_default();
    get.count = WW_ROWS_MAX;
    get.fetch = WW_FETCH_VECTORS | WW_FETCH_IDS;
    ww_results *a = NULL, *b = NULL;
    CHECK_OK(ww_collection_get(here, &get, &a));
    CHECK_OK(ww_collection_get(there, &get, &b));
    assert_int_equal(ww_results_count(a, 0), ww_results_count(b, 0));
    for (int64_t i = 0; i < ww_results_count(a, 0); i++) {
        assert_memory_equal(ww_results_vector(a, 0, i), ww_results_vector(b, 0, i), DIM * sizeof(float));
        assert_string_equal(ww_results_id(a, 0, i), ww_results_id(b, 0, i));
    }
    ww_results_destroy(a);
    ww_results_destroy(b);
    ww_collection_destroy(here);
    ww_collection_destroy(there);
    ww_device_close(group);
    ww_device_close(cpu);
}

static void a_collection_moves_to_a_group_and_back(void **state)
{
    (void)state;
    ww_device *group = open_members(4), *cpu = NULL;
    CHECK_OK(ww_device_open("cpu", &cpu));
    const setting s = {WW_COSINE, WW_VECTOR_F32, 600, false, WW_ROWS_DEVICE};
    ww_collection *c = fill(cpu, &s);
    snapshot before = snapshot_take(c);
    CHECK_OK(ww_collection_move(c, group));
    snapshot there = snapshot_take(c);
    assert_true(snapshot_equal_but_figures(&before, &there));
    CHECK_OK(ww_collection_move(c, cpu));
    snapshot back = snapshot_take(c);
    assert_true(snapshot_equal_but_figures(&before, &back));
    snapshot_free(&before);
    snapshot_free(&there);
    snapshot_free(&back);
    ww_collection_destroy(c);
    ww_device_close(group);
    ww_device_close(cpu);
}

/* ---- what a search did --------------------------------------------------------------------------------------------------- */

static ww_query search_of(const float *queries, int64_t count, ww_search_stats *stats)
{
    ww_query search = ww_query_default();
    search.queries = queries;
    search.query_count = count;
    search.dim = DIM;
    search.k = K;
    search.stats = stats;
    return search;
}

/* Lists of one row are full for every query on every member; each query is counted once. */
static void a_query_that_falls_back_on_several_members_is_counted_once(void **state)
{
    (void)state;
    ww_device *group = NULL;
    CHECK_OK(ww_device_open("emulator:32+emulator:64", &group));
    group->tuning.group_even = true;
    for (int32_t m = 0; m < 2; m++) {
        pretend_screen(group_of(group)->members[m].device, true);
        group_of(group)->members[m].device->tuning.screen_list_capacity = 1;
    }
    const setting s = {WW_L2, WW_VECTOR_F32, 1200, false, WW_ROWS_DEVICE};
    ww_collection *c = fill(group, &s);
    test_random random = {3};
    float queries[4 * DIM], scores[4 * K];
    int64_t rows[4 * K];
    random_normals(&random, queries, 4 * DIM);
    ww_search_stats stats = ww_search_stats_default();
    ww_query search = search_of(queries, 4, &stats);
    CHECK_OK(ww_collection_search(c, &search, rows, scores));
    assert_int_equal(stats.fallback_queries, 4);
    assert_int_equal(stats.repeated_queries, 0);
    assert_true(stats.rows_screened >= 4 * 1100); /* of both members, because most rows are live */
    ww_collection_destroy(c);
    ww_device_close(group);
}

static void statistics_add_up_over_the_members(void **state)
{
    (void)state;
    ww_device *group = NULL;
    CHECK_OK(ww_device_open("cpu+cpu+cpu", &group));
    group->tuning.group_even = group->tuning.group_apart = true;
    const setting s = {WW_L2, WW_VECTOR_F32, 3000, false, WW_ROWS_DEVICE};
    ww_collection *c = fill(group, &s);
    test_random random = {4};
    float queries[4 * DIM], scores[4 * K];
    int64_t rows[4 * K];
    random_normals(&random, queries, 4 * DIM);
    ww_search_stats stats = ww_search_stats_default();
    ww_query search = search_of(queries, 4, &stats);
    CHECK_OK(ww_collection_search(c, &search, rows, scores));
    assert_true(stats.rows_screened > 4 * 1000); /* more than one member has */
    assert_true(stats.rows_scored >= 4 * K);
    assert_true(stats.certificate >= 0);
    ww_collection_destroy(c);
    ww_device_close(group);
}

/* ---- progress ------------------------------------------------------------------------------------------------------------ */

typedef struct heard {
    long long calls, last, total;
    bool backwards, stop;
} heard;

static int listen(int64_t done, int64_t total, void *user)
{
    heard *h = user;
    h->backwards |= done < h->last;
    h->calls++;
    h->last = done;
    h->total = total;
    return h->stop;
}

static void progress_is_reported_to_the_end_and_can_stop_a_search(void **state)
{
    (void)state;
    ww_device *group = open_members(3);
    const setting s = {WW_L2, WW_VECTOR_F32, 600, false, WW_ROWS_DEVICE};
    ww_collection *c = fill(group, &s);
    test_random random = {5};
    float queries[8 * DIM], scores[8 * K];
    int64_t rows[8 * K];
    random_normals(&random, queries, 8 * DIM);
    heard h = {0};
    ww_query search = search_of(queries, 8, NULL);
    search.progress = listen;
    search.progress_user = &h;
    CHECK_OK(ww_collection_search(c, &search, rows, scores));
    assert_true(h.calls >= 2 && h.last == 8 && h.total == 8 && !h.backwards);
    h = (heard){.stop = true};
    CHECK_FAILS(WW_CANCELLED, ww_collection_search(c, &search, rows, scores));
    assert_non_null(strstr(ww_error_message(), "cancelled"));
    ww_collection_destroy(c);
    ww_device_close(group);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_members_gives_the_same_bits),
        cmocka_unit_test(vectors_of_hits_come_from_every_member),
        cmocka_unit_test(a_collection_moves_to_a_group_and_back),
        cmocka_unit_test(a_query_that_falls_back_on_several_members_is_counted_once),
        cmocka_unit_test(statistics_add_up_over_the_members),
        cmocka_unit_test(progress_is_reported_to_the_end_and_can_stop_a_search),
    };
    return cmocka_run_group_tests_name("searches by groups", tests, NULL, NULL);
}
