/* Searches a collection in a store, with filters: `warpwave store search`, and `warpwave search --store`. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/integers.h"
#include "base/memory.h"
#include "base/text.h"
#include "warpwave/command.h"
#include "warpwave/model/place.h"
#include "warpwave/search/search.h"
#include "warpwave/store/parameters.h"
#include "warpwave/store/sparse.h"
#include "warpwave/store/store.h"
#include "warpwave/terminal.h"

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
    ww_text *text;      /* for --text, except in words-only mode */
    ww_model *ranker;   /* for --rerank */
    const char *words;  /* the current query text */
    json_sparse sparse; /* for --sparse */
} asked;

ww_status store_read_queries(const store_call *call, float **queries, int64_t *count)
{
    const store_settings *s = &call->settings;
    ww_matrix_options options = ww_matrix_options_default();
    ww_matrix_info info = ww_matrix_info_default();
    ww_matrix *matrix = NULL;
    options.format = s->format;
    options.streams = 1;
    ww_status status = ww_matrix_open_with(s->queries, &options, &matrix);
    if (status == WW_OK)
        status = ww_matrix_describe(matrix, &info);
    if (status == WW_OK && info.dim != call->info.dim)
        status = ww_fail(WW_DIMENSION_MISMATCH,
                         "%s has vectors of dimension %lld, the collection of dimension %d; they must be equal", s->queries,
                         (long long)info.dim, call->info.dim);
    size_t bytes = 0;
    if (status == WW_OK && (!size_multiply((size_t)info.rows, (size_t)info.dim, &bytes) || !size_multiply(bytes, 4, &bytes)))
        status = ww_fail(WW_OUT_OF_MEMORY, "%s: the queries do not fit into memory", s->queries);
    if (status == WW_OK && !(*queries = memory_alloc(bytes)))
        status = memory_failed("the queries", bytes);
    if (status == WW_OK)
        status = ww_matrix_read_f32(matrix, 0, info.rows, *queries);
    if (status == WW_OK)
        status = ww_matrix_check_finite(matrix, 0, info.rows, *queries);
    *count = info.rows;
    ww_matrix_close(matrix);
    return status;
}

static ww_status open_ranker(asked *a)
{
    ww_model_options options = ww_model_options_default();
    progress bar;
    options.progress = progress_report;
    options.progress_user = &bar;
    char path[PATH_MAX];
    ww_status status = model_place(a->call->settings.rerank, a->call->settings.yes, path);
    if (status != WW_OK)
        return status;
    progress_begin(&bar, "loading the model that reranks", 0);
    status = ww_model_open(path, a->call->device, &options, &a->ranker);
    progress_end(&bar);
    return status;
}

/* Sets a text as the query. The models stay open for the next text; a words-only search needs none. */
static ww_status take_words(asked *a, const char *text)
{
    const store_settings *s = &a->call->settings;
    const bool needs_model = s->mode != MODE_TEXT || s->expand > 0 || s->mmr || s->rerank;
    ww_status status = WW_OK;
    a->words = text;
    a->count = 1;
    if (!a->text && needs_model)
        status = store_open_text(a->call, false, &a->text);
    return status == WW_OK && s->rerank && !a->ranker ? open_ranker(a) : status;
}

/* Refuses options that only go with other options. */
static ww_status check_text_options(const asked *a)
{
    const store_settings *s = &a->call->settings;
    if (!s->text && (s->model || s->mode != MODE_VECTOR || s->expand > 0 || s->rerank))
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--model, --mode, --rerank and --expand go with --text"));
    if (s->mode != MODE_HYBRID && !sparse_is_fused(s) && (s->fusion != 0 || s->weights))
        return command_line_wrong(ww_fail(
            WW_INVALID_ARGUMENT, "--fusion and --weights go with --mode hybrid, or with --sparse beside another query"));
    if (s->mode != MODE_HYBRID && !sparse_is_fused(s) && !s->mmr && !s->rerank && s->candidates > 0)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--candidates goes with --rerank, --mode hybrid or --mmr"));
    if (s->mmr && s->group_by)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--mmr and --group-by: give one of them"));
    if (!s->group_by && (s->groups != 10 || s->group_size != 1))
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--groups and --group-size go with --group-by"));
    if (s->rerank && (s->mmr || s->group_by))
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--rerank goes with neither --mmr nor --group-by"));
    if (a->ranged && (s->mmr || s->group_by || s->rerank || s->mode != MODE_VECTOR))
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--radius and --min-score go with none of --mode, --mmr, "
                                                               "--rerank and --group-by"));
    return sparse_check_options(s, a->ranged);
}

/* --nprobe and --recall. */
static ww_status read_lists(const asked *a)
{
    store_settings *s = &a->call->settings;
    if (s->nprobe > 0 && s->recall_text)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--nprobe and --recall: give one of them"));
    if ((s->nprobe > 0 || s->recall_text) && (a->ranged || s->mode == MODE_TEXT))
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--nprobe and --recall are for the nearest k by vectors"));
    return command_read_recall(s->recall_text, &s->recall);
}

static ww_status read_queries(asked *a)
{
    const store_settings *s = &a->call->settings;
    int32_t dim = a->call->info.dim;
    const int given = (s->vector != NULL) + (s->queries != NULL) + (s->text != NULL);
    if (given > 1 || (given == 0 && !s->sparse))
        return command_line_wrong(ww_fail(
            WW_INVALID_ARGUMENT,
            "give one of --vector, for one query, --text, for one in words, and --queries, for those of a file, or --sparse"));
    ww_status status = s->sparse ? sparse_parse(s->sparse, &a->sparse) : WW_OK;
    a->count = 1;
    if (status != WW_OK || given == 0)
        return status;
    if (s->text)
        return take_words(a, s->text);
    if (s->queries)
        return store_read_queries(a->call, &a->queries, &a->count);
    a->count = 1;
    return command_line_wrong(vector_parse(s->vector, "--vector", &dim, &a->queries));
}

static ww_status read_bound(asked *a)
{
    store_settings *s = &a->call->settings;
    const bool l2 = a->call->info.metric == WW_L2 && !s->sparse;
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
                                          s->sparse ? "--sparse" : ww_metric_name(a->call->info.metric),
                                          l2 ? "--radius" : "--min-score"));
    a->bound = strtof(text, &end);
    if (end == text || *end != '\0' || isnan(a->bound) || (l2 && a->bound < 0.0f))
        return command_line_wrong(
            ww_fail(WW_INVALID_ARGUMENT, "%s '%s': it must be a number%s", name, text, l2 ? " from 0" : ""));
    a->ranged = true;
    if (s->limit < 0)
        s->limit = LIMIT_DEFAULT;
    return WW_OK;
}

static ww_status read_lambda(const store_settings *s, ww_diversity *diversity)
{
    char *end = NULL;
    *diversity = ww_diversity_default();
    diversity->lambda = strtod(s->mmr, &end);
    if (end != s->mmr && *end == '\0' && diversity->lambda >= 0.0 && diversity->lambda <= 1.0)
        return WW_OK;
    return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--mmr '%s': it must be a number from 0 to 1", s->mmr));
}

/* Runs the query by vectors, by words, or by both; then diversifies or groups the results. */
static ww_status run_text(const asked *a, int mode, ww_query *query, ww_results **results)
{
    static const ww_text_mode MODES[] = {
        [MODE_VECTOR] = WW_TEXT_VECTOR, [MODE_TEXT] = WW_TEXT_WORDS, [MODE_HYBRID] = WW_TEXT_HYBRID};
    const store_settings *s = &a->call->settings;
    ww_text_query by_text = ww_text_query_default();
    ww_match match = ww_match_default();
    ww_grouping grouping = ww_grouping_default();
    ww_diversity diversity;
    ww_fuse fuse;
    double weights[2];
    ww_status status = mode == MODE_HYBRID ? read_weights(s, 2, weights, &fuse) : WW_OK;
    if (status == WW_OK && s->mmr)
        status = read_lambda(s, &diversity);
    if (status != WW_OK)
        return status;
    grouping.field = s->group_by;
    grouping.groups = s->groups;
    grouping.size = s->group_size;
    by_text.diversity = s->mmr ? &diversity : NULL;
    by_text.grouping = s->group_by ? &grouping : NULL;
    if (!a->text) {
        match.texts = &a->words;
        match.mode = WW_MATCH_TEXT;
        query->match = mode == MODE_TEXT ? &match : NULL;
        return s->mmr || s->group_by
                   ? ww_collection_rank(a->call->collection, query, by_text.diversity, by_text.grouping, s->candidates, results)
                   : ww_collection_query(a->call->collection, query, results);
    }
    by_text.texts = &a->words;
    by_text.count = 1;
    by_text.mode = MODES[mode];
    by_text.query = query;
    by_text.fuse = mode == MODE_HYBRID ? &fuse : NULL;
    by_text.candidates = mode == MODE_HYBRID || s->mmr ? s->candidates : 0;
    by_text.rerank = a->ranker;
    by_text.reranked = a->ranker ? s->candidates : 0;
    by_text.expand = (int32_t)s->expand;
    return ww_text_search(a->text, &by_text, results);
}

/* One part of a search with --sparse. */
static ww_status run_part(void *user, search_part part, ww_query *query, ww_results **results)
{
    const asked *a = user;
    ww_query own = *query;
    return part == PART_SPARSE ? sparse_search_alone(a->call, &a->sparse, query, results)
                               : run_text(a, part == PART_TEXT ? MODE_TEXT : MODE_VECTOR, &own, results);
}

static ww_status run_query(asked *a, ww_query *query, ww_results **results)
{
    const store_settings *s = &a->call->settings;
    if (sparse_is_fused(s))
        return sparse_search_fused(a->call, &(search_parts){run_part, a}, query, results);
    return s->sparse ? sparse_search_alone(a->call, &a->sparse, query, results) : run_text(a, s->mode, query, results);
}

/* The names of the ranks of a hit that is in one of two lists. */
static void name_ranks(const store_settings *s, hit_of *hit)
{
    static const char *const NAMES[] = {
        [PART_VECTOR] = "vector_rank", [PART_TEXT] = "text_rank", [PART_SPARSE] = "sparse_rank"};
    search_part parts[SEARCH_PARTS] = {PART_VECTOR, PART_TEXT};
    if (s->sparse)
        (void)sparse_parts(s, parts);
    hit->ranks[0] = NAMES[parts[0]];
    hit->ranks[1] = NAMES[parts[1]];
}

static ww_status ask(asked *a, progress *bar, ww_results **results)
{
    const store_settings *s = &a->call->settings;
    ww_filter *filter = NULL;
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
        query.nprobe = s->nprobe;
        query.recall = s->recall;
    }
    query.progress = progress_report;
    query.progress_user = bar;
    query.stats = &a->stats;
    query.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_TEXTS;
    query.where = s->where;
    query.parameters = a->parameters.list;
    query.parameter_count = s->params.count;
    ww_status status = s->filter ? ww_filter_read(s->filter, &filter) : WW_OK;
    query.filter = filter;
    if (status == WW_OK)
        status = run_query(a, &query, results);
    ww_filter_destroy(filter);
    return status;
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
    if (call->settings.nprobe > 0 || call->settings.recall > 0.0f) {
        json_put_integer(&w, "lists_read", a->stats.lists_read);
        json_open(&w, "proven", '[');
        for (int64_t q = 0; q < a->count; q++)
            json_put_integer(&w, NULL, ww_results_proven(results, q));
        json_close(&w);
    }
    json_open(&w, "results", '[');
    for (int64_t q = 0; q < a->count; q++) {
        json_open(&w, NULL, '[');
        w.compact = true;
        for (int64_t i = 0; i < ww_results_count(results, q); i++) {
            hit_of hit = {.results = results, .query = q, .hit = i, .scored = true};
            name_ranks(&call->settings, &hit);
            hit_put(&w, &hit);
        }
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
            printf("no rows found\n");
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

/* Answers texts from standard input, one per line, until the end of input or, on a terminal, an empty line. */
static ww_status converse(asked *a)
{
    line_reader lines;
    bool end = false;
    const bool person = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    ww_status status = lines_open(&lines, "-");
    if (status == WW_OK)
        status = take_words(a, ""); /* load the model before the first question */
    while (status == WW_OK && !end) {
        if (person) {
            printf("? ");
            fflush(stdout);
        }
        status = lines_next(&lines, &end);
        end = end || (person && lines.length == 0);
        if (status != WW_OK || end || lines.length == 0)
            continue;
        status = take_words(a, lines.text);
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
        status = check_text_options(&a);
    if (status == WW_OK)
        status = read_lists(&a);
    if (status == WW_OK)
        status = given_parameters_read(&a.parameters, &call->settings);
    if (status == WW_OK && talks && !call->settings.vector && !call->settings.queries && !call->settings.sparse)
        status = converse(&a);
    else if (status == WW_OK && (status = read_queries(&a)) == WW_OK)
        status = answer(&a);
    ww_text_close(a.text);
    ww_model_close(a.ranker);
    given_parameters_free(&a.parameters);
    json_sparse_free(&a.sparse);
    memory_free(a.queries);
    return status;
}

/* Opens the collection of a store that has only one; its name is in `list`. */
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
                                    .yes = s->yes,
                                    .rerank = s->rerank,
                                    .params = s->params,
                                    .radius = s->radius,
                                    .min_score = s->min_score,
                                    .limit = s->limit,
                                    .k = s->k,
                                    .nprobe = s->nprobe,
                                    .recall_text = s->recall_text,
                                    .overlap = -1,
                                    .groups = 10,
                                    .group_size = 1,
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
