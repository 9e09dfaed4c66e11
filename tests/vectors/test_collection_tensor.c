/* Rows and queries that come as tensors: what they leave and find is what the same numbers from the host do, to the bit, on
 * whatever device the tensor is; on the collection's own device they do not pass through the host; what is refused of the
 * host's numbers is refused of a tensor's, and nothing changes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <warpwave/tensor.h>
#include <warpwave/tensor_foreign.h>

#include "arithmetic/row_values.h"
#include "device/backend.h"
#include "support/collections.h"
#include "support/devices.h"
#include "support/pretend/pretend.h"

enum { DIM = 70, ROWS = 140 };

static const ww_vector_type types[] = {WW_VECTOR_F32, WW_VECTOR_F16, WW_VECTOR_BF16, WW_VECTOR_I8, WW_VECTOR_U8};
static const ww_dtype dtypes[] = {WW_F32, WW_F16, WW_BF16, WW_I8, WW_U8};
enum { TYPES = 5 };

static ww_collection *make(ww_device *device, ww_metric metric, ww_vector_type type, bool keep_host_copy)
{
    ww_collection_config config = ww_collection_config_default();
    config.name = "test";
    config.dim = DIM;
    config.metric = metric;
    config.type = type;
    config.keep_host_copy = keep_host_copy;
    ww_collection *made = NULL;
    CHECK_OK(ww_collection_create(device, &config, &made));
    return made;
}

/* Numbers that every type holds. */
static float *whole_numbers(uint64_t seed, int64_t count)
{
    test_random random = {seed};
    float *made = malloc((size_t)count * sizeof *made);
    for (int64_t i = 0; i < count; i++)
        made[i] = (float)random_below(&random, 100);
    return made;
}

static float *normals(uint64_t seed, int64_t count)
{
    test_random random = {seed};
    float *made = malloc((size_t)count * sizeof *made);
    random_normals(&random, made, count);
    return made;
}

/* A tensor [rows, DIM] of a type. */
static ww_tensor tensor_make(ww_device *device, ww_dtype type, int64_t rows, const float *numbers)
{
    ww_tensor f32 = {0}, made = {0};
    CHECK_OK(ww_tensor_from_host(device, WW_F32, 2, (int64_t[]){rows, DIM}, numbers, &f32));
    CHECK_OK(ww_tensor_cast(&f32, type, &made));
    ww_tensor_release(&f32);
    return made;
}

static void add_host(ww_collection *c, int64_t rows, const float *numbers)
{
    ww_rows added = ww_rows_default();
    added.count = rows;
    added.dim = DIM;
    added.vectors = numbers;
    CHECK_OK(ww_collection_add(c, &added));
}

static ww_status add_tensor(ww_collection *c, const ww_tensor *tensor)
{
    ww_rows added = ww_rows_default();
    added.tensor = tensor;
    return ww_collection_add(c, &added);
}

static void check_same(ww_collection *a, ww_collection *b)
{
    snapshot one = snapshot_take(a), other = snapshot_take(b);
    assert_true(snapshot_equal(&one, &other));
    snapshot_free(&one);
    snapshot_free(&other);
    CHECK_OK(ww_collection_check(a, NULL, NULL, NULL));
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

/* In three adds, so that one starts in the middle of 64 rows. */
static void compare_rows(ww_device *device, ww_vector_type type, ww_dtype dtype, ww_metric metric)
{
    float *numbers = whole_numbers((uint64_t)type + 1, (int64_t)ROWS * DIM);
    ww_collection *by_tensor = make(device, metric, type, false), *by_host = make(device, metric, type, false);
    static const int64_t ends[] = {0, 1, 77, ROWS};
    for (int i = 0; i < 3; i++) {
        const float *first = numbers + ends[i] * DIM;
        ww_tensor tensor = tensor_make(device, dtype, ends[i + 1] - ends[i], first);
        CHECK_OK(add_tensor(by_tensor, &tensor));
        ww_tensor_release(&tensor);
        add_host(by_host, ends[i + 1] - ends[i], first);
    }
    check_same(by_tensor, by_host);
    ww_collection_destroy(by_tensor);
    ww_collection_destroy(by_host);
    free(numbers);
}

static void rows_of_a_tensor_are_those_of_the_host(void **state)
{
    for (int i = 0; i < TYPES; i++) {
        compare_rows(*state, types[i], WW_F32, (ww_metric)(i % 3));
        if (i > 0)
            compare_rows(*state, types[i], dtypes[i], (ww_metric)((i + 1) % 3));
    }
}

/* Numbers that are rounded on their way: as the host rounds them. */
static void f32_is_rounded_on_the_device_as_on_the_host(void **state)
{
    float *numbers = normals(8, (int64_t)ROWS * DIM);
    for (int i = 1; i < 3; i++) {
        ww_collection *by_tensor = make(*state, WW_DOT, types[i], true), *by_host = make(*state, WW_DOT, types[i], true);
        ww_tensor tensor = tensor_make(*state, WW_F32, ROWS, numbers);
        CHECK_OK(add_tensor(by_tensor, &tensor));
        add_host(by_host, ROWS, numbers);
        check_same(by_tensor, by_host);
        ww_tensor_release(&tensor);
        ww_collection_destroy(by_tensor);
        ww_collection_destroy(by_host);
    }
    free(numbers);
}

/* Transposed, every other row, a part of the columns, one row repeated, a single vector. */
static void any_strides_will_do(void **state)
{
    ww_device *device = *state;
    enum { N = 20, WIDE = 2 * DIM };
    float *numbers = normals(9, (int64_t)2 * N * WIDE);
    ww_tensor wide = {0}, view = {0};
    CHECK_OK(ww_tensor_from_host(device, WW_F32, 2, (int64_t[]){2 * N, WIDE}, numbers, &wide));
    const ww_layout layouts[] = {
        {.rank = 2, .shape = {N, DIM}, .strides = {1, WIDE / 2}},
        {.rank = 2, .shape = {N, DIM}, .strides = {2 * WIDE, 1}, .offset = 3},
        {.rank = 2, .shape = {N, DIM}, .strides = {WIDE, 2}, .offset = 1},
        {.rank = 2, .shape = {N, DIM}, .strides = {0, 1}, .offset = WIDE},
        {.rank = 1, .shape = {DIM}, .strides = {1}, .offset = 5},
        {.rank = 2, .shape = {N, DIM}, .strides = {DIM, 1}, .offset = 1},
    };
    for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++) {
        const ww_layout *at = &layouts[l];
        const int64_t rows = at->rank == 2 ? N : 1;
        float dense[N * DIM];
        CHECK_OK(ww_tensor_view(&wide, at, &view));
        CHECK_OK(ww_tensor_to_host(&view, dense));
        ww_collection *by_tensor = make(device, WW_L2, WW_VECTOR_F32, false),
                      *by_host = make(device, WW_L2, WW_VECTOR_F32, false);
        CHECK_OK(add_tensor(by_tensor, &view));
        add_host(by_host, rows, dense);
        check_same(by_tensor, by_host);
        ww_tensor_release(&view);
        ww_collection_destroy(by_tensor);
        ww_collection_destroy(by_host);
    }
    ww_tensor_release(&wide);
    free(numbers);
}

static void upsert_takes_a_tensor_with_ids_and_payloads(void **state)
{
    test_random random = {4};
    ww_collection *by_tensor = collection_make(*state, DIM, WW_COSINE), *by_host = collection_make(*state, DIM, WW_COSINE);
    for (int turn = 0; turn < 2; turn++) {
        test_rows rows = test_rows_make(&random, 100, DIM, "row", turn * 50);
        CHECK_OK(ww_collection_upsert(by_host, &rows.rows));
        ww_tensor tensor = tensor_make(*state, WW_F32, 100, rows.vectors);
        rows.rows.vectors = NULL;
        rows.rows.tensor = &tensor;
        CHECK_OK(ww_collection_upsert(by_tensor, &rows.rows));
        ww_tensor_release(&tensor);
        test_rows_free(&rows);
    }
    check_same(by_tensor, by_host);
    ww_collection_destroy(by_tensor);
    ww_collection_destroy(by_host);
}

/* From a tensor on another device, and on the same one that was opened a second time. */
static void a_tensor_may_be_on_any_device(void **state)
{
    ww_device *device = *state;
    static const char *const names[] = {"cpu", "emulator:32", NULL};
    float *numbers = normals(10, (int64_t)ROWS * DIM);
    ww_collection *by_host = make(device, WW_COSINE, WW_VECTOR_F32, true);
    add_host(by_host, ROWS, numbers);
    for (int i = 0; i < 3; i++) {
        ww_device *other = NULL;
        CHECK_OK(ww_device_open(names[i] ? names[i] : device->info.id, &other));
        ww_collection *by_tensor = make(device, WW_COSINE, WW_VECTOR_F32, true);
        ww_tensor tensor = tensor_make(other, WW_F32, ROWS, numbers), queries = tensor_make(other, WW_F32, 7, numbers);
        CHECK_OK(add_tensor(by_tensor, &tensor));
        check_same(by_tensor, by_host);
        ww_query search = ww_query_default();
        int64_t rows[2][7 * 5];
        float scores[2][7 * 5];
        search.k = 5;
        search.query_tensor = &queries;
        CHECK_OK(ww_collection_search(by_tensor, &search, rows[0], scores[0]));
        search.query_tensor = NULL;
        search.queries = numbers;
        search.query_count = 7;
        search.dim = DIM;
        CHECK_OK(ww_collection_search(by_host, &search, rows[1], scores[1]));
        assert_memory_equal(rows[0], rows[1], sizeof rows[0]);
        assert_memory_equal(scores[0], scores[1], sizeof scores[0]);
        ww_tensor_release(&tensor);
        ww_tensor_release(&queries);
        ww_collection_destroy(by_tensor);
        ww_device_close(other);
    }
    ww_collection_destroy(by_host);
    free(numbers);
}

/* ---- queries ------------------------------------------------------------------------------------------------------------- */

static void check_results(ww_results *a, ww_results *b)
{
    assert_int_equal(ww_results_query_count(a), ww_results_query_count(b));
    for (int64_t q = 0; q < ww_results_query_count(a); q++) {
        const int64_t count = ww_results_count(a, q);
        assert_int_equal(count, ww_results_count(b, q));
        assert_int_equal(ww_results_total(a, q), ww_results_total(b, q));
        assert_memory_equal(ww_results_rows(a, q), ww_results_rows(b, q), (size_t)count * sizeof(int64_t));
        assert_memory_equal(ww_results_scores(a, q), ww_results_scores(b, q), (size_t)count * sizeof(float));
    }
    ww_results_destroy(a);
    ww_results_destroy(b);
}

/* Searches and ranges with `count` queries, which are numbers of `dtype` and `held` as f32. */
static void compare_queries(ww_collection *c, const ww_tensor *tensor, const float *held, int64_t count)
{
    ww_query query = ww_query_default(), by_host;
    ww_results *a = NULL, *b = NULL;
    query.k = 10;
    by_host = query;
    query.query_tensor = tensor;
    by_host.queries = held;
    by_host.query_count = count;
    by_host.dim = DIM;
    CHECK_OK(ww_collection_query(c, &query, &a));
    CHECK_OK(ww_collection_query(c, &by_host, &b));
    const float bound = ww_results_scores(b, 0)[9];
    check_results(a, b);
    ww_query range = ww_query_default(), range_by_host;
    range.mode = WW_QUERY_RANGE;
    range.bound = bound;
    range.limit = 40;
    range_by_host = range;
    range.query_tensor = tensor;
    range_by_host.queries = held;
    range_by_host.query_count = count;
    range_by_host.dim = DIM;
    CHECK_OK(ww_collection_query(c, &range, &a));
    CHECK_OK(ww_collection_query(c, &range_by_host, &b));
    check_results(a, b);
}

static void ask_with_tensors(ww_device *device, ww_vector_type type, ww_metric metric)
{
    static const int64_t counts[] = {1, 2, 5, 37};
    float *numbers = whole_numbers(11, (int64_t)ROWS * DIM), *queries = whole_numbers(12, (int64_t)37 * DIM);
    ww_collection *c = make(device, metric, type, false);
    add_host(c, ROWS, numbers);
    for (int i = 0; i < 4; i++)
        for (int t = 0; t < TYPES; t += 1 + (counts[i] > 5) * TYPES) {
            ww_tensor tensor = tensor_make(device, dtypes[t], counts[i], queries);
            compare_queries(c, &tensor, queries, counts[i]);
            ww_tensor_release(&tensor);
        }
    ww_collection_destroy(c);
    free(numbers);
    free(queries);
}

static void queries_of_a_tensor_find_what_those_of_the_host_find(void **state)
{
    ww_device *device = *state;
    for (int32_t screened = 0; screened < 2; screened++) {
        pretend_screen(device, screened);
        ask_with_tensors(device, WW_VECTOR_F32, screened ? WW_L2 : WW_COSINE);
        ask_with_tensors(device, screened ? WW_VECTOR_F16 : WW_VECTOR_U8, WW_DOT);
    }
    pretend_screen(device, false);
}

/* Lists so short that every query is asked again, and then without a screen: from the device each time. */
static void queries_of_a_tensor_that_are_asked_again_find_the_same(void **state)
{
    ww_device *device = *state;
    const device_tuning before = device->tuning;
    if (!device->backend->on_host) {
        pretend_screen(device, true);
        device->tuning.screen_list_capacity = 16;
    }
    float *numbers = malloc(sizeof(float[ROWS][DIM]));
    for (int64_t i = 0; i < (int64_t)ROWS * DIM; i++)
        numbers[i] = (float)(i % DIM); /* all rows are equal: nothing can be discarded */
    float *queries = normals(13, (int64_t)9 * DIM);
    ww_collection *c = make(device, WW_L2, WW_VECTOR_F32, false);
    add_host(c, ROWS, numbers);
    ww_tensor tensor = tensor_make(device, WW_F32, 9, queries);
    compare_queries(c, &tensor, queries, 9);
    ww_tensor_release(&tensor);
    ww_collection_destroy(c);
    pretend_screen(device, false);
    device->tuning = before;
    free(numbers);
    free(queries);
}

/* Memory of another library's, wrapped. */
static void memory_of_others_is_searched_in_place(void **state)
{
    ww_device *device = *state;
    float *numbers = normals(14, (int64_t)ROWS * DIM);
    ww_tensor ours = tensor_make(device, WW_F32, ROWS, numbers), theirs = {0};
    ww_foreign foreign = ww_foreign_default();
    CHECK_OK(ww_tensor_data(&ours, &foreign.data));
    CHECK_OK(ww_device_synchronize(device));
    foreign.dtype = WW_F32;
    foreign.layout = ours.layout;
    foreign.read_only = 1;
    CHECK_OK(ww_tensor_wrap(device, &foreign, &theirs));
    ww_collection *by_tensor = make(device, WW_DOT, WW_VECTOR_F32, false),
                  *by_host = make(device, WW_DOT, WW_VECTOR_F32, false);
    CHECK_OK(add_tensor(by_tensor, &theirs));
    add_host(by_host, ROWS, numbers);
    check_same(by_tensor, by_host);
    compare_queries(by_tensor, &theirs, numbers, ROWS);
    ww_tensor_release(&theirs);
    ww_tensor_release(&ours);
    ww_collection_destroy(by_tensor);
    ww_collection_destroy(by_host);
    free(numbers);
}

/* ---- without the host ---------------------------------------------------------------------------------------------------- */

static const backend *real;
static int64_t through_host, here, searched_here;

static ww_status counted_write(ww_device *device, row_range to, const void *rows, int64_t stride, int64_t *refused)
{
    through_host++;
    return real->rows_write(device, to, rows, stride, refused);
}

static ww_status counted_write_here(ww_device *device, row_range to, const void *rows, int64_t *refused)
{
    here++;
    return real->rows_write_here(device, to, rows, refused);
}

static ww_status counted_search(ww_device *device, const search_job *job)
{
    searched_here += job->queries_on_device;
    return real->rows_search(device, job);
}

static void tensors_on_the_device_do_not_pass_through_the_host(void **state)
{
    ww_device *device = *state;
    float *numbers = normals(15, (int64_t)ROWS * DIM);
    int64_t rows[5];
    float scores[5];
    real = device->backend;
    backend counting = *real;
    counting.rows_write = counted_write;
    counting.rows_write_here = real->rows_write_here ? counted_write_here : NULL;
    counting.rows_search = counted_search;
    through_host = here = searched_here = 0;
    ww_tensor tensor = tensor_make(device, WW_F32, ROWS, numbers), one = {0};
    CHECK_OK(ww_tensor_select(&tensor, 0, 3, &one));
    for (int i = 0; i < 3; i++) { /* f32, f16, bf16 */
        ww_collection *c = make(device, WW_COSINE, types[i], false);
        device->backend = &counting;
        CHECK_OK(add_tensor(c, &tensor));
        ww_query search = ww_query_default();
        search.query_tensor = &one;
        search.k = 5;
        CHECK_OK(ww_collection_search(c, &search, rows, scores));
        assert_int_equal(rows[0], 3);
        device->backend = real;
        ww_collection_destroy(c);
    }
    assert_int_equal(through_host > 0, real->on_host);
    assert_int_equal(here, real->on_host ? 0 : 3);
    assert_int_equal(searched_here, real->on_host ? 0 : 3);
    ww_tensor_release(&one);
    ww_tensor_release(&tensor);
    free(numbers);
}

/* ---- refusals ------------------------------------------------------------------------------------------------------------ */

static void check_refused(ww_collection *c, const ww_rows *rows, ww_status status, const char *says)
{
    snapshot before = snapshot_take(c);
    CHECK_FAILS(status, ww_collection_add(c, rows));
    if (!strstr(ww_error_message(), says))
        fail_msg("'%s' does not say '%s'", ww_error_message(), says);
    check_unchanged(c, &before);
}

static void a_tensor_that_is_no_rows_is_refused(void **state)
{
    ww_device *device = *state;
    float *numbers = normals(16, (int64_t)10 * DIM);
    ww_collection *c = make(device, WW_L2, WW_VECTOR_F32, false);
    add_host(c, 5, numbers);
    ww_tensor tensor = tensor_make(device, WW_F32, 10, numbers), other = {0}, halves = tensor_make(device, WW_F16, 10, numbers);
    ww_rows rows = ww_rows_default();
    rows.tensor = &(ww_tensor){0};
    check_refused(c, &rows, WW_INVALID_ARGUMENT, "rows->tensor");
    rows.tensor = &tensor;
    rows.vectors = numbers;
    check_refused(c, &rows, WW_INVALID_ARGUMENT, "both given");
    rows.vectors = NULL;
    rows.count = 9;
    check_refused(c, &rows, WW_DIMENSION_MISMATCH, "[10, 70]");
    rows.count = 10;
    rows.dim = 69;
    check_refused(c, &rows, WW_DIMENSION_MISMATCH, "dim is 69");
    rows.dim = 0;
    CHECK_OK(ww_tensor_narrow(&tensor, 1, 0, 69, &other));
    rows.tensor = &other;
    check_refused(c, &rows, WW_DIMENSION_MISMATCH, "[10, 69]");
    CHECK_OK(ww_tensor_unsqueeze(&tensor, 0, &tensor));
    rows.tensor = &tensor;
    check_refused(c, &rows, WW_DIMENSION_MISMATCH, "[1, 10, 70]");
    rows.tensor = &halves;
    check_refused(c, &rows, WW_INVALID_ARGUMENT, "is of f16; give f32");
    ww_tensor_release(&tensor);
    ww_tensor_release(&other);
    ww_tensor_release(&halves);
    ww_collection_destroy(c);
    free(numbers);
}

static void numbers_that_are_refused_are_named(void **state)
{
    static const struct {
        ww_vector_type type;
        float number;
        const char *says;
    } wrong[] = {{WW_VECTOR_F32, NAN, "row 7 of the batch (id '12'): column 66 is NaN"},
                 {WW_VECTOR_F32, 3e38f, "row 7 of the batch (id '12')"},
                 {WW_VECTOR_F16, 70000.0f, "column 66 is 70000: it is not finite, or more than 65504"},
                 {WW_VECTOR_BF16, INFINITY, "column 66 is inf"},
                 {WW_VECTOR_BF16, 3e38f, "row 7 of the batch (id '12')"},
                 {WW_VECTOR_I8, 0.5f, "column 66 is 0.5: i8 rows hold"}};
    ww_device *device = *state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        float *numbers = whole_numbers(17, (int64_t)10 * DIM);
        ww_collection *c = make(device, WW_L2, wrong[i].type, false);
        add_host(c, 5, numbers);
        numbers[7 * DIM + 66] = wrong[i].number;
        numbers[8 * DIM + 2] = wrong[i].number;
        ww_tensor tensor = tensor_make(device, WW_F32, 10, numbers);
        ww_rows rows = ww_rows_default();
        rows.tensor = &tensor;
        check_refused(c, &rows, WW_INVALID_ARGUMENT, wrong[i].says);
        ww_tensor_release(&tensor);
        ww_collection_destroy(c);
        free(numbers);
    }
}

static void queries_that_are_refused_are_named(void **state)
{
    ww_device *device = *state;
    float *numbers = normals(18, (int64_t)10 * DIM);
    int64_t rows[50];
    float scores[50];
    ww_collection *c = make(device, WW_L2, WW_VECTOR_F32, false);
    add_host(c, 10, numbers);
    numbers[6 * DIM + 5] = INFINITY;
    ww_tensor tensor = tensor_make(device, WW_F32, 10, numbers), wrong = tensor_make(device, WW_F64, 10, numbers);
    ww_query search = ww_query_default();
    search.k = 5;
    search.query_tensor = &tensor;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_search(c, &search, rows, scores));
    assert_non_null(strstr(ww_error_message(), "query 6: column 5 is inf"));
    search.queries = numbers;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_search(c, &search, rows, scores));
    assert_non_null(strstr(ww_error_message(), "both given"));
    search.queries = NULL;
    search.query_count = 3;
    CHECK_FAILS(WW_DIMENSION_MISMATCH, ww_collection_search(c, &search, rows, scores));
    search.query_count = 0;
    search.query_tensor = &wrong;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_collection_search(c, &search, rows, scores));
    assert_non_null(strstr(ww_error_message(), "is of f64"));
    ww_tensor_release(&tensor);
    ww_tensor_release(&wrong);
    ww_collection_destroy(c);
    free(numbers);
}

static void no_rows_and_no_queries_are_no_error(void **state)
{
    ww_collection *c = make(*state, WW_L2, WW_VECTOR_F32, false);
    ww_tensor none = {0};
    CHECK_OK(ww_tensor_zeros(*state, WW_F32, 2, (int64_t[]){0, DIM}, &none));
    CHECK_OK(add_tensor(c, &none));
    assert_int_equal(ww_collection_count(c), 0);
    ww_query query = ww_query_default();
    ww_results *results = NULL;
    query.query_tensor = &none;
    query.k = 3;
    CHECK_OK(ww_collection_query(c, &query, &results));
    assert_int_equal(ww_results_query_count(results), 0);
    ww_results_destroy(results);
    ww_tensor_release(&none);
    ww_collection_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_a_tensor_are_those_of_the_host),
        cmocka_unit_test(f32_is_rounded_on_the_device_as_on_the_host),
        cmocka_unit_test(any_strides_will_do),
        cmocka_unit_test(upsert_takes_a_tensor_with_ids_and_payloads),
        cmocka_unit_test(a_tensor_may_be_on_any_device),
        cmocka_unit_test(queries_of_a_tensor_find_what_those_of_the_host_find),
        cmocka_unit_test(queries_of_a_tensor_that_are_asked_again_find_the_same),
        cmocka_unit_test(memory_of_others_is_searched_in_place),
        cmocka_unit_test(tensors_on_the_device_do_not_pass_through_the_host),
        cmocka_unit_test(a_tensor_that_is_no_rows_is_refused),
        cmocka_unit_test(numbers_that_are_refused_are_named),
        cmocka_unit_test(queries_that_are_refused_are_named),
        cmocka_unit_test(no_rows_and_no_queries_are_no_error),
    };
    return RUN_ON_EVERY_DEVICE("collection_tensor", tests);
}
