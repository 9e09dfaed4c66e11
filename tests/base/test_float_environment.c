/* The caller's floating-point environment changes nothing: every call that computes gives the same bits under every rounding
 * mode, with denormals flushed and with traps, leaves the environment as it was, and gives callbacks the caller's.
 */
#include <stdlib.h>
#include <string.h>

#include "support/calls/float_control.h"
#include "support/calls/tensor.h"
#include "support/collections.h"
#include "support/devices.h"
#include "support/pretend/pretend.h"
#include "support/scratch.h"

enum { DIM = 70, ROWS = 150, QUERIES = 5, K = 6 };

/* Bytes of all that was computed. */
static struct {
    char bytes[1 << 20];
    size_t size;
} answer, right;

static void note(const void *bytes, size_t size)
{
    assert_true(answer.size + size <= sizeof answer.bytes);
    memcpy(answer.bytes + answer.size, bytes, size);
    answer.size += size;
}

static void compare_under_all(void (*compute)(ww_device *device), ww_device *device)
{
    for (int number = 0; number < ENVIRONMENTS; number++) {
        hostile = environment(number);
        answer.size = 0;
        compute(device);
        if (number == 0)
            right = answer;
        else if (answer.size != right.size || memcmp(answer.bytes, right.bytes, right.size) != 0)
            fail_msg("other bits under control word %llx", (unsigned long long)hostile);
    }
    assert_true(right.size > 0);
}

/* ---- collections --------------------------------------------------------------------------------------------------------- */

/* Vectors of ordinary size, and some so small that flushing denormals would make them zero. */
static void make_vectors(float *vectors, int64_t count, uint64_t seed)
{
    test_random random = {seed};
    random_normals(&random, vectors, count * DIM);
    for (int64_t i = 0; i < count; i += 4)
        for (int64_t j = 0; j < DIM; j++)
            vectors[i * DIM + j] *= 0x1p-120f;
}

static void note_search(ww_collection *c, const float *queries, int64_t count)
{
    int64_t rows[QUERIES * K];
    float scores[QUERIES * K];
    ww_query search = ww_query_default();
    search.queries = queries;
    search.query_count = count;
    search.dim = DIM;
    search.k = K;
    UNDER(ww_collection_search(c, &search, rows, scores));
    note(rows, (size_t)count * K * sizeof *rows);
    note(scores, (size_t)count * K * sizeof *scores);
}

static void note_query(ww_collection *c, const float *queries)
{
    ww_query query = ww_query_default();
    ww_results *results;
    query.queries = queries;
    query.query_count = 1;
    query.dim = DIM;
    query.k = K;
    query.fetch = WW_FETCH_VECTORS;
    UNDER(ww_collection_query(c, &query, &results));
    note(ww_results_scores(results, 0), K * sizeof(float));
    ww_results_destroy(results);
}

static void note_range(ww_collection *c, const float *queries)
{
    ww_query range = ww_query_default();
    range.mode = WW_QUERY_RANGE;
    ww_results *results = NULL;
    range.queries = queries;
    range.query_count = 1;
    range.dim = DIM;
    range.bound = 0.0f;
    range.limit = K;
    UNDER(ww_collection_query(c, &range, &results));
    note(ww_results_rows(results, 0), (size_t)ww_results_count(results, 0) * sizeof(int64_t));
    note(ww_results_scores(results, 0), (size_t)ww_results_count(results, 0) * sizeof(float));
    ww_results_destroy(results);
}

static void note_collection(ww_device *device, ww_metric metric, ww_screen screen)
{
    static float vectors[ROWS * DIM], queries[QUERIES * DIM];
    float score;
    make_vectors(vectors, ROWS, 1);
    make_vectors(queries, QUERIES, 2);
    ww_collection_config config = ww_collection_config_default();
    config.dim = DIM;
    config.metric = metric;
    config.screen = screen;
    ww_collection *c;
    UNDER(ww_collection_create(device, &config, &c));
    ww_rows rows = ww_rows_default();
    rows.vectors = vectors;
    rows.count = ROWS;
    rows.dim = DIM;
    UNDER(ww_collection_add(c, &rows));
    note_search(c, queries, QUERIES);
    note_search(c, queries, 1);
    note_search(c, queries + DIM, 1);
    note_query(c, queries + DIM);
    note_range(c, queries + DIM);
    const char *ids[] = {"3", "77"};
    UNDER(ww_collection_remove(c, ids, 2));
    UNDER(ww_collection_compact(c, NULL, NULL));
    UNDER(ww_collection_check(c, NULL, NULL, NULL));
    note_search(c, queries, QUERIES);
    UNDER(ww_score(metric, vectors, queries, DIM, &score));
    note(&score, sizeof score);
    ww_collection_destroy(c);
}

static void search_everything(ww_device *device)
{
    for (int metric = WW_COSINE; metric <= WW_DOT; metric++)
        for (int screen = WW_SCREEN_INT8; screen <= WW_SCREEN_NONE; screen++)
            note_collection(device, (ww_metric)metric, (ww_screen)screen);
}

static void collections_give_the_same_bits(void **state)
{
    ww_device *device = *state;
    const device_tuning tuning = *pretend_tuning(device);
    pretend_screen(device, true); /* so that a single query of so few rows is screened, too */
    compare_under_all(search_everything, device);
    pretend_screen(device, false);
    *pretend_tuning(device) = tuning;
}

/* ---- callbacks ----------------------------------------------------------------------------------------------------------- */

static uint64_t seen;

static int look(int64_t done, int64_t total, void *user)
{
    (void)done, (void)total, (void)user;
    seen = float_control() & ~(uint64_t)FLOAT_CONTROL_FLAGS;
    return 0;
}

static void a_callback_has_the_callers_environment(void **state)
{
    static float vectors[ROWS * DIM];
    make_vectors(vectors, ROWS, 1);
    ww_collection *c = collection_make(*state, DIM, WW_L2);
    ww_rows rows = ww_rows_default();
    rows.vectors = vectors;
    rows.count = ROWS;
    rows.dim = DIM;
    rows.progress = look;
    for (int number = 1; number < 8; number++) {
        hostile = environment(number);
        seen = FLOAT_CONTROL_DEFAULT;
        UNDER(ww_collection_add(c, &rows));
        assert_true(seen == (taken() & ~(uint64_t)FLOAT_CONTROL_FLAGS));
    }
    ww_collection_destroy(c);
}

/* ---- tensors and quantized matrices -------------------------------------------------------------------------------------- */

static void note_storage(const ww_storage *storage)
{
    uint8_t *bytes = storage_bytes(storage);
    note(bytes, (size_t)ww_storage_elements(storage) * ww_dtype_bytes(ww_storage_dtype(storage)));
    free(bytes);
}

static void compute_tensors(ww_device *device)
{
    for (const tensor_call *call = tensor_calls; call->name; call++) {
        tensor_operands o = tensor_operands_make(device);
        ww_tensor out = {0};
        CHECK_OK(ww_device_seed(device, 7));
        UNDER(call->call(&o, &out));
        if (out.storage && strcmp(call->name, "create") != 0) /* "create" does not initialise its elements */
            note_storage(out.storage);
        note_storage(o.target.tensor.storage);
        ww_tensor_release(&out);
        tensor_operands_free(&o);
    }
}

static void tensors_give_the_same_bits(void **state)
{
    compare_under_all(compute_tensors, *state);
}

static void compute_quant(ww_device *device)
{
    enum { MATRIX_ROWS = 9, COLS = 256, COLUMNS = 3 };
    static float values[MATRIX_ROWS * COLS], decoded[MATRIX_ROWS * COLS];
    static const ww_quant_type types[] = {WW_QUANT_Q4_0, WW_QUANT_Q8_0, WW_QUANT_Q4_K,
                                          WW_QUANT_Q6_K, WW_QUANT_F16,  WW_QUANT_F32};
    const int64_t shape[2] = {COLUMNS, COLS};
    test_random random = {3};
    random_normals(&random, values, MATRIX_ROWS * COLS);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        ww_quant *matrix;
        ww_tensor x = {0}, out = {0};
        UNDER(ww_quant_from_f32(device, types[t], values, MATRIX_ROWS, COLS, 0, &matrix));
        UNDER(ww_quant_read_f32(matrix, 0, MATRIX_ROWS, decoded));
        note(decoded, sizeof decoded);
        CHECK_OK(ww_tensor_from_host(device, WW_F32, 2, shape, values, &x));
        UNDER(ww_quant_matmul(matrix, &x, &out));
        note_storage(out.storage);
        ww_tensor_release(&out);
        ww_tensor_release(&x);
        ww_quant_destroy(matrix);
    }
}

static void quantized_matrices_give_the_same_bits(void **state)
{
    compare_under_all(compute_quant, *state);
}

/* ---- files --------------------------------------------------------------------------------------------------------------- */

static void read_files(ww_device *device)
{
    static const char csv[] = "0.1,1e-40,3.00000017881393432617187500000001\n-0.3,16777217,1e-46\n";
    (void)device;
    ww_matrix *matrix;
    float read[6];
    UNDER(ww_matrix_open(scratch_write("numbers.csv", csv, sizeof csv - 1), &matrix));
    UNDER(ww_matrix_read_f32(matrix, 0, 2, read));
    note(read, sizeof read);
    ww_matrix_close(matrix);
    static const char header[] = "\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
    char npy[128 + 48];
    const double doubles[6] = {0.1, 1e-40, 1.0 + 0x1p-24, -0.1, 1.0 + 0x1.8p-23, 1e-46};
    memset(npy, ' ', sizeof npy);
    memcpy(npy, header, sizeof header - 1);
    npy[127] = '\n';
    memcpy(npy + 128, doubles, sizeof doubles);
    UNDER(ww_matrix_open(scratch_write("numbers.npy", npy, sizeof npy), &matrix));
    UNDER(ww_matrix_read_f32(matrix, 0, 2, read));
    note(read, sizeof read);
    ww_matrix_close(matrix);
}

static void readers_give_the_same_bits(void **state)
{
    assert_int_equal(scratch_setup(state), 0);
    compare_under_all(read_files, NULL);
    assert_int_equal(scratch_teardown(state), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collections_give_the_same_bits),
        cmocka_unit_test(a_callback_has_the_callers_environment),
        cmocka_unit_test(tensors_give_the_same_bits),
        cmocka_unit_test(quantized_matrices_give_the_same_bits),
    };
    const struct CMUnitTest of_files[] = {cmocka_unit_test(readers_give_the_same_bits)};
    const int failed = cmocka_run_group_tests(of_files, NULL, NULL);
    return RUN_ON_EVERY_DEVICE("float environments", tests) + failed;
}
