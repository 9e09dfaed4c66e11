/* Prints the results of `warpwave search` as files, as JSON, or as text. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/integers.h"
#include "base/memory.h"
#include "files/matrix.h"
#include "warpwave/command.h"
#include "warpwave/file_uses.h"
#include "warpwave/json.h"
#include "warpwave/search/search.h"
#include "warpwave/terminal.h"

enum { QUERIES_SHOWN = 3, NEIGHBOURS_SHOWN = 10 };

/* ---- files ----------------------------------------------------------------------------------------------------------------
 */

/* A pipe or a device accepts any format, whatever its name. */
static bool is_stream(const char *path)
{
    struct stat facts;
    return strcmp(path, "-") == 0 || (stat(path, &facts) == 0 && (S_ISFIFO(facts.st_mode) || S_ISCHR(facts.st_mode)));
}

/* Checks the folder before the search. An hour later is a bad time to learn that its name was misspelt. */
static ww_status check_path(const char *name, const char *path, const char *ending)
{
    char folder[PATH_MAX] = ".";
    if (is_stream(path))
        return WW_OK;
    if (!path_ends_in(path, ending) && !path_ends_in(path, ".npy"))
        return ww_fail(WW_OUT_OF_RANGE, "%s '%s': the file name must end in %s or .npy", name, path, ending);
    const char *slash = strrchr(path, '/');
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash == path ? 1 : slash - path), path);
    if (access(folder, W_OK) != 0)
        return ww_fail_errno(WW_IO_ERROR, errno, "%s '%s': cannot write to the directory '%s'", name, path, folder);
    return WW_OK;
}

static bool is_standard(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

/* At most one input may be standard input and one output standard output, and then JSON cannot be printed there. */
static ww_status check_standard(const search_settings *s)
{
    if (is_standard(s->base) + is_standard(s->queries) + is_standard(s->ids) > 1)
        return ww_fail(WW_INVALID_ARGUMENT, "only one of --base, --queries and --ids can be standard input");
    if (s->json && (is_standard(s->out_neighbors) || is_standard(s->out_distances)))
        return ww_fail(WW_INVALID_ARGUMENT, "--json and results both go to standard output; write one of them to a file");
    if (s->ids && s->id_column)
        return ww_fail(WW_INVALID_ARGUMENT, "--ids and --id-column both give the ids; leave one out");
    return WW_OK;
}

ww_status search_output_check(const search_settings *s)
{
    const file_use uses[] = {{.what = "--base", .path = s->base},
                             {.what = "--queries", .path = s->queries},
                             {.what = "--ids", .path = s->ids},
                             {.what = "--out-neighbors", .path = s->out_neighbors, .output = true},
                             {.what = "--out-distances", .path = s->out_distances, .output = true}};
    ww_status status = command_line_wrong(check_standard(s));
    if (status == WW_OK && s->out_neighbors)
        status = check_path("--out-neighbors", s->out_neighbors, ".ibin");
    if (status == WW_OK && s->out_distances)
        status = check_path("--out-distances", s->out_distances, ".fbin");
    return status == WW_OK ? file_uses_check(uses, sizeof uses / sizeof *uses) : status;
}

static ww_status begin_neighbors(const search_run *run, output *o)
{
    const int64_t count = run->query_count * run->settings.k;
    int32_t *rows = memory_alloc((size_t)count * sizeof *rows);
    if (!rows)
        return memory_failed("the neighbours' rows as 32-bit integers", (size_t)count * sizeof *rows);
    for (int64_t i = 0; i < count; i++)
        rows[i] = (int32_t)run->rows[i];
    const char *path = run->settings.out_neighbors;
    const matrix_write m = {rows, run->query_count, run->settings.k, WW_ELEMENT_I32, path_ends_in(path, ".npy")};
    const ww_status status = matrix_write_begin(o, output_path(path), &m);
    memory_free(rows);
    return status;
}

static ww_status begin_distances(const search_run *run, output *o)
{
    const char *path = run->settings.out_distances;
    const matrix_write m = {run->scores, run->query_count, run->settings.k, WW_ELEMENT_F32, path_ends_in(path, ".npy")};
    return matrix_write_begin(o, output_path(path), &m);
}

/* Writes both files before either is renamed, so a full disk leaves both as they were. */
ww_status search_output_files(const search_run *run)
{
    const search_settings *s = &run->settings;
    output *outputs = memory_alloc_zeroed(2, sizeof *outputs);
    if (!outputs)
        return memory_failed("writing results", 2 * sizeof *outputs);
    outputs[0].descriptor = outputs[1].descriptor = -1;
    ww_status status = s->out_neighbors ? begin_neighbors(run, &outputs[0]) : WW_OK;
    if (status == WW_OK && s->out_distances)
        status = begin_distances(run, &outputs[1]);
    for (int i = 0; status == WW_OK && i < 2; i++)
        status = output_settle(&outputs[i]);
    if (status == WW_OK && s->out_neighbors)
        status = output_finish(&outputs[0]);
    if (status == WW_OK && s->out_distances)
        status = output_finish(&outputs[1]);
    output_discard(&outputs[0]);
    output_discard(&outputs[1]);
    memory_free(outputs);
    return status;
}

/* ---- JSON -----------------------------------------------------------------------------------------------------------------
 */

static ww_status row_id(const search_run *run, int64_t row, char *id)
{
    if (run->ids.lines)
        return ww_collection_id(run->collection, row - run->settings.rows_skip, id, WW_ID_BYTES_MAX + 1, NULL);
    snprintf(id, WW_ID_BYTES_MAX + 1, "%lld", (long long)row);
    return WW_OK;
}

static ww_status print_results_of(json_writer *w, const search_run *run, int64_t query)
{
    char id[WW_ID_BYTES_MAX + 1];
    ww_status status = WW_OK;
    json_open(w, NULL, '[');
    w->compact = true;
    for (int64_t i = query * run->settings.k; i < (query + 1) * run->settings.k && run->rows[i] >= 0 && status == WW_OK; i++) {
        status = row_id(run, run->rows[i], id);
        json_open(w, NULL, '{');
        json_put_integer(w, "row", run->rows[i]);
        json_put_text(w, "id", id);
        json_put_real(w, "score", (double)run->scores[i]); /* a distance can be infinite */
        json_close(w);
    }
    json_close(w);
    w->compact = false;
    return status;
}

/* The ids of the queries; null for one that is not UTF-8. */
static void query_ids_json(json_writer *w, const search_run *run)
{
    json_open(w, "query_ids", '[');
    for (int64_t i = 0; i < run->query_count; i++)
        json_put_text(w, NULL, ww_matrix_id(run->query_file, i));
    json_close(w);
}

/* The number of rows within the bound of each query. */
static void totals_json(json_writer *w, const search_run *run)
{
    json_open(w, "totals", '[');
    for (int64_t i = 0; i < run->query_count; i++)
        json_put_integer(w, NULL, run->totals[i]);
    json_close(w);
}

static ww_status print_json(const search_run *run)
{
    const search_settings *s = &run->settings;
    json_writer w = {.to = stdout, .digits = JSON_DIGITS_F32};
    ww_status status = WW_OK;
    json_open(&w, NULL, '{');
    json_put_text(&w, "device", run->device_info.id);
    json_put_text(&w, "device_name", run->device_info.name);
    json_put_integer(&w, "rows", run->row_count);
    json_put_integer(&w, "dim", run->dim);
    json_put_text(&w, "type", ww_vector_type_name((ww_vector_type)s->type));
    json_put_integer(&w, "queries", run->query_count);
    json_put_integer(&w, "k", s->k);
    json_put_text(&w, "metric", ww_metric_name((ww_metric)s->metric));
    json_put_integer(&w, "repeat", s->repeat);
    json_put_real(&w, "load_seconds", run->load_seconds);
    json_put_real(&w, "add_seconds", run->add_seconds);
    json_put_real(&w, "search_seconds", run->search_seconds);
    json_put_statistics(&w, "statistics", (ww_screen)s->screen, &run->stats);
    if (run->index_seconds > 0.0) {
        json_open(&w, "index", '{');
        json_put_real(&w, "build_seconds", run->index_seconds);
        json_put_integer(&w, "lists_read", run->stats.lists_read);
        json_put_integer(&w, "rows_read", run->stats.list_rows_read);
        json_close(&w);
    }
    if (s->check)
        json_put_integer(&w, "rows_checked", run->checked.rows_checked);
    if (s->query_id_column)
        query_ids_json(&w, run);
    if (s->ranged)
        totals_json(&w, run);
    if (!s->out_neighbors && !s->out_distances) {
        json_open(&w, "results", '[');
        for (int64_t query = 0; query < run->query_count && status == WW_OK; query++)
            status = print_results_of(&w, run, query);
        json_close(&w);
    }
    json_close(&w);
    return status;
}

/* ---- text -----------------------------------------------------------------------------------------------------------------
 */

static ww_status print_neighbours_of(FILE *to, const search_run *run, int64_t query)
{
    const int64_t k = run->settings.k, shown = min_i64(k, NEIGHBOURS_SHOWN);
    char id[WW_ID_BYTES_MAX + 1];
    fprintf(to, "\nquery %lld", (long long)query);
    if (run->settings.query_id_column) {
        fputs(", ", to);
        print_plain(to, ww_matrix_id(run->query_file, query));
    }
    fprintf(to, "\n  %12s  %15s  id\n", "row", run->settings.metric == WW_L2 ? "distance" : "score");
    int64_t i = 0;
    for (; i < shown && run->rows[query * k + i] >= 0; i++) {
        const ww_status status = row_id(run, run->rows[query * k + i], id);
        if (status != WW_OK)
            return status;
        fprintf(to, "  %12lld  %15.9g  ", (long long)run->rows[query * k + i], (double)run->scores[query * k + i]);
        print_plain(to, id);
        putc('\n', to);
    }
    if (run->settings.ranged)
        fprintf(to, "  rows within the bound: %lld\n", (long long)run->totals[query]);
    else if (i < shown)
        fprintf(to, "  no more: the collection has only %lld row%s\n", (long long)run->row_count, plural(run->row_count));
    else if (shown < k)
        fprintf(to, "  and %lld more\n", (long long)(k - shown));
    return WW_OK;
}

static void print_written(FILE *to, const char *path)
{
    if (!path)
        return;
    fprintf(to, "\nwrote ");
    print_plain(to, path);
}

static ww_status print_text(FILE *to, const search_run *run)
{
    const search_settings *s = &run->settings;
    const int64_t shown = min_i64(run->query_count, QUERIES_SHOWN);
    fprintf(to, "device   ");
    command_print_device(to, &run->device_info);
    fprintf(to, "base     %lld row%s of %d from ", (long long)run->row_count, plural(run->row_count), run->dim);
    print_plain(to, s->base);
    if (run->row_count > 0 && run->row_count < run->base_rows)
        fprintf(to, ", %lld to %lld", (long long)s->rows_skip, (long long)(s->rows_skip + run->row_count - 1));
    fprintf(to, "\nqueries  %lld from ", (long long)run->query_count);
    print_plain(to, s->queries);
    fprintf(to, "\nsearch   ");
    if (s->ranged)
        fprintf(to, "all with %s %.9g by %s\n", s->metric == WW_L2 ? "a distance of at most" : "a score of at least",
                (double)s->bound, ww_metric_name((ww_metric)s->metric));
    else
        fprintf(to, "%lld nearest by %s\n", (long long)s->k, ww_metric_name((ww_metric)s->metric));
    for (int64_t query = 0; query < shown; query++) {
        const ww_status status = print_neighbours_of(to, run, query);
        if (status != WW_OK)
            return status;
    }
    print_written(to, s->out_neighbors);
    print_written(to, s->out_distances);
    if (!s->out_neighbors && !s->out_distances && shown < run->query_count)
        fprintf(to, "\n%lld more quer%s: --json prints all results, --out-neighbors and --out-distances write them to files",
                (long long)(run->query_count - shown), run->query_count - shown == 1 ? "y" : "ies");
    fprintf(to, "\nloaded in %.3g s, added in %.3g s, searched in %.3g s", run->load_seconds, run->add_seconds,
            run->search_seconds);
    if (s->repeat > 1)
        fprintf(to, " (median of %lld)", (long long)s->repeat);
    if (s->check)
        fprintf(to, "\nchecked %lld row%s: everything that the device derived from them is right",
                (long long)run->checked.rows_checked, plural(run->checked.rows_checked));
    if (run->index_seconds > 0.0)
        fprintf(to, "\nindexed in %.3g s; lists read: %lld, their rows: %lld", run->index_seconds,
                (long long)run->stats.lists_read, (long long)run->stats.list_rows_read);
    if (run->stats.rows_screened > 0)
        fprintf(to, "\nrows that needed an exact score: %lld of %lld screened", (long long)run->stats.rows_kept,
                (long long)run->stats.rows_screened);
    if (run->stats.repeated_queries > 0)
        fprintf(to,
                "\nsearched again without the screen: %lld (the first results proved a defect of the memory, the device or the "
                "library; please report it)",
                (long long)run->stats.repeated_queries);
    fprintf(to, "\n");
    return WW_OK;
}

ww_status search_output_report(const search_run *run)
{
    const search_settings *s = &run->settings;
    const bool taken = is_standard(s->out_neighbors) || is_standard(s->out_distances); /* results go to stdout */
    return s->json ? print_json(run) : print_text(taken ? stderr : stdout, run);
}
