/* `warpwave-mpi search` and `warpwave-mpi knn-graph`: the nearest rows of a file over all ranks, one block of queries at a
 * time.
 *
 * Every rank has its slice of the base. Rank 0 reads a block of queries and sends it. All ranks search and get the merged
 * answer, and each writes its share of it to the files. A block counts once all shares are on disk.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/integers.h"
#include "base/memory.h"
#include "base/tables/hash.h"
#include "files/matrix.h"
#include "mpi/command/mpi.h"
#include "mpi/command/parts.h"
#include "mpi/slices.h"
#include "warpwave/file_uses.h"
#include "warpwave/json.h"
#include "warpwave/terminal.h"

typedef struct search_options {
    common_settings common;
    const char *queries, *out_neighbors, *out_distances;
    int64_t k;
} search_options;

typedef struct search_job {
    const search_options *options;
    bool graph; /* the queries are the rows themselves, and a row is not its own neighbour */
    loaded data;
    ww_matrix *query_file;
    int64_t query_count;
    int64_t found_k; /* neighbours to search for: one more for a graph */
    parts out;
    float *queries; /* one block; only on rank 0 */
    int64_t *rows;  /* of one block, found_k per query */
    float *scores;
    void *written_rows; /* in the file's element type */
    double search_seconds;
} search_job;

static const char *query_path(const search_job *j)
{
    return j->graph ? j->options->common.base : j->options->queries;
}

/* ---- before ---------------------------------------------------------------------------------------------------------------
 */

static ww_status check_outputs(search_job *j)
{
    const search_options *o = j->options;
    const file_use uses[] = {{.what = "--base", .path = o->common.base},
                             {.what = "--queries", .path = o->queries},
                             {.what = "--out-neighbors", .path = o->out_neighbors, .output = true},
                             {.what = "--out-distances", .path = o->out_distances, .output = true}};
    if (o->out_distances && !path_ends_in(o->out_distances, ".fbin") && !path_ends_in(o->out_distances, ".npy"))
        return command_line_wrong(
            ww_fail(WW_INVALID_ARGUMENT, "--out-distances '%s': the file name must end in .fbin or .npy", o->out_distances));
    const ww_status status = file_uses_check(uses, sizeof uses / sizeof *uses);
    return status == WW_OK ? part_file_rows(&j->out.files[0], "--out-neighbors", o->out_neighbors, j->data.rows) : status;
}

static ww_status open_queries(search_job *j)
{
    ww_matrix_info info;
    const ww_status status = mpi_open_file(query_path(j), j->options->common.format, &j->query_file, &info);
    if (status != WW_OK)
        return status;
    j->query_count = info.rows;
    if (info.dim != j->data.dim)
        return ww_fail(WW_DIMENSION_MISMATCH, "%s has vectors of dimension %d, %s of dimension %lld; they must be equal",
                       j->options->common.base, j->data.dim, query_path(j), (long long)info.dim);
    return WW_OK;
}

static ww_status describe_outputs(search_job *j)
{
    const search_options *o = j->options;
    parts *out = &j->out;
    ww_status status = check_outputs(j);
    for (int i = 0; i < PARTS_MAX; i++) {
        out->files[i].rows = j->query_count;
        out->files[i].dim = o->k;
    }
    out->files[1].target = o->out_distances;
    out->files[1].element = WW_ELEMENT_F32;
    out->blocks_total = divide_up_i64(j->query_count, o->common.block);
    uint64_t print = FNV_BEGIN;
    fingerprint_text(&print, j->graph ? "knn-graph" : "search");
    fingerprint_text(&print, WW_VERSION_TEXT);
    fingerprint_text(&print, o->out_neighbors);
    fingerprint_text(&print, o->out_distances);
    fingerprint_number(&print, o->k);
    fingerprint_number(&print, o->common.metric);
    fingerprint_number(&print, o->common.type);
    fingerprint_number(&print, o->common.block);
    if (status == WW_OK)
        status = fingerprint_file(&print, o->common.base);
    if (status == WW_OK)
        status = fingerprint_file(&print, query_path(j));
    out->fingerprint = print;
    return status;
}

static ww_status take_block(search_job *j)
{
    const size_t block = (size_t)min_i64(j->options->common.block, max_i64(1, j->query_count));
    const size_t places = block * (size_t)j->found_k;
    j->rows = memory_alloc(places * sizeof *j->rows);
    j->scores = memory_alloc(places * sizeof *j->scores);
    j->written_rows = memory_alloc(places * sizeof(int64_t));
    j->queries = here.rank == 0 ? memory_alloc(block * (size_t)j->data.dim * sizeof *j->queries) : NULL;
    return j->rows && j->scores && j->written_rows && (here.rank != 0 || j->queries)
               ? WW_OK
               : memory_failed("a block of queries", places * 24 + block * (size_t)j->data.dim * sizeof *j->queries);
}

/* ---- a block --------------------------------------------------------------------------------------------------------------
 */

/* Removes the row itself from its neighbours. Removes the last neighbour if the row is not among them: then found_k others are
 * equally near. */
static void leave_out_self(const search_job *j, int64_t query, int64_t place, int64_t *rows, float *scores)
{
    const int64_t k = j->options->k;
    int64_t kept = 0;
    for (int64_t i = 0; i < j->found_k && kept < k; i++) {
        if (rows[place * j->found_k + i] == query)
            continue;
        rows[place * k + kept] = rows[place * j->found_k + i];
        scores[place * k + kept] = scores[place * j->found_k + i];
        kept++;
    }
}

/* Writes rows [first, first + count) of a block whose first query is `begin`. */
static ww_status write_share(search_job *j, int64_t begin, int64_t first, int64_t count)
{
    const int64_t k = j->options->k;
    const part_file *neighbors = &j->out.files[0];
    for (int64_t i = first * k; i < (first + count) * k; i++) {
        if (neighbors->element == WW_ELEMENT_I64)
            ((int64_t *)j->written_rows)[i] = j->rows[i];
        else
            ((int32_t *)j->written_rows)[i] = (int32_t)j->rows[i];
    }
    const char *rows = (const char *)j->written_rows + first * k * ww_element_bytes(neighbors->element);
    ww_status status = part_write(neighbors, begin + first, count, rows);
    if (status == WW_OK)
        status = part_write(&j->out.files[1], begin + first, count, j->scores + first * k);
    return status == WW_OK ? parts_flush(&j->out) : status;
}

static ww_status search_block(search_job *j, int64_t begin, int64_t count)
{
    ww_query search = ww_query_default();
    ww_status status = here.rank == 0 ? mpi_read_rows(j->query_file, begin, count, j->queries) : WW_OK;
    search.queries = j->queries;
    search.query_count = count;
    search.dim = j->data.dim;
    search.k = (int32_t)j->found_k;
    if (status == WW_OK)
        status = ww_cluster_search(j->data.cluster, &search, WW_ANSWER_ALL, j->rows, j->scores);
    if (status != WW_OK)
        return status;
    for (int64_t q = 0; q < count && j->graph; q++)
        leave_out_self(j, begin + q, q, j->rows, j->scores);
    const int64_t first = slice_first(count, here.rank, here.ranks);
    status = write_share(j, begin, first, slice_first(count, here.rank + 1, here.ranks) - first);
    if (status == WW_OK)
        status = mpi_meet(j->data.cluster); /* all shares are on disk */
    return status == WW_OK ? parts_block_done(&j->out) : status;
}

static ww_status search_blocks(search_job *j)
{
    const int64_t block = j->options->common.block;
    rank_progress told;
    const double begun = seconds_now();
    ww_status status = WW_OK;
    rank_progress_begin(&told, "queries", j->out.blocks_done * block, j->query_count, j->options->common.quiet);
    for (int64_t begin = j->out.blocks_done * block; begin < j->query_count && status == WW_OK; begin += block) {
        status = search_block(j, begin, min_i64(block, j->query_count - begin));
        rank_progress_tell(&told, begin + block);
    }
    j->search_seconds = seconds_now() - begun;
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------
 */

static void report(const search_job *j)
{
    const search_options *o = j->options;
    if (here.rank != 0)
        return;
    if (o->common.json) {
        json_writer w = {.to = stdout, .digits = JSON_DIGITS_F32};
        mpi_report_begin(&w, &j->data);
        json_put_integer(&w, "queries", j->query_count);
        json_put_integer(&w, "k", o->k);
        json_put_text(&w, "metric", ww_metric_name((ww_metric)o->common.metric));
        mpi_report_end(&w, &j->data, j->search_seconds);
        return;
    }
    printf("%d ranks, %lld rows of %d, %lld queries, the %lld nearest by %s\nloaded in %.3g s, searched in %.3g s\nwrote ",
           here.ranks, (long long)j->data.rows, j->data.dim, (long long)j->query_count, (long long)o->k,
           ww_metric_name((ww_metric)o->common.metric), j->data.load_seconds, j->search_seconds);
    print_plain(stdout, o->out_neighbors);
    if (o->out_distances) {
        printf(" and ");
        print_plain(stdout, o->out_distances);
    }
    printf("\n");
}

static ww_status search(const search_options *options, bool graph)
{
    search_job j = {.options = options,
                    .graph = graph,
                    .found_k = options->k + (graph ? 1 : 0),
                    .out = {.files = {{.descriptor = -1}, {.descriptor = -1}}}};
    ww_status status = mpi_load(&options->common, &j.data);
    if (status == WW_OK)
        status = open_queries(&j);
    if (status == WW_OK)
        status = describe_outputs(&j);
    if (status == WW_OK)
        status = take_block(&j);
    if (status == WW_OK)
        status = parts_open(&j.out, j.data.cluster, options->common.resume);
    if (status == WW_OK)
        status = search_blocks(&j);
    if (status == WW_OK && here.rank == 0)
        status = parts_finish(&j.out);
    if (status == WW_OK)
        status = mpi_meet(j.data.cluster);
    if (status == WW_OK)
        report(&j);
    parts_close(&j.out);
    memory_free(j.written_rows);
    memory_free(j.scores);
    memory_free(j.rows);
    memory_free(j.queries);
    ww_matrix_close(j.query_file);
    mpi_unload(&j.data);
    return status;
}

static exit_code run(const command *self, const char *const *arguments, size_t count)
{
    search_options settings = {.common = COMMON_DEFAULTS, .k = 10};
    const exit_code code = mpi_parse(self, arguments, count, &settings);
    return code == EXIT_CODE_OK ? mpi_end(self, search(&settings, self == &mpi_knn_graph)) : code;
}

static exit_code run_search(const char *const *arguments, size_t count)
{
    return run(&mpi_search, arguments, count);
}

static exit_code run_knn_graph(const char *const *arguments, size_t count)
{
    return run(&mpi_knn_graph, arguments, count);
}

#define TEXT(...)    OPTION_IS_TEXT(search_options, __VA_ARGS__)
#define INTEGER(...) OPTION_IS_INTEGER(search_options, __VA_ARGS__)

static const option search_table[] = {
    TEXT(common.base, true, "--base", "FILE", "the rows to search; each rank reads its own slice"),
    TEXT(queries, true, "--queries", "FILE", "the rows to search for"),
    INTEGER(k, false, "-k", "N", 1, WW_K_MAX, "neighbours per query, 1 to 16384; default: 10"),
    TEXT(out_neighbors, true, "--out-neighbors", "FILE", "write row numbers to a .ibin or .npy file"),
    TEXT(out_distances, false, "--out-distances", "FILE", "write distances or scores to a .fbin or .npy file"),
    COMMON_OPTIONS(search_options),
};

static const option graph_table[] = {
    TEXT(common.base, true, "--base", "FILE", "the rows; each rank reads its own slice"),
    INTEGER(k, false, "-k", "N", 1, WW_K_MAX - 1, "neighbours per row, 1 to 16383, not counting itself; default: 10"),
    TEXT(out_neighbors, true, "--out-neighbors", "FILE", "write row numbers to a .ibin or .npy file"),
    TEXT(out_distances, false, "--out-distances", "FILE", "write distances or scores to a .fbin or .npy file"),
    COMMON_OPTIONS(search_options),
};

static const char notes[] =
    "Results have the bytes that one process would write, whatever the number of ranks. While a run is under\n"
    "way its files are called FILE.part, beside FILE.progress; they take their names when they are complete. After\n"
    "an interruption, the same command with --resume continues, on any number of ranks.\n";

const command mpi_search = {
    .name = "search",
    .summary = "Find the nearest rows of one file to each row of another, over all ranks",
    .notes = notes,
    .options = search_table,
    .option_count = sizeof search_table / sizeof *search_table,
    .run = run_search,
};

const command mpi_knn_graph = {
    .name = "knn-graph",
    .summary = "Find the nearest rows of a file to each of its own rows, over all ranks",
    .notes = notes,
    .options = graph_table,
    .option_count = sizeof graph_table / sizeof *graph_table,
    .run = run_knn_graph,
};
