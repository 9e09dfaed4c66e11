/* The certificate enforces itself: thresholds that are made too good on purpose lose results, and every query that lost one is
 * noticed, searched again without a screen, counted, and right to the bit. On every device, the CPU with each of its
 * instruction sets; by searches of one query, small batches and batches, by queries and by range searches. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "cpu/cpu.h"
#include "seams/wrong_thresholds.h"
#include "support/collections.h"
#include "support/data/datasets.h"
#include "support/devices.h"
#include "support/memory.h"
#include "support/pretend/pretend.h"

static const ww_metric metrics[] = {WW_COSINE, WW_L2, WW_DOT};
enum { METRICS = 3, DIM = 40, QUERIES = 20, K = 10, ROWS_SLOW = 700, ROWS_MAX = 10400 };

/* By how many units in the last place a threshold is too good: one; enough to make it twice what it should be or more; or
 * better than any score. */
static const uint32_t steps[] = {1, 1u << 12, 1u << 18, 1u << 21, 1u << 24, 1u << 28};
enum { STEPS = sizeof steps / sizeof *steps };

static const char *const kinds[] = {"random normal", "near-duplicates", "integers", "clustered"};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Each kernel of the screen. */
static const struct shape {
    int64_t queries;
    bool wgmma;
} shapes[] = {{1, false}, {3, false}, {7, false}, {QUERIES, false}, {QUERIES, true}};
enum { SHAPES = 5 };

/* On emulated devices every other shape, where each takes many searches. */
static int step(ww_device *device)
{
    return device_is_slow(device) ? 2 : 1;
}

/* What was seen over all searches. */
static struct tally {
    int64_t searches, wrong, repeated;
} seen;

typedef struct pair {
    ww_device *device;
    ww_collection *screened, *plain;
    float *rows, *queries;
    int64_t count;
} pair;

static ww_collection *filled(const pair *p, ww_metric metric, ww_screen screen)
{
    ww_collection_config config = ww_collection_config_default();
    config.dim = DIM;
    config.metric = metric;
    config.screen = screen;
    ww_collection *made = NULL;
    CHECK_OK(ww_collection_create(p->device, &config, &made));
    ww_rows rows = ww_rows_default();
    rows.count = p->count;
    rows.dim = DIM;
    rows.vectors = p->rows;
    CHECK_OK(ww_collection_add(made, &rows));
    return made;
}

/* A CPU takes a sample of at least this many rows; for fewer, each thread scores some until it has a threshold. */
static pair pair_make(ww_device *device, const char *kind, ww_metric metric)
{
    pair p = {.device = device, .count = strcmp(device->backend->name, "cpu") == 0 ? ROWS_MAX : ROWS_SLOW};
    test_random random = {(uint64_t)metric + 5};
    p.rows = malloc((size_t)p.count * DIM * sizeof *p.rows);
    p.queries = malloc((size_t)QUERIES * DIM * sizeof *p.queries);
    dataset_named(kind)->make(&random, DIM, p.rows, p.count, p.queries, QUERIES);
    pretend_screen(device, true);
    p.screened = filled(&p, metric, WW_SCREEN_INT8);
    p.plain = filled(&p, metric, WW_SCREEN_NONE);
    return p;
}

static void pair_free(pair *p)
{
    ww_collection_destroy(p->screened);
    ww_collection_destroy(p->plain);
    free(p->rows);
    free(p->queries);
    pretend_nothing(p->device);
    thresholds_lowered = 0;
    keep_unproven = false;
}

typedef struct answer {
    int64_t rows[QUERIES * K];
    float scores[QUERIES * K];
    ww_search_stats stats;
} answer;

static void ask(ww_collection *c, const pair *p, int64_t queries, answer *found)
{
    ww_query search = ww_query_default();
    found->stats = ww_search_stats_default();
    search.queries = p->queries;
    search.query_count = queries;
    search.dim = DIM;
    search.k = K;
    search.stats = &found->stats;
    CHECK_OK(ww_collection_search(c, &search, found->rows, found->scores));
}

/* Queries whose results differ. */
static int64_t wrong_queries(const answer *a, const answer *b, int64_t queries)
{
    int64_t wrong = 0;
    for (int64_t q = 0; q < queries; q++)
        wrong += memcmp(a->rows + q * K, b->rows + q * K, K * sizeof *a->rows) != 0 ||
                 memcmp(a->scores + q * K, b->scores + q * K, K * sizeof *a->scores) != 0;
    return wrong;
}

/* With thresholds that are too good by so much: the results without a check of the certificate, and with it. */
static void check_lowered(const pair *p, const char *kind, struct shape shape, uint32_t by)
{
    answer plain, unproven, repeated;
    pretend_sm_90a(p->device, shape.wgmma);
    pretend_three_stages(p->device, by > 1u << 20);
    ask(p->plain, p, shape.queries, &plain);
    thresholds_lowered = by;
    keep_unproven = true;
    ask(p->screened, p, shape.queries, &unproven);
    keep_unproven = false;
    ask(p->screened, p, shape.queries, &repeated);
    thresholds_lowered = 0;
    const int64_t wrong = wrong_queries(&plain, &unproven, shape.queries);
    const int64_t left = wrong_queries(&plain, &repeated, shape.queries);
    if (left > 0)
        fail_msg("%s, %lld queries, thresholds too good by %u: %lld queries are wrong", kind, (long long)shape.queries, by,
                 (long long)left);
    /* A CPU's threads learn thresholds from one another, so two searches lose different rows; each is judged by itself. */
    const bool alike = strcmp(p->device->backend->name, "cpu") != 0;
    if ((alike && wrong > repeated.stats.repeated_queries) || (wrong > 0 && !(unproven.stats.certificate < 0.0f)))
        fail_msg("%s, %lld queries, thresholds too good by %u: %lld were wrong, %lld were repeated; certificate %g", kind,
                 (long long)shape.queries, by, (long long)wrong, (long long)repeated.stats.repeated_queries,
                 (double)unproven.stats.certificate);
    assert_true(repeated.stats.certificate >= 0.0f);
    assert_true(repeated.stats.repeated_queries <= shape.queries);
    assert_int_equal(unproven.stats.repeated_queries, 0);
    seen.searches++;
    seen.wrong += wrong;
    seen.repeated += repeated.stats.repeated_queries;
}

static void check_pairs(ww_device *device, int share)
{
    for (int kind = 0; kind < KINDS; kind++)
        for (int m = 0; m < METRICS; m++) {
            if ((kind + m) % share != 0)
                continue;
            pair p = pair_make(device, kinds[kind], metrics[m]);
            for (int s = 0; s < SHAPES; s++) {
                answer plain, right;
                pretend_sm_90a(device, shapes[s].wgmma);
                ask(p.plain, &p, shapes[s].queries, &plain);
                ask(p.screened, &p, shapes[s].queries, &right);
                assert_int_equal(wrong_queries(&plain, &right, shapes[s].queries), 0);
                assert_int_equal(right.stats.repeated_queries, 0);
                for (int i = 0; i < STEPS; i++)
                    if (!device_is_slow(device) || (i + s + kind) % STEPS == 0)
                        check_lowered(&p, kinds[kind], shapes[s], steps[i]);
            }
            pair_free(&p);
        }
}

static void every_answer_with_a_wrong_threshold_is_repeated(void **state)
{
    ww_device *device = *state;
    memset(&seen, 0, sizeof seen);
    if (strcmp(device->backend->name, "cpu") == 0) {
        cpu_device *cpu = (cpu_device *)device;
        const instruction_set *const chosen = cpu->isa;
        for (const instruction_set *const *set = instruction_sets; *set; set++) {
            if (!(*set)->present())
                continue;
            cpu->isa = *set;
            check_pairs(device, test_is_short() ? 6 : TEST_INSTRUMENTED ? 3 : 2);
        }
        cpu->isa = chosen;
    } else {
        check_pairs(device, device_is_slow(device) || TEST_INSTRUMENTED ? 3 : 1);
    }
    printf("%lld searches with wrong thresholds on %s: %lld queries would have been wrong, %lld were repeated, none is wrong\n",
           (long long)seen.searches, device->info.id, (long long)seen.wrong, (long long)seen.repeated);
    assert_true(seen.wrong > seen.searches && seen.repeated >= seen.wrong / 2); /* or nothing was tested */
}

/* A threshold that is better than every score leaves no result: the k-th one is missing. */
static void a_missing_result_is_found(void **state)
{
    pair p = pair_make(*state, "random normal", WW_L2);
    answer plain, unproven, repeated;
    for (int s = 0; s < SHAPES; s += step(*state)) {
        pretend_sm_90a(p.device, shapes[s].wgmma);
        thresholds_lowered = UINT32_MAX;
        keep_unproven = false;
        ask(p.plain, &p, shapes[s].queries, &plain);
        ask(p.screened, &p, shapes[s].queries, &repeated);
        assert_int_equal(wrong_queries(&plain, &repeated, shapes[s].queries), 0);
        /* Such a threshold is NaN and may keep all rows; no result may be wrong without being counted. */
        thresholds_lowered = 1u << 30;
        ask(p.screened, &p, shapes[s].queries, &repeated);
        assert_int_equal(wrong_queries(&plain, &repeated, shapes[s].queries), 0);
        assert_int_equal(repeated.stats.repeated_queries, shapes[s].queries);
        keep_unproven = true;
        ask(p.screened, &p, shapes[s].queries, &unproven);
        assert_true(unproven.stats.certificate == -INFINITY || unproven.rows[K - 1] >= 0);
        assert_true(unproven.stats.certificate < 0.0f);
    }
    pair_free(&p);
}

/* Lists that are full are asked again with thresholds that were wrong, too. */
static void queries_with_full_lists_are_repeated_too(void **state)
{
    for (int kind = 0; kind < KINDS; kind += device_is_slow(*state) ? 3 : 1) {
        pair p = pair_make(*state, kinds[kind], metrics[kind % METRICS]);
        for (int s = 0; s < SHAPES; s += step(*state)) {
            p.device->tuning.screen_list_capacity = 12;
            check_lowered(&p, kinds[kind], shapes[s], steps[1 + (s + kind) % (STEPS - 1)]);
        }
        pair_free(&p);
    }
}

/* ---- queries and range searches ------------------------------------------------------------------------------------------ */

static void check_same(const ww_results *a, const ww_results *b, int64_t queries)
{
    for (int64_t q = 0; q < queries; q++) {
        const size_t hits = (size_t)ww_results_count(a, q);
        assert_int_equal(ww_results_count(b, q), hits);
        if (hits == 0)
            continue;
        assert_memory_equal(ww_results_rows(a, q), ww_results_rows(b, q), hits * sizeof(int64_t));
        assert_memory_equal(ww_results_scores(a, q), ww_results_scores(b, q), hits * sizeof(float));
    }
}

static void a_query_is_repeated_like_a_search(void **state)
{
    pair p = pair_make(*state, "clustered", WW_COSINE);
    ww_query query = ww_query_default();
    ww_search_stats stats = ww_search_stats_default();
    query.queries = p.queries;
    query.query_count = QUERIES;
    query.dim = DIM;
    query.k = K;
    query.stats = &stats;
    ww_results *plain = NULL, *repeated = NULL;
    CHECK_OK(ww_collection_query(p.plain, &query, &plain));
    thresholds_lowered = 1u << 26;
    CHECK_OK(ww_collection_query(p.screened, &query, &repeated));
    assert_true(stats.repeated_queries > 0 && stats.certificate >= 0.0f);
    check_same(plain, repeated, QUERIES);
    ww_results_destroy(plain);
    ww_results_destroy(repeated);
    pair_free(&p);
}

/* In a range search the threshold is known: it is the bound. A better one is proof enough, whatever rows it lost. */
static void a_range_whose_threshold_is_not_its_bound_is_repeated(void **state)
{
    for (int m = 0; m < METRICS; m += device_is_slow(*state) ? 2 : 1) {
        pair p = pair_make(*state, "random normal", metrics[m]);
        answer best;
        ask(p.plain, &p, QUERIES, &best);
        ww_query range = ww_query_default();
        range.mode = WW_QUERY_RANGE;
        ww_search_stats stats = ww_search_stats_default();
        range.queries = p.queries;
        range.dim = DIM;
        range.bound = best.scores[K - 1];
        range.limit = WW_ROWS_MAX;
        range.stats = &stats;
        for (int s = 0; s < SHAPES; s += step(*state)) {
            ww_results *plain = NULL, *unproven = NULL, *repeated = NULL;
            pretend_sm_90a(p.device, shapes[s].wgmma);
            range.query_count = shapes[s].queries;
            CHECK_OK(ww_collection_query(p.plain, &range, &plain));
            CHECK_OK(ww_collection_query(p.screened, &range, &repeated));
            check_same(plain, repeated, shapes[s].queries);
            assert_int_equal(stats.repeated_queries, 0);
            ww_results_destroy(repeated);
            thresholds_lowered = 1u << 22;
            CHECK_OK(ww_collection_query(p.screened, &range, &repeated));
            check_same(plain, repeated, shapes[s].queries);
            assert_int_equal(stats.repeated_queries, shapes[s].queries);
            assert_true(stats.certificate >= 0.0f);
            keep_unproven = true;
            CHECK_OK(ww_collection_query(p.screened, &range, &unproven));
            assert_true(stats.certificate < 0.0f && stats.repeated_queries == 0);
            assert_true(ww_results_count(unproven, 0) < ww_results_count(plain, 0)); /* it was wrong */
            thresholds_lowered = 0;
            keep_unproven = false;
            ww_results_destroy(plain);
            ww_results_destroy(unproven);
            ww_results_destroy(repeated);
        }
        pair_free(&p);
    }
}

/* Every allocation fails in turn, also those of the repeated search: a status, no leak, and the right answer when none
 * fails. */
static void no_memory_for_a_repetition_is_a_status(void **state)
{
    enum { ATTEMPTS_MAX = 500 };
    const int64_t queries = device_is_slow(*state) ? 2 : QUERIES;
    pair p = pair_make(*state, "random normal", WW_L2);
    answer plain, repeated;
    ask(p.plain, &p, queries, &plain);
    thresholds_lowered = 1u << 24;
    ask(p.screened, &p, queries, &repeated); /* the device has what it keeps now */
    assert_true(repeated.stats.repeated_queries > 0);
    ww_query search = ww_query_default();
    search.queries = p.queries;
    search.query_count = queries;
    search.dim = DIM;
    search.k = K;
    int64_t n = 1;
    for (ww_status status = WW_OUT_OF_MEMORY; status != WW_OK; n++) {
        const int64_t blocks = blocks_held();
        fail_allocation_at(n);
        status = ww_collection_search(p.screened, &search, repeated.rows, repeated.scores);
        fail_allocation_at(0);
        assert_true(n < ATTEMPTS_MAX && (status == WW_OK || status == WW_OUT_OF_MEMORY));
        assert_int_equal(blocks_held(), blocks);
    }
    assert_true(n > 4); /* of the search, of the list, of the repetition */
    assert_int_equal(wrong_queries(&plain, &repeated, queries), 0);
    pair_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_with_a_wrong_threshold_is_repeated),
        cmocka_unit_test(a_missing_result_is_found),
        cmocka_unit_test(queries_with_full_lists_are_repeated_too),
        cmocka_unit_test(a_query_is_repeated_like_a_search),
        cmocka_unit_test(a_range_whose_threshold_is_not_its_bound_is_repeated),
        cmocka_unit_test(no_memory_for_a_repetition_is_a_status),
    };
    return RUN_ON_EVERY_DEVICE("certificates", tests);
}
