/* `warpwave search`: its answers compared with naive ones, the files it writes, ranges, and every file it must refuse. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic/row_values.h"
#include "command/search_files.h"
#include "warpwave/json.h"

/* ---- naive answers ------------------------------------------------------------------------------------------------------- */

typedef struct candidate {
    float score;
    int64_t row;
} candidate;

static ww_metric sorting;

static int compare_candidates(const void *left, const void *right)
{
    const candidate *a = left, *b = right;
    if (a->score != b->score)
        return (sorting == WW_L2) == (a->score < b->score) ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

/* Every row from `skip` on, best first. */
static void naive(ww_metric metric, const float *query, int64_t skip, int64_t take, candidate *out)
{
    for (int64_t i = 0; i < take; i++) {
        out[i].row = skip + i;
        CHECK_OK(ww_score(metric, base[skip + i], query, DIM, &out[i].score));
    }
    sorting = metric;
    qsort(out, (size_t)take, sizeof *out, compare_candidates);
}

/* The metric as a textbook has it, in double. */
static double textbook(ww_metric metric, const float *a, const float *b)
{
    double dot = 0.0, aa = 0.0, bb = 0.0, dd = 0.0;
    for (int i = 0; i < DIM; i++) {
        dot += (double)a[i] * b[i];
        aa += (double)a[i] * a[i];
        bb += (double)b[i] * b[i];
        dd += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    }
    return metric == WW_L2 ? sqrt(dd) : metric == WW_DOT ? dot : dot / sqrt(aa * bb);
}

static void check_neighbour(const json_t *neighbour, ww_metric metric, int query, candidate expected)
{
    assert_int_equal(row_of(neighbour), expected.row);
    const float score = (float)json_number_value(json_object_get(neighbour, "score"));
    assert_memory_equal(&score, &expected.score, sizeof score); /* nine digits read back to the same bits */
    assert_true(fabs((double)score - textbook(metric, base[expected.row], queries[query])) < 1e-4);
}

static void check_results(const json_t *report, ww_metric metric, int64_t skip, int64_t take, int64_t k)
{
    candidate expected[ROWS];
    const json_t *results = json_object_get(report, "results");
    assert_int_equal(json_array_size(results), QUERIES);
    for (int query = 0; query < QUERIES; query++) {
        const json_t *found = json_array_get(results, (size_t)query);
        naive(metric, queries[query], skip, take, expected);
        assert_int_equal(json_array_size(found), k < take ? k : take); /* missing neighbours are left out */
        for (size_t i = 0; i < json_array_size(found); i++)
            check_neighbour(json_array_get(found, i), metric, query, expected[i]);
    }
}

/* ---- answers ------------------------------------------------------------------------------------------------------------- */

static void results_equal_a_naive_search_for_each_metric(void **state)
{
    (void)state;
    for (int metric = WW_COSINE; metric <= WW_DOT; metric++) {
        json_t *report = COMMAND_JSON("search", "--base", scratch_path("base.npy"), "--queries", scratch_path("queries.fbin"),
                                      "-k", "9", "--metric", ww_metric_name((ww_metric)metric), "--device", "cpu", "--json");
        check_results(report, (ww_metric)metric, 0, ROWS, K);
        json_decref(report);
    }
}

/* Scores are those of the stored numbers: the answers are compared with a naive search of the rounded rows. */
static void rows_are_stored_as_their_type_says(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int32_t type;
    } types[] = {{"f32", ROW_F32}, {"f16", ROW_F16}, {"bf16", ROW_BF16}};
    static float given[ROWS][DIM];
    memcpy(given, base, sizeof base);
    for (int i = 0; i < 3; i++) {
        for (int r = 0; r < ROWS; r++) {
            uint32_t elements[DIM];
            assert_true(row_narrow(types[i].type, given[r], DIM, elements));
            row_widen(types[i].type, elements, DIM, base[r]);
        }
        json_t *report = COMMAND_JSON("search", "--base", scratch_path("base.npy"), "--queries", scratch_path("queries.fbin"),
                                      "-k", "9", "--metric", "dot", "--type", types[i].name, "--device", "cpu", "--json");
        assert_string_equal(json_string_value(json_object_get(report, "type")), types[i].name);
        check_results(report, WW_DOT, 0, ROWS, K);
        json_decref(report);
    }
    memcpy(base, given, sizeof base);
}

/* Files of bytes are used unchanged; a value that is not an integer is refused with its row and column. */
static void rows_of_bytes_are_read_from_files_of_bytes(void **state)
{
    (void)state;
    enum { MANY = 40, WIDE = 5 };
    uint8_t file[8 + MANY * WIDE] = {MANY, 0, 0, 0, WIDE};
    test_random random = {8};
    for (int i = 8; i < 8 + MANY * WIDE; i++)
        file[i] = (uint8_t)random_bits(&random);
    scratch_write("bytes.u8bin", file, sizeof file);
    scratch_write("bytes.i8bin", file, sizeof file);
    static const char *const types[2][2] = {{"u8", "bytes.u8bin"}, {"i8", "bytes.i8bin"}};
    for (int i = 0; i < 2; i++) {
        const char *path = scratch_path(types[i][1]);
        json_t *f32 = COMMAND_JSON("search", "--base", path, "--queries", path, "-k", "4", "--json", "--device", "cpu");
        json_t *bytes = COMMAND_JSON("search", "--base", path, "--queries", path, "-k", "4", "--json", "--device", "cpu",
                                     "--type", types[i][0]);
        assert_true(json_equal(json_object_get(f32, "results"), json_object_get(bytes, "results")));
        json_decref(f32);
        json_decref(bytes);
    }
    command_result refused = COMMAND_RUN("search", "--base", scratch_path("base.npy"), "--queries",
                                         scratch_path("queries.fbin"), "--type", "i8", "--device", "cpu");
    assert_int_not_equal(refused.code, 0);
    assert_non_null(strstr(refused.err, "row 0 of the batch"));
    assert_non_null(strstr(refused.err, "column 0 is "));
    assert_non_null(strstr(refused.err, "i8 rows hold integers from -128 to 127"));
    command_free(&refused);
}

static void the_report_describes_the_search(void **state)
{
    (void)state;
    static const char *const times[] = {"load_seconds", "add_seconds", "search_seconds"};
    json_t *report = COMMAND_JSON("search", "--base", scratch_path("base.fbin"), "--queries", scratch_path("queries.fbin"),
                                  "-k", "9", "--metric", "l2", "--device", "cpu", "--repeat", "4", "--json");
    assert_string_equal(json_string_value(json_object_get(report, "device")), "cpu");
    assert_string_equal(json_string_value(json_object_get(report, "metric")), "l2");
    assert_int_equal(json_integer_value(json_object_get(report, "rows")), ROWS);
    assert_int_equal(json_integer_value(json_object_get(report, "dim")), DIM);
    assert_int_equal(json_integer_value(json_object_get(report, "queries")), QUERIES);
    assert_int_equal(json_integer_value(json_object_get(report, "k")), K);
    assert_int_equal(json_integer_value(json_object_get(report, "repeat")), 4);
    for (int i = 0; i < 3; i++)
        assert_true(json_real_value(json_object_get(report, times[i])) > 0.0);
    assert_null(json_object_get(report, "rows_checked"));
    json_decref(report);
    report = COMMAND_JSON("search", "--base", scratch_path("base.fbin"), "--queries", scratch_path("queries.fbin"), "--device",
                          "cpu", "--check", "--json");
    assert_int_equal(json_integer_value(json_object_get(report, "rows_checked")), ROWS);
    json_decref(report);
}

static void rows_are_numbered_as_in_the_file(void **state)
{
    (void)state;
    json_t *report = COMMAND_JSON("search", "--base", scratch_path("base.npy"), "--queries", scratch_path("queries.fbin"), "-k",
                                  "9", "--metric", "l2", "--rows-skip", "120", "--rows-take", "50", "--json");
    assert_int_equal(json_integer_value(json_object_get(report, "rows")), 50);
    check_results(report, WW_L2, 120, 50, K);
    const json_t *first = json_array_get(json_array_get(json_object_get(report, "results"), 0), 0);
    assert_int_equal(atoi(json_string_value(json_object_get(first, "id"))), row_of(first));
    json_decref(report);
}

static void missing_neighbours_are_left_out(void **state)
{
    (void)state;
    json_t *report = COMMAND_JSON("search", "--base", scratch_path("base.npy"), "--queries", scratch_path("queries.fbin"), "-k",
                                  "2048", "--metric", "dot", "--rows-skip", "297", "--json");
    check_results(report, WW_DOT, 297, 3, 2048);
    json_decref(report);
    report = COMMAND_JSON("search", "--base", scratch_path("base.npy"), "--queries", scratch_path("queries.fbin"), "-k", "2",
                          "--metric", "dot", "--rows-take", "0", "--json");
    check_results(report, WW_DOT, 0, 0, 2);
    json_decref(report);
}

static void files_hold_the_same_and_json_then_has_no_results(void **state)
{
    (void)state;
    static int32_t rows[QUERIES][K];
    static float scores[QUERIES][K];
    candidate expected[ROWS];
    ww_matrix *matrix;
    json_t *report = COMMAND_JSON("search", "--base", scratch_path("base.npy"), "--queries", scratch_path("queries.fbin"), "-k",
                                  "9", "--metric", "cosine", "--rows-skip", "5", "--out-neighbors", scratch_path("found.ibin"),
                                  "--out-distances", scratch_path("found.fbin"), "--json");
    assert_null(json_object_get(report, "results"));
    json_decref(report);
    CHECK_OK(ww_matrix_open(scratch_path("found.ibin"), &matrix));
    CHECK_OK(ww_matrix_read_i32(matrix, 0, QUERIES, rows[0]));
    ww_matrix_close(matrix);
    CHECK_OK(ww_matrix_open(scratch_path("found.fbin"), &matrix));
    CHECK_OK(ww_matrix_read_f32(matrix, 0, QUERIES, scores[0]));
    ww_matrix_close(matrix);
    for (int query = 0; query < QUERIES; query++) {
        naive(WW_COSINE, queries[query], 5, ROWS - 5, expected);
        for (int i = 0; i < K; i++) {
            assert_int_equal(rows[query][i], expected[i].row);
            assert_memory_equal(&scores[query][i], &expected[i].score, sizeof(float));
        }
    }
}

static void files_have_minus_one_and_infinity_for_missing_neighbours(void **state)
{
    (void)state;
    int32_t rows[QUERIES][4];
    float scores[QUERIES][4];
    ww_matrix *matrix;
    COMMAND_SAYS(0, "wrote ", "search", "--base", scratch_path("base.npy"), "--queries", scratch_path("queries.fbin"), "-k",
                 "4", "--metric", "l2", "--rows-skip", "298", "--out-neighbors", scratch_path("few.npy"), "--out-distances",
                 scratch_path("few.fbin"));
    CHECK_OK(ww_matrix_open(scratch_path("few.npy"), &matrix));
    CHECK_OK(ww_matrix_read_i32(matrix, 0, QUERIES, rows[0]));
    ww_matrix_close(matrix);
    CHECK_OK(ww_matrix_open(scratch_path("few.fbin"), &matrix));
    CHECK_OK(ww_matrix_read_f32(matrix, 0, QUERIES, scores[0]));
    ww_matrix_close(matrix);
    for (int query = 0; query < QUERIES; query++) {
        assert_true(rows[query][0] >= 298 && rows[query][1] >= 298);
        assert_int_equal(rows[query][2], -1);
        assert_int_equal(rows[query][3], -1);
        assert_true(isfinite(scores[query][1]) && isinf(scores[query][2]) && scores[query][3] > 0.0f);
    }
}

static void an_infinite_distance_is_null(void **state)
{
    (void)state;
    static const float far_base[2] = {1.5e19f, 1.0f},
                       far_query[1] = {-1.5e19f}; /* squares are finite, the difference's is not */
    CHECK_OK(ww_matrix_write_f32(scratch_path("far.fbin"), far_base, 2, 1));
    CHECK_OK(ww_matrix_write_f32(scratch_path("farq.fbin"), far_query, 1, 1));
    json_t *report = COMMAND_JSON("search", "--base", scratch_path("far.fbin"), "--queries", scratch_path("farq.fbin"), "-k",
                                  "2", "--metric", "l2", "--json");
    const json_t *found = json_array_get(json_object_get(report, "results"), 0);
    assert_int_equal(row_of(json_array_get(found, 0)), 1);
    assert_true(json_is_real(json_object_get(json_array_get(found, 0), "score")));
    assert_true(json_is_null(json_object_get(json_array_get(found, 1), "score")));
    json_decref(report);
}

/* 69 MB as f32, which is more than one piece of 64 MiB: rows on both sides of the seam are found under their numbers. */
static void a_base_of_several_pieces_is_added_whole(void **state)
{
    (void)state;
    enum { MANY = 270000, WIDE = 64, SEAM = (64 << 20) / (WIDE * 4), ASKED = 4 };
    static const int asked[ASKED] = {0, SEAM - 1, SEAM, MANY - 1};
    uint32_t *words = malloc(8 + (size_t)MANY * WIDE);
    float far[ASKED][WIDE];
    test_random random = {7};
    assert_non_null(words);
    words[0] = MANY;
    words[1] = WIDE;
    for (size_t i = 0; i < (size_t)MANY * WIDE / 4; i++)
        words[2 + i] = (uint32_t)random_bits(&random);
    for (int i = 0; i < ASKED; i++)
        for (int j = 0; j < WIDE; j++)
            far[i][j] = (float)((const uint8_t *)(words + 2))[(size_t)asked[i] * WIDE + (size_t)j];
    scratch_write("many.u8bin", words, 8 + (size_t)MANY * WIDE);
    free(words);
    CHECK_OK(ww_matrix_write_f32(scratch_path("asked.npy"), far[0], ASKED, WIDE));
    json_t *report = COMMAND_JSON("search", "--base", scratch_path("many.u8bin"), "--queries", scratch_path("asked.npy"), "-k",
                                  "1", "--metric", "l2", "--device", "cpu", "--json");
    assert_int_equal(json_integer_value(json_object_get(report, "rows")), MANY);
    for (size_t i = 0; i < ASKED; i++) {
        const json_t *nearest = json_array_get(json_array_get(json_object_get(report, "results"), i), 0);
        assert_int_equal(row_of(nearest), asked[i]);
        assert_true(json_number_value(json_object_get(nearest, "score")) == 0.0);
    }
    json_decref(report);
}

static void the_table_shows_the_first_queries(void **state)
{
    (void)state;
    char line[128];
    candidate expected[ROWS];
    command_result result = COMMAND_RUN("search", "--base", scratch_path("base.npy"), "--queries", scratch_path("queries.fbin"),
                                        "-k", "9", "--metric", "l2", "--device", "cpu");
    assert_int_equal(result.code, 0);
    assert_string_equal(result.err, ""); /* no bar if stderr is not a terminal */
    naive(WW_L2, queries[2], 0, ROWS, expected);
    for (int i = 0; i < K; i++) {
        snprintf(line, sizeof line, "%12lld  %15.9g  %lld\n", (long long)expected[i].row, (double)expected[i].score,
                 (long long)expected[i].row);
        assert_non_null(strstr(result.out, line));
    }
    assert_non_null(strstr(result.out, "device   cpu: "));
    assert_non_null(strstr(result.out, "query 0\n"));
    assert_null(strstr(result.out, "query 3\n"));
    assert_non_null(strstr(result.out, "4 more queries"));
    assert_non_null(strstr(result.out, "loaded in "));
    command_free(&result);
}

/* ---- refusals ------------------------------------------------------------------------------------------------------------ */

#define SEARCH_IN(base_path, ...)                                                                                              \
    "search", "--base", base_path, "--queries", scratch_path("queries.fbin"), "-k", "2", "--metric", "l2", __VA_ARGS__

static void ranges_past_the_file_are_usage_errors(void **state)
{
    (void)state;
    COMMAND_SAYS(2, "--rows-skip 301: ", SEARCH_IN(scratch_path("base.npy"), "--rows-skip", "301"));
    COMMAND_SAYS(2, "--rows-take 301: ", SEARCH_IN(scratch_path("base.npy"), "--rows-take", "301"));
    COMMAND_SAYS(2, "has only 5 rows after --rows-skip 295",
                 SEARCH_IN(scratch_path("base.npy"), "--rows-skip", "295", "--rows-take", "6"));
    COMMAND_SAYS(2, "--rows-take 9223372036854775807: ",
                 SEARCH_IN(scratch_path("base.npy"), "--rows-skip", "1", "--rows-take", "9223372036854775807"));
}

/* For each query, all rows up to a bound that its results have, and their count. */
static void a_bound_gives_all_rows_within_it(void **state)
{
    (void)state;
    candidate all[ROWS];
    for (int metric = 0; metric < 3; metric++) {
        char bound[32];
        naive((ww_metric)metric, queries[2], 0, ROWS, all);
        snprintf(bound, sizeof bound, "%.9g", (double)all[20].score);
        json_t *report = COMMAND_JSON("search", "--base", scratch_path("base.npy"), "--queries", scratch_path("queries.fbin"),
                                      metric == WW_L2 ? "--radius" : "--min-score", bound, "--metric",
                                      ww_metric_name((ww_metric)metric), "--limit", "15", "--json");
        const json_t *results = json_array_get(json_object_get(report, "results"), 2);
        assert_int_equal(json_integer_value(json_array_get(json_object_get(report, "totals"), 2)), 21);
        assert_int_equal(json_array_size(json_object_get(report, "totals")), QUERIES);
        assert_int_equal(json_array_size(results), 15);
        for (size_t i = 0; i < 15; i++)
            check_neighbour(json_array_get(results, i), (ww_metric)metric, 2, all[i]);
        json_decref(report);
    }
    COMMAND_SAYS(0, "rows within the bound: 21", "search", "--base", scratch_path("base.npy"), "--queries",
                 scratch_path("queries.fbin"), "--metric", "l2", "--radius", "1e9", "--rows-take", "21", "--limit", "0");
}

static void bounds_that_make_no_sense_are_usage_errors(void **state)
{
    (void)state;
    const char *absent = "/nowhere/at/all.npy";
    COMMAND_SAYS(2, "--radius and --min-score: give one of them", SEARCH_IN(absent, "--radius", "1", "--min-score", "1"));
    COMMAND_SAYS(2, "--min-score does not go with --metric l2; give --radius", SEARCH_IN(absent, "--min-score", "1"));
    COMMAND_SAYS(2, "--radius does not go with --metric cosine; give --min-score", "search", "--base", absent, "--queries",
                 absent, "--radius", "1");
    COMMAND_SAYS(2, "--radius 'far': it must be a number from 0", SEARCH_IN(absent, "--radius", "far"));
    COMMAND_SAYS(2, "--radius '-1': it must be a number from 0", SEARCH_IN(absent, "--radius=-1"));
    COMMAND_SAYS(2, "--limit goes with --radius or --min-score", SEARCH_IN(absent, "--limit", "5"));
    COMMAND_SAYS(2, "--limit", SEARCH_IN(absent, "--radius", "1", "--limit", "-1"));
}

static void an_index_reads_some_lists(void **state)
{
    (void)state;
    json_t *report = COMMAND_JSON("search", "--base", scratch_path("base.fbin"), "--queries", scratch_path("queries.fbin"),
                                  "-k", "9", "--metric", "l2", "--device", "cpu", "--nlist", "8", "--nprobe", "2", "--json");
    const json_t *index = json_object_get(report, "index");
    const int64_t rows = json_integer_value(json_object_get(index, "rows_read"));
    assert_true(json_integer_value(json_object_get(index, "lists_read")) >= 2 * QUERIES);
    assert_true(rows > 0 && rows < (int64_t)QUERIES * ROWS);
    assert_true(json_is_false(json_object_get(json_object_get(report, "statistics"), "exact")));
    json_decref(report);
    report = COMMAND_JSON("search", "--base", scratch_path("base.fbin"), "--queries", scratch_path("queries.fbin"), "-k", "9",
                          "--metric", "l2", "--device", "cpu", "--nlist", "8", "--nprobe", "100", "--json");
    check_results(report, WW_L2, 0, ROWS, K); /* all lists: the exact search */
    assert_true(json_is_true(json_object_get(json_object_get(report, "statistics"), "exact")));
    json_decref(report);
    const char *absent = "/nowhere/at/all.npy";
    COMMAND_SAYS(2, "--nlist goes with --nprobe or --recall", SEARCH_IN(absent, "--nlist", "5"));
    COMMAND_SAYS(2, "--nprobe and --recall: give one of them", SEARCH_IN(absent, "--nprobe", "5", "--recall", "0.9"));
    COMMAND_SAYS(2, "--recall '1.5': it must be a number", SEARCH_IN(absent, "--recall", "1.5"));
    COMMAND_SAYS(2, "are for the nearest k", SEARCH_IN(absent, "--nprobe", "5", "--radius", "1"));
}

static void output_paths_are_checked_before_the_work(void **state)
{
    (void)state;
    const char *absent = "/nowhere/at/all.npy"; /* is never opened: the output is looked at first */
    COMMAND_SAYS(2, "--out-neighbors 'x.txt': the file name must end in .ibin or .npy",
                 SEARCH_IN(absent, "--out-neighbors", "x.txt"));
    COMMAND_SAYS(2, "--out-distances 'x.ibin': the file name must end in .fbin or .npy",
                 SEARCH_IN(absent, "--out-distances", "x.ibin"));
    COMMAND_SAYS(3, "cannot write to the directory '/nowhere'", SEARCH_IN(absent, "--out-neighbors", "/nowhere/x.ibin"));
    COMMAND_SAYS(2, "are the same file", SEARCH_IN(absent, "--out-neighbors", "x.npy", "--out-distances", "x.npy"));
}

static void bad_files_are_exit_code_3(void **state)
{
    (void)state;
    static const float other[2][3] = {{1, 2, 3}, {4, 5, 6}};
    static float poison[ROWS][DIM];
    CHECK_OK(ww_matrix_write_f32(scratch_path("other.npy"), other[0], 2, 3));
    memcpy(poison, base, sizeof poison);
    poison[200][5] = NAN;
    CHECK_OK(ww_matrix_write_f32(scratch_path("poison.npy"), poison[0], ROWS, DIM));
    scratch_write("short.npy", "\x93NUMPY", 6);
    COMMAND_SAYS(3, "absent.npy", SEARCH_IN(scratch_path("absent.npy"), "--json"));
    COMMAND_SAYS(3, "short.npy", SEARCH_IN(scratch_path("short.npy"), "--json"));
    COMMAND_SAYS(3, "base.xyz", SEARCH_IN(scratch_path("base.xyz"), "--json"));
    COMMAND_SAYS(3, "vectors of dimension 3", SEARCH_IN(scratch_path("other.npy"), "--json"));
    COMMAND_SAYS(3, "row 200, column 5 is NaN", SEARCH_IN(scratch_path("poison.npy"), "--json"));
    COMMAND_SAYS(3, "row 200, column 5 is NaN", SEARCH_IN(scratch_path("poison.npy"), "--rows-skip", "160"));
    poison[200][5] = 3e38f; /* finite, but its square is not: the collection refuses it, and numbers the rows of a batch */
    CHECK_OK(ww_matrix_write_f32(scratch_path("large.npy"), poison[0], ROWS, DIM));
    COMMAND_SAYS(3, "row 40 of the batch", SEARCH_IN(scratch_path("large.npy"), "--rows-skip", "160"));
    COMMAND_SAYS(3, "starts at row 160 of the file", SEARCH_IN(scratch_path("large.npy"), "--rows-skip", "160"));
    COMMAND_SAYS(3, "query 200", "search", "--base", scratch_path("base.npy"), "--queries", scratch_path("large.npy"), "-k",
                 "1", "--metric", "dot");
    COMMAND_SAYS(3, "poison.npy: row 200, column 5 is NaN", "search", "--base", scratch_path("base.npy"), "--queries",
                 scratch_path("poison.npy"), "-k", "1", "--metric", "dot");
    COMMAND_SAYS(4, "warpwave search: ", SEARCH_IN(scratch_path("base.npy"), "--device", "rocm:77"));
}

static void the_emulated_device_gives_the_same_bits(void **state)
{
    (void)state;
    const char *reason = ww_backend_absence("emulator");
    if (*reason) {
        printf("SKIP: %s\n", reason);
        skip();
    }
    json_t *report = COMMAND_JSON("search", "--base", scratch_path("base.npy"), "--queries", scratch_path("queries.fbin"), "-k",
                                  "9", "--metric", "cosine", "--device", "emulator:32", "--json");
    check_results(report, WW_COSINE, 0, ROWS, K);
    json_decref(report);
}

/* No search returns a certificate that proves nothing, so this tests the description of one separately. */
static void results_are_called_exact_if_the_certificate_proves_it(void **state)
{
    (void)state;
    static const struct {
        float certificate;
        bool exact;
    } cases[] = {{0.0f, true}, {0.5f, true}, {INFINITY, true}, {-1e-30f, false}, {-INFINITY, false}, {NAN, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ww_search_stats stats = ww_search_stats_default();
        stats.certificate = cases[i].certificate;
        stats.repeated_queries = 3;
        json_kept report;
        CHECK_OK(json_keep(&report, JSON_DIGITS_F32));
        json_put_statistics(&report.writer, NULL, WW_SCREEN_INT8, &stats);
        CHECK_OK(json_kept_check(&report));
        json_t *said = json_loads(report.text, 0, NULL);
        json_kept_free(&report);
        assert_non_null(said);
        assert_int_equal(json_is_true(json_object_get(said, "exact")), cases[i].exact);
        assert_int_equal(json_integer_value(json_object_get(said, "repeated_queries")), 3);
        json_decref(said);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_equal_a_naive_search_for_each_metric),
        cmocka_unit_test(rows_are_stored_as_their_type_says),
        cmocka_unit_test(rows_of_bytes_are_read_from_files_of_bytes),
        cmocka_unit_test(the_report_describes_the_search),
        cmocka_unit_test(results_are_called_exact_if_the_certificate_proves_it),
        cmocka_unit_test(rows_are_numbered_as_in_the_file),
        cmocka_unit_test(missing_neighbours_are_left_out),
        cmocka_unit_test(files_hold_the_same_and_json_then_has_no_results),
        cmocka_unit_test(files_have_minus_one_and_infinity_for_missing_neighbours),
        cmocka_unit_test(an_infinite_distance_is_null),
        cmocka_unit_test(a_base_of_several_pieces_is_added_whole),
        cmocka_unit_test(the_table_shows_the_first_queries),
        cmocka_unit_test(ranges_past_the_file_are_usage_errors),
        cmocka_unit_test(a_bound_gives_all_rows_within_it),
        cmocka_unit_test(bounds_that_make_no_sense_are_usage_errors),
        cmocka_unit_test(an_index_reads_some_lists),
        cmocka_unit_test(output_paths_are_checked_before_the_work),
        cmocka_unit_test(bad_files_are_exit_code_3),
        cmocka_unit_test(the_emulated_device_gives_the_same_bits),
    };
    return cmocka_run_group_tests(tests, make_files, scratch_teardown);
}
