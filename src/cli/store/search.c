/* Searches of a collection in a store, with filters: `warpwave store search`, and `warpwave search --store`. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/integers.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/search.h"
#include "cli/store/parameters.h"
#include "cli/store/store.h"
#include "cli/terminal.h"

enum { QUERIES_SHOWN = 3 };

/* ---- queries --------------------------------------------------------------------------------------------------------------
 */

typedef struct asked {
    store_call *call;
    float *queries;
    int64_t count;
    bool ranged;
    float bound;
    parameters parameters;
    ww_search_stats stats;
    double seconds;
    text_model *model; /* of --text */
} asked;

static ww_status read_file(asked *a)
{
    const store_settings *s = &a->call->settings;
    ww_matrix_options options = ww_matrix_options_default();
    ww_matrix_info info = ww_matrix_info_default();
    ww_matrix *matrix = NULL;
    options.format = s->format;
    options.streams = 1;
    ww_status status = ww_matrix_open_with(s->queries, &options, &matrix);
    if (status == WW_OK)
        status = ww_matrix_describe(matrix, &info);
    if (status == WW_OK && info.dim != a->call->info.dim)
        status = ww_fail(WW_DIMENSION_MISMATCH,
                         "%s has vectors of dimension %lld, the collection of dimension %d; they must be equal", s->queries,
                         (long long)info.dim, a->call->info.dim);
    size_t bytes = 0;
    if (status == WW_OK && (!size_multiply((size_t)info.rows, (size_t)info.dim, &bytes) || !size_multiply(bytes, 4, &bytes)))
        status = ww_fail(WW_OUT_OF_MEMORY, "%s: the queries do not fit into memory", s->queries);
    if (status == WW_OK && !(a->queries = memory_alloc(bytes)))
        status = memory_failed("the queries", bytes);
    if (status == WW_OK)
        status = ww_matrix_read_f32(matrix, 0, info.rows, a->queries);
    if (status == WW_OK)
        status = ww_matrix_check_finite(matrix, 0, info.rows, a->queries);
    a->count = info.rows;
    ww_matrix_close(matrix);
    return status;
}

/* A text as the query. The model stays open for the next. */
static ww_status embed_text(asked *a, const char *text)
{
    const size_t bytes = (size_t)a->call->info.dim * sizeof *a->queries;
    ww_status status = a->model ? WW_OK : store_open_text_model(a->call, &a->model);
    if (status == WW_OK && !a->queries && !(a->queries = memory_alloc(bytes)))
        status = memory_failed("the query", bytes);
    a->count = 1;
    return status == WW_OK ? text_model_embed(a->model, &text, 1, a->queries, NULL) : status;
}

static ww_status read_queries(asked *a)
{
    const store_settings *s = &a->call->settings;
    int32_t dim = a->call->info.dim;
    if ((s->vector != NULL) + (s->queries != NULL) + (s->text != NULL) != 1)
        return command_line_wrong(
            ww_fail(WW_INVALID_ARGUMENT,
                    "give one of --vector, for one query, --text, for one in words, and --queries, for those of a file"));
    if (s->model && !s->text)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--model goes with --text"));
    if (s->text)
        return embed_text(a, s->text);
    if (s->queries)
        return read_file(a);
    a->count = 1;
    return command_line_wrong(vector_parse(s->vector, "--vector", &dim, &a->queries));
}

static ww_status read_bound(asked *a)
{
    store_settings *s = &a->call->settings;
    const bool l2 = a->call->info.metric == WW_L2;
    const char *text = s->radius ? s->radius : s->min_score, *name = s->radius ? "--radius" : "--min-score";
    char *end = NULL;
    if (s->radius && s->min_score)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--radius and --min-score: give one of them"));
    if (!text && s->limit >= 0)
        return command_line_wrong(
            ww_fail(WW_INVALID_ARGUMENT, "--limit goes with --radius or --min-score; -k is for the others"));
    if (!text)
        return WW_OK;
    if ((s->radius != NULL) != l2)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "%s does not go with a collection ranked by %s; give %s", name,
                                          ww_metric_name(a->call->info.metric), l2 ? "--radius" : "--min-score"));
    a->bound = strtof(text, &end);
    if (end == text || *end != '\0' || isnan(a->bound) || (l2 && a->bound < 0.0f))
        return command_line_wrong(
            ww_fail(WW_INVALID_ARGUMENT, "%s '%s': it must be a number%s", name, text, l2 ? " from 0" : ""));
    a->ranged = true;
    if (s->limit < 0)
        s->limit = LIMIT_DEFAULT;
    return WW_OK;
}

static ww_status ask(asked *a, progress *bar, ww_results **results)
{
    const store_settings *s = &a->call->settings;
    ww_query query = ww_query_default();
    query.queries = a->queries;
    query.query_count = a->count;
    query.dim = a->call->info.dim;
    if (a->ranged) {
        query.mode = WW_QUERY_RANGE;
        query.bound = a->bound;
        query.limit = s->limit;
    } else {
        query.k = (int32_t)s->k;
    }
    query.progress = progress_report;
    query.progress_user = bar;
    query.stats = &a->stats;
    query.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS;
    query.where = s->where;
    query.filter = s->filter;
    query.parameters = a->parameters.list;
    query.parameter_count = s->params.count;
    return ww_collection_query(a->call->collection, &query, results);
}

/* ---- reports --------------------------------------------------------------------------------------------------------------
 */

static void report_json(const asked *a, const ww_results *results)
{
    const store_call *call = a->call;
    json_writer w = {.to = stdout, .digits = JSON_DIGITS_F32};
    json_open(&w, NULL, '{');
    json_put_text(&w, "device", call->info.device);
    json_put_text(&w, "collection", call->operands[1]);
    json_put_integer(&w, "rows", call->info.rows_live);
    json_put_integer(&w, "dim", call->info.dim);
    json_put_text(&w, "metric", ww_metric_name(call->info.metric));
    json_put_integer(&w, "queries", a->count);
    json_put_real(&w, "search_seconds", a->seconds);
    json_put_statistics(&w, "statistics", call->info.screen, &a->stats);
    if (a->ranged) {
        json_open(&w, "totals", '[');
        for (int64_t q = 0; q < a->count; q++)
            json_put_integer(&w, NULL, ww_results_total(results, q));
        json_close(&w);
    }
    json_open(&w, "results", '[');
    for (int64_t q = 0; q < a->count; q++) {
        json_open(&w, NULL, '[');
        w.compact = true;
        for (int64_t i = 0; i < ww_results_count(results, q); i++)
            hit_put(&w, &(hit_of){.results = results, .query = q, .hit = i, .scored = true});
        json_close(&w);
        w.compact = false;
    }
    json_close(&w);
    json_close(&w);
}

static void report_text(const asked *a, const ww_results *results)
{
    const int64_t shown = min_i64(a->count, QUERIES_SHOWN);
    for (int64_t q = 0; q < shown; q++) {
        if (a->count > 1)
            printf("%squery %lld\n", q > 0 ? "\n" : "", (long long)q);
        for (int64_t i = 0; i < ww_results_count(results, q); i++) {
            printf("%15.9g  ", (double)ww_results_scores(results, q)[i]);
            hit_print(&(hit_of){.results = results, .query = q, .hit = i});
        }
        if (ww_results_count(results, q) == 0)
            printf("no row is found\n");
        if (a->ranged && ww_results_total(results, q) > ww_results_count(results, q))
            printf("and %lld more\n", (long long)(ww_results_total(results, q) - ww_results_count(results, q)));
    }
    if (shown < a->count)
        printf("\n%lld more queries: --json prints all results\n", (long long)(a->count - shown));
}

/* Searches and prints. */
static ww_status answer(asked *a)
{
    ww_results *results = NULL;
    progress bar;
    progress_begin(&bar, "searching", a->count);
    const double start = seconds_now();
    const ww_status status = ask(a, &bar, &results);
    a->seconds = seconds_now() - start;
    progress_end(&bar);
    if (status == WW_OK && a->call->settings.json)
        report_json(a, results);
    else if (status == WW_OK)
        report_text(a, results);
    ww_results_destroy(results);
    return status;
}

/* Answers texts from standard input, one a line, until it ends or a line is empty on a terminal. */
static ww_status converse(asked *a)
{
    line_reader lines;
    bool end = false;
    const bool person = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    ww_status status = lines_open(&lines, "-");
    if (status == WW_OK)
        status = embed_text(a, ""); /* the model is loaded before the first question */
    while (status == WW_OK && !end) {
        if (person) {
            printf("? ");
            fflush(stdout);
        }
        status = lines_next(&lines, &end);
        end = end || (person && lines.length == 0);
        if (status != WW_OK || end || lines.length == 0)
            continue;
        status = embed_text(a, lines.text);
        if (status == WW_OK)
            status = answer(a);
        fflush(stdout);
    }
    lines_close(&lines);
    return status;
}

ww_status store_search(store_call *call)
{
    asked a = {.call = call, .stats = ww_search_stats_default()};
    const bool talks = call->settings.text && strcmp(call->settings.text, "-") == 0;
    ww_status status = read_bound(&a);
    if (status == WW_OK)
        status = given_parameters_read(&a.parameters, &call->settings);
    if (status == WW_OK && talks && !call->settings.vector && !call->settings.queries)
        status = converse(&a);
    else if (status == WW_OK && (status = read_queries(&a)) == WW_OK)
        status = answer(&a);
    text_model_close(a.model);
    given_parameters_free(&a.parameters);
    memory_free(a.queries);
    return status;
}

/* Opens the collection of a store that has one; its name is in `list`. */
static ww_status open_only(store_call *call, ww_results **list)
{
    ww_status status = ww_store_list(call->store, list);
    if (status == WW_OK && ww_results_count(*list, 0) != 1)
        status = command_line_wrong(ww_fail(WW_INVALID_ARGUMENT,
                                            "--collection NAME is missing beside --store: %s has %lld collections",
                                            call->operands[0], (long long)ww_results_count(*list, 0)));
    if (status == WW_OK) {
        call->operands[1] = ww_results_id(*list, 0, 0);
        status = ww_store_collection(call->store, call->operands[1], &call->collection);
    }
    return status == WW_OK ? ww_collection_describe(call->collection, &call->info) : status;
}

ww_status search_in_store(const search_settings *s)
{
    store_call call = {.settings = {.device = s->device,
                                    .queries = s->queries,
                                    .format = s->format,
                                    .where = s->where,
                                    .filter = s->filter,
                                    .text = s->text,
                                    .model = s->model,
                                    .params = s->params,
                                    .radius = s->radius,
                                    .min_score = s->min_score,
                                    .limit = s->limit,
                                    .k = s->k,
                                    .json = s->json},
                       .operands = {s->store, s->collection}};
    ww_store_config config = ww_store_config_default();
    config.read_only = 1;
    config.rows = (ww_row_place)s->place;
    ww_results *only = NULL;
    ww_status status = store_call_open(&call, &config, s->device, s->collection);
    if (status == WW_OK && !s->collection)
        status = open_only(&call, &only);
    if (status == WW_OK)
        status = store_search(&call);
    store_call_close(&call);
    ww_results_destroy(only);
    return status;
}
