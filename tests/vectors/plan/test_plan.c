/* Plans: each stage against the calls that it stands for, over two collections with the same ids; what stages report; refusals
 * and faults. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/data/random.h"
#include "support/faults/fault_counts.h"
#include "support/memory.h"

enum { ROWS = 300, DIM = 8, OTHER_DIM = 5, QUESTIONS = 3, STAGES = 6 };

typedef struct scene {
    ww_device *device;
    ww_collection *docs, *others; /* rows in the opposite order, vectors of another dimension */
    float queries[QUESTIONS * DIM], other_queries[QUESTIONS * OTHER_DIM];
    char ids[ROWS][16], payloads[ROWS][64];
    ww_query by_docs, by_others;
} scene;

static scene world;

static ww_collection *make(int32_t dim, ww_metric metric, bool backwards)
{
    test_random random = {(uint64_t)dim};
    ww_collection_config config = ww_collection_config_default();
    ww_collection *made = NULL;
    float *vectors = calloc((size_t)ROWS * (size_t)dim, sizeof *vectors);
    const char *ids[ROWS], *payloads[ROWS];
    ww_rows rows = ww_rows_default();
    config.dim = dim, config.metric = metric;
    CHECK_OK(ww_collection_create(world.device, &config, &made));
    random_normals(&random, vectors, (size_t)ROWS * (size_t)dim);
    for (int i = 0; i < ROWS; i++) {
        ids[i] = world.ids[backwards ? ROWS - 1 - i : i];
        payloads[i] = world.payloads[backwards ? ROWS - 1 - i : i];
    }
    rows.count = ROWS, rows.dim = dim, rows.vectors = vectors, rows.ids = ids, rows.payloads = payloads;
    CHECK_OK(ww_collection_add(made, &rows));
    free(vectors);
    return made;
}

static int setup(void **state)
{
    (void)state;
    test_random random = {5};
    CHECK_OK(ww_device_open("cpu", &world.device));
    for (int i = 0; i < ROWS; i++) {
        snprintf(world.ids[i], sizeof world.ids[i], "%d", i);
        snprintf(world.payloads[i], sizeof world.payloads[i], i % 10 == 9 ? "{\"s\": \"g%d\"}" : "{\"s\": \"g%d\", \"n\": %d}",
                 i % 7, i * 37 % 100);
    }
    world.docs = make(DIM, WW_COSINE, false);
    world.others = make(OTHER_DIM, WW_L2, true);
    random_normals(&random, world.queries, QUESTIONS * DIM);
    random_normals(&random, world.other_queries, QUESTIONS * OTHER_DIM);
    world.by_docs = world.by_others = ww_query_default();
    world.by_docs.queries = world.queries, world.by_docs.dim = DIM, world.by_docs.query_count = QUESTIONS;
    world.by_others.queries = world.other_queries, world.by_others.dim = OTHER_DIM, world.by_others.query_count = QUESTIONS;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ww_collection_destroy(world.docs);
    ww_collection_destroy(world.others);
    ww_device_close(world.device);
    return 0;
}

/* ---- building ------------------------------------------------------------------------------------------------------------ */

typedef struct building {
    ww_stage stages[STAGES];
    ww_stage_report reports[STAGES];
    const ww_stage *list[STAGES];
    int32_t inputs[STAGES][2];
    ww_plan plan;
} building;

static building *plan_begin(void)
{
    building *b = calloc(1, sizeof *b);
    b->plan = ww_plan_default();
    b->plan.stages = b->list;
    b->plan.question_count = QUESTIONS;
    return b;
}

/* Adds a stage with up to two inputs; -1: none. */
static ww_stage *stage_add(building *b, int32_t first, int32_t second, int64_t limit)
{
    const int64_t at = b->plan.stage_count++;
    ww_stage *s = &b->stages[at];
    *s = ww_stage_default();
    b->reports[at] = ww_stage_report_default();
    b->list[at] = s;
    b->inputs[at][0] = first, b->inputs[at][1] = second;
    s->inputs = b->inputs[at];
    s->input_count = (first >= 0) + (second >= 0);
    s->limit = limit;
    s->report = &b->reports[at];
    return s;
}

static void add_searches(building *b, int64_t limit)
{
    ww_stage *docs = stage_add(b, -1, -1, limit);
    docs->collection = world.docs, docs->query = &world.by_docs;
    ww_stage *others = stage_add(b, -1, -1, limit);
    others->collection = world.others, others->query = &world.by_others;
}

static ww_results *run(const building *b)
{
    ww_results *results = NULL;
    CHECK_OK(ww_plan_run(&b->plan, &results));
    assert_int_equal(ww_results_query_count(results), b->plan.question_count);
    return results;
}

static ww_results *query(ww_collection *from, const ww_query *how, int32_t k, uint32_t fetch)
{
    ww_query asked = *how;
    ww_results *results = NULL;
    asked.k = k, asked.fetch = fetch | WW_FETCH_IDS;
    CHECK_OK(ww_collection_query(from, &asked, &results));
    return results;
}

/* The same hits with the same score bits. */
static void check_same(const ww_results *a, const ww_results *b)
{
    assert_int_equal(ww_results_query_count(a), ww_results_query_count(b));
    for (int64_t q = 0; q < ww_results_query_count(a); q++) {
        assert_int_equal(ww_results_count(a, q), ww_results_count(b, q));
        for (int64_t i = 0; i < ww_results_count(a, q); i++) {
            assert_string_equal(ww_results_id(a, q, i), ww_results_id(b, q, i));
            assert_memory_equal(&ww_results_scores(a, q)[i], &ww_results_scores(b, q)[i], sizeof(float));
        }
    }
}

static void finish(building *b, ww_results *results, ww_results *expected)
{
    if (expected)
        check_same(results, expected);
    ww_results_destroy(results);
    ww_results_destroy(expected);
    free(b);
}

/* ---- stages -------------------------------------------------------------------------------------------------------------- */

static void one_search_is_the_query(void **state)
{
    (void)state;
    building *b = plan_begin();
    ww_stage *s = stage_add(b, -1, -1, 10);
    s->collection = world.docs, s->query = &world.by_docs;
    b->plan.fetch = WW_FETCH_PAYLOADS;
    ww_results *found = run(b);
    assert_string_equal(ww_results_payload(found, 1, 3), world.payloads[atoi(ww_results_id(found, 1, 3))]);
    assert_int_equal(ww_results_proven(found, 0), 10);
    finish(b, found, query(world.docs, &world.by_docs, 10, 0));
}

static void a_search_among_others_is_a_search_with_their_ids(void **state)
{
    (void)state;
    ww_results *before = query(world.others, &world.by_others, 40, 0);
    for (int64_t q = 0; q < QUESTIONS; q++) {
        building *b = plan_begin();
        const char *ids[40];
        ww_query one = world.by_docs, other = world.by_others;
        ww_filter *among = NULL;
        one.queries += q * DIM, one.query_count = 1, other.queries += q * OTHER_DIM, other.query_count = 1;
        for (int64_t i = 0; i < 40; i++)
            ids[i] = ww_results_id(before, q, i);
        CHECK_OK(ww_filter_create(&among));
        CHECK_OK(ww_filter_add_ids(among, ids, 40));
        b->plan.question_count = 1;
        ww_stage *s = stage_add(b, -1, -1, 40);
        s->collection = world.others, s->query = &other;
        s = stage_add(b, 0, -1, 7);
        s->collection = world.docs, s->query = &one;
        ww_results *found = run(b);
        assert_int_equal(b->reports[1].rows_in, 40);
        assert_int_equal(b->reports[1].hits, 7);
        one.filter = among;
        finish(b, found, query(world.docs, &one, 7, 0));
        ww_filter_destroy(among);
    }
    building *b = plan_begin(); /* and for all questions at once */
    add_searches(b, 40);
    ww_stage *s = stage_add(b, 1, -1, 7);
    s->collection = world.docs, s->query = &world.by_docs;
    ww_results *found = run(b);
    for (int64_t q = 0; q < QUESTIONS; q++)
        for (int64_t i = 0; i < 7; i++) {
            bool there = false;
            for (int64_t k = 0; k < 40; k++)
                there = there || strcmp(ww_results_id(found, q, i), ww_results_id(before, q, k)) == 0;
            assert_true(there);
        }
    finish(b, found, NULL);
    ww_results_destroy(before);
}

static void lists_of_two_collections_are_fused_by_id(void **state)
{
    (void)state;
    building *b = plan_begin();
    ww_fuse how = ww_fuse_default();
    ww_results *lists[2] = {query(world.docs, &world.by_docs, 50, 0), query(world.others, &world.by_others, 50, 0)},
               *fused = NULL;
    how.fusion = WW_FUSION_DISTRIBUTIONS;
    add_searches(b, 50);
    stage_add(b, 0, 1, 12)->fuse = &how;
    b->plan.collection = world.others;
    b->plan.fetch = WW_FETCH_PAYLOADS;
    ww_results *found = run(b);
    how.by_id = true, how.limit = 12;
    CHECK_OK(ww_results_fuse((const ww_results *const *)lists, 2, &how, &fused));
    for (int64_t i = 0; i < 12; i++) {
        assert_string_equal(ww_results_payload(found, 0, i), world.payloads[atoi(ww_results_id(found, 0, i))]);
        assert_memory_equal(ww_results_parts(found, 0)[i].ranks, ww_results_parts(fused, 0)[i].ranks, 2 * sizeof(int64_t));
    }
    finish(b, found, fused);
    ww_results_destroy(lists[0]);
    ww_results_destroy(lists[1]);
}

static void a_formula_scores_the_rows_of_its_inputs(void **state)
{
    (void)state;
    building *b = plan_begin();
    ww_formula *formula = NULL;
    CHECK_OK(ww_formula_read("{\"sum\": [\"$score\", {\"mult\": [\"$score[1]\", 0.5]}, \"n\"]}",
                             "{\"n\": -5, \"$score[1]\": 8}", NULL, NULL, &formula));
    add_searches(b, 30);
    stage_add(b, 0, 1, 0)->formula = formula;
    ww_results *found = run(b);
    ww_results *lists[2] = {query(world.docs, &world.by_docs, 30, 0), query(world.others, &world.by_others, 30, 0)};
    for (int64_t q = 0; q < QUESTIONS; q++)
        for (int64_t i = 0; i < ww_results_count(found, q); i++) {
            const char *id = ww_results_id(found, q, i);
            float scores[2] = {NAN, NAN}, expected = 0;
            for (int k = 0; k < 2; k++)
                for (int64_t h = 0; h < 30; h++)
                    if (strcmp(ww_results_id(lists[k], q, h), id) == 0)
                        scores[k] = ww_results_scores(lists[k], q)[h];
            ww_formula_row row = ww_formula_row_default();
            row.id = id, row.payload = world.payloads[atoi(id)], row.scores = scores, row.score_count = 2;
            CHECK_OK(ww_formula_score(formula, &row, &expected));
            assert_true(ww_results_scores(found, q)[i] == expected);
            assert_true(i == 0 || ww_results_scores(found, q)[i - 1] >= expected);
        }
    assert_true(b->reports[2].rows_in > 30 && b->reports[2].hits == b->reports[2].rows_in);
    ww_results_destroy(lists[0]);
    ww_results_destroy(lists[1]);
    finish(b, found, NULL);
    ww_formula_destroy(formula);
}

static void rows_are_ordered_by_a_field(void **state)
{
    (void)state;
    building *b = plan_begin();
    ww_order how = ww_order_default();
    how.field = "n", how.descending = true;
    add_searches(b, 40);
    ww_stage *s = stage_add(b, 0, -1, 0);
    s->order = &how;
    ww_results *found = run(b);
    int64_t without = 0;
    ww_results *before = query(world.docs, &world.by_docs, 40, 0);
    for (int64_t q = 0; q < QUESTIONS; q++) {
        int last = 1000;
        for (int64_t i = 0; i < 40; i++)
            without += atoi(ww_results_id(before, q, i)) % 10 == 9;
        for (int64_t i = 0; i < ww_results_count(found, q); i++) {
            const int n = atoi(ww_results_id(found, q, i)) * 37 % 100;
            assert_true(n <= last);
            last = n;
        }
    }
    assert_int_equal(b->reports[2].rows_gone, without);
    assert_int_equal(b->reports[2].hits, QUESTIONS * 40 - without);
    ww_results_destroy(before);
    finish(b, found, NULL);
}

static void hits_are_thinned_out_and_grouped(void **state)
{
    (void)state;
    building *b = plan_begin();
    ww_diversity diversity = ww_diversity_default();
    ww_grouping grouping = ww_grouping_default();
    ww_query asked = world.by_docs;
    ww_results *expected = NULL;
    asked.k = 6, asked.fetch = WW_FETCH_IDS;
    CHECK_OK(ww_collection_rank(world.docs, &asked, &diversity, NULL, 30, &expected));
    add_searches(b, 30);
    stage_add(b, 0, -1, 6)->diversity = &diversity;
    finish(b, run(b), expected);
    grouping.field = "s", grouping.groups = 3, grouping.size = 2;
    ww_results *grouped = NULL, *all = query(world.docs, &world.by_docs, 60, WW_FETCH_PAYLOADS);
    CHECK_OK(ww_results_group(all, &grouping, &grouped));
    b = plan_begin();
    add_searches(b, 60);
    stage_add(b, 0, -1, 0)->grouping = &grouping;
    finish(b, run(b), grouped);
    ww_results_destroy(all);
}

static void stages_say_what_they_left_out(void **state)
{
    (void)state;
    building *b = plan_begin();
    ww_results *all = query(world.others, &world.by_others, 20, 0);
    const char *exclude[2] = {ww_results_id(all, 0, 0), "unknown"};
    char text[1024];
    ww_stage *s = stage_add(b, -1, -1, 5);
    s->collection = world.others, s->query = &world.by_others;
    s->offset = 2, s->exclude = exclude, s->exclude_count = 2;
    s->has_threshold = true, s->threshold = (double)ww_results_scores(all, 0)[4]; /* a distance */
    ww_results *found = run(b);
    assert_int_equal(ww_results_count(found, 0), 2);
    assert_string_equal(ww_results_id(found, 0, 0), ww_results_id(all, 0, 3));
    const ww_stage_report *r = &b->reports[0];
    assert_true(r->rows_excluded >= 1 && r->rows_worse >= 4 && r->rows_skipped >= 2 && r->rows_scored > 0 && r->seconds > 0);
    assert_int_equal(r->hits, ww_results_count(found, 0) + ww_results_count(found, 1) + ww_results_count(found, 2));
    const size_t length = ww_plan_explain(&b->plan, text, sizeof text);
    assert_true(length == strlen(text) && strncmp(text, "0 query: ", 9) == 0 && strstr(text, "excluded by id") &&
                strstr(text, "scored"));
    assert_int_equal(ww_plan_explain(&b->plan, text, 5), length);
    assert_string_equal(text, "0 qu");
    assert_int_equal(ww_plan_explain(NULL, text, sizeof text), 0);
    ww_results_destroy(all);
    finish(b, found, NULL);
}

/* ---- ties ---------------------------------------------------------------------------------------------------------------- */

static ww_collection *make_ties(const char *const *ids, int64_t count)
{
    float *vectors = calloc((size_t)count * 2, sizeof *vectors);
    ww_collection_config config = ww_collection_config_default();
    ww_rows rows = ww_rows_default();
    ww_collection *made = NULL;
    config.dim = 2, config.metric = WW_DOT;
    for (int64_t i = 0; i < count; i++)
        vectors[2 * i] = strcmp(ids[i], "9") == 0 ? 2.0f : 1.0f;
    CHECK_OK(ww_collection_create(world.device, &config, &made));
    rows.count = count, rows.dim = 2, rows.vectors = vectors, rows.ids = ids;
    CHECK_OK(ww_collection_add(made, &rows));
    free(vectors);
    return made;
}

static void ties_come_in_the_order_of_ids_however_rows_were_added(void **state)
{
    (void)state;
    static const char *const IDS[2][7] = {{"a", "10", "9", "b", "2", "030", "1"}, {"1", "b", "2", "9", "10", "a", "030"}};
    static const char *const EXPECTED[5] = {"9", "1", "2", "10", "030"};
    for (int n = 0; n < 2; n++) {
        ww_collection *ties = make_ties(IDS[n], 7);
        for (int64_t limit = 1; limit <= 5; limit++) {
            building *b = plan_begin();
            ww_query asked = ww_query_default();
            asked.queries = (const float[]){1, 0, 1, 0, 1, 0}, asked.dim = 2, asked.query_count = QUESTIONS;
            b->plan.ties_by_id = true;
            ww_stage *s = stage_add(b, -1, -1, limit);
            s->collection = ties, s->query = &asked;
            ww_results *found = run(b);
            for (int64_t q = 0; q < QUESTIONS; q++) {
                assert_int_equal(ww_results_count(found, q), limit);
                for (int64_t i = 0; i < limit; i++)
                    assert_string_equal(ww_results_id(found, q, i), EXPECTED[i]);
            }
            finish(b, found, NULL);
        }
        ww_collection_destroy(ties);
    }
}

/* ---- searches of the caller's own ---------------------------------------------------------------------------------------- */

typedef struct own_search {
    int calls;
    int64_t limit;
    bool wrong;
} own_search;

static ww_status find_own(void *user, int64_t question, const ww_filter *filter, int64_t limit, ww_results **results)
{
    own_search *own = user;
    ww_selection all = ww_selection_default();
    own->calls++;
    own->limit = limit;
    all.filter = filter, all.limit = limit, all.first_handle = question * 100;
    return ww_collection_select(world.docs, &all, own->wrong ? 0 : WW_FETCH_IDS, results);
}

static void a_finder_is_a_search(void **state)
{
    (void)state;
    building *b = plan_begin();
    own_search own = {0};
    ww_finder finder = ww_finder_default();
    finder.find = find_own, finder.user = &own, finder.in_order = true;
    b->plan.ties_by_id = true;
    ww_stage *s = stage_add(b, -1, -1, 4);
    s->collection = world.docs, s->finder = &finder;
    ww_results *found = run(b);
    assert_true(own.calls == QUESTIONS && own.limit == 4);
    assert_string_equal(ww_results_id(found, 2, 0), "200");
    finish(b, found, NULL);
    b = plan_begin();
    add_searches(b, 100);
    s = stage_add(b, 0, -1, 4);
    s->finder = &finder;
    found = run(b);
    assert_int_equal(ww_results_count(found, 0), 4);
    own.wrong = true;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_plan_run(&b->plan, &found));
    finish(b, found, NULL);
}

/* ---- refusals and faults ------------------------------------------------------------------------------------------------- */

static void plans_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    building *b = plan_begin();
    ww_fuse fuse = ww_fuse_default();
    ww_order order = ww_order_default();
    ww_diversity diversity = ww_diversity_default();
    ww_query bad = world.by_docs;
    ww_results *found = NULL;
    add_searches(b, 10);
    ww_stage *s = stage_add(b, 0, 1, 5);
#define REFUSED(status) CHECK_FAILS(status, ww_plan_run(&b->plan, &found))
    REFUSED(WW_INVALID_ARGUMENT); /* nothing to do */
    s->fuse = &fuse, s->order = &order;
    REFUSED(WW_INVALID_ARGUMENT); /* two things */
    s->fuse = NULL;
    REFUSED(WW_INVALID_ARGUMENT); /* no field */
    order.field = "a..b";
    REFUSED(WW_INVALID_ARGUMENT);
    s->order = NULL, s->diversity = &diversity;
    REFUSED(WW_INVALID_ARGUMENT); /* two inputs */
    s->diversity = NULL, s->fuse = &fuse, b->inputs[2][1] = 2;
    REFUSED(WW_INVALID_ARGUMENT); /* itself */
    b->inputs[2][1] = 1, s->limit = -1;
    REFUSED(WW_INVALID_ARGUMENT);
    s->limit = 5, s->has_threshold = true, s->threshold = NAN;
    REFUSED(WW_INVALID_ARGUMENT);
    s->has_threshold = false, s->exclude_count = 1;
    REFUSED(WW_INVALID_ARGUMENT);
    s->exclude_count = 0, s->input_count = 0;
    REFUSED(WW_INVALID_ARGUMENT);
    s->input_count = 2, b->stages[0].query = &bad, bad.k = 3;
    REFUSED(WW_INVALID_ARGUMENT);
    bad.k = 0, bad.query_count = 2;
    REFUSED(WW_INVALID_ARGUMENT);
    bad = world.by_docs, bad.dim = 3;
    REFUSED(WW_DIMENSION_MISMATCH);
    bad = world.by_docs, b->stages[0].collection = NULL;
    REFUSED(WW_INVALID_ARGUMENT);
    b->stages[0].collection = world.docs, b->plan.fetch = 1u << 20;
    REFUSED(WW_INVALID_ARGUMENT);
    b->plan.fetch = 0, b->plan.stage_count = 0;
    REFUSED(WW_OUT_OF_RANGE);
    b->plan.stage_count = 3, b->plan.question_count = -1;
    REFUSED(WW_OUT_OF_RANGE);
    b->plan.question_count = QUESTIONS;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_plan_run(NULL, &found));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_plan_run(&b->plan, NULL));
    assert_null(found);
    assert_string_equal(ww_stage_name(s), "fuse");
    assert_string_equal(ww_stage_name(NULL), "");
    finish(b, run(b), NULL); /* and now it is one */
}

static void a_plan_can_be_cancelled(void **state)
{
    (void)state;
    building *b = plan_begin();
    ww_cancel *cancel = NULL;
    ww_results *found = NULL;
    CHECK_OK(ww_cancel_create(&cancel));
    ww_cancel_ask(cancel);
    add_searches(b, 10);
    b->plan.cancel = cancel;
    CHECK_FAILS(WW_CANCELLED, ww_plan_run(&b->plan, &found));
    ww_cancel_reset(cancel);
    finish(b, run(b), NULL);
    ww_cancel_destroy(cancel);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    building *b = plan_begin();
    ww_fuse fuse = ww_fuse_default();
    ww_diversity diversity = ww_diversity_default();
    ww_formula *formula = NULL;
    CHECK_OK(ww_formula_read("{\"sum\": [\"$score\", \"n\"]}", "{\"n\": 1}", NULL, NULL, &formula));
    add_searches(b, 10);
    stage_add(b, 0, 1, 10)->fuse = &fuse;
    stage_add(b, 2, -1, 8)->formula = formula;
    ww_stage *s = stage_add(b, 3, -1, 6);
    s->collection = world.docs, s->query = &world.by_docs;
    stage_add(b, 4, -1, 4)->diversity = &diversity;
    b->plan.fetch = WW_FETCH_PAYLOADS;
    finish(plan_begin(), run(b), run(b)); /* whatever is made once is made */
    const int64_t held = blocks_held();
    ww_status status = WW_OUT_OF_MEMORY;
    long failures = 0;
    for (long n = 1; status != WW_OK; n = fault_next(n)) {
        ww_results *found = NULL;
        fail_allocation_at(n);
        status = ww_plan_run(&b->plan, &found);
        fail_allocation_at(0);
        assert_true(status == WW_OK || (status == WW_OUT_OF_MEMORY && !found));
        ww_results_destroy(found);
        assert_int_equal(blocks_held(), held);
        failures += status != WW_OK;
    }
    assert_true(failures > 5);
    fault_count("allocation", failures);
    ww_formula_destroy(formula);
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_search_is_the_query),
        cmocka_unit_test(a_search_among_others_is_a_search_with_their_ids),
        cmocka_unit_test(lists_of_two_collections_are_fused_by_id),
        cmocka_unit_test(a_formula_scores_the_rows_of_its_inputs),
        cmocka_unit_test(rows_are_ordered_by_a_field),
        cmocka_unit_test(hits_are_thinned_out_and_grouped),
        cmocka_unit_test(stages_say_what_they_left_out),
        cmocka_unit_test(ties_come_in_the_order_of_ids_however_rows_were_added),
        cmocka_unit_test(a_finder_is_a_search),
        cmocka_unit_test(plans_that_make_no_sense_are_refused),
        cmocka_unit_test(a_plan_can_be_cancelled),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
