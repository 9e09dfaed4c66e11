/* `warpwave search`: the nearest rows of one file to each row of another.
 *
 * The base is read in pieces, so the host never holds a second copy of it beside the collection. Rows keep their numbers in the
 * base file even if only some are taken, so results can be compared with files of true neighbours.
 */
#include "warpwave/search/search.h"

#include <string.h>

#include "base/integers.h"
#include "base/memory.h"
#include "warpwave/command.h"
#include "warpwave/file_rows.h"
#include "warpwave/search/search_index.h"
#include "warpwave/search/search_range.h"
#include "warpwave/terminal.h"

#include <warpwave/ivf.h>

enum { PIECE_BYTES = 64 << 20, REPEAT_MAX = 10000, METRIC_NOT_GIVEN = -1 };

/* ---- files ----------------------------------------------------------------------------------------------------------------
 */

static ww_status open_matrix(const search_settings *s, const char *path, const char *id_column, ww_matrix **matrix,
                             ww_matrix_info *info)
{
    ww_matrix_options options = ww_matrix_options_default();
    options.format = s->format;
    options.id_column = id_column;
    options.streams = 1;
    *info = ww_matrix_info_default();
    ww_status status = ww_matrix_open_with(path, &options, matrix);
    if (status == WW_UNSUPPORTED && strcmp(path, "-") == 0 && !s->format)
        status =
            command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "standard input has no name that says its format; give --format"));
    if (status == WW_INVALID_ARGUMENT) /* unknown format or id column */
        status = command_line_wrong(status);
    return status != WW_OK ? status : ww_matrix_describe(*matrix, info);
}

static ww_status read_ids(search_run *run)
{
    const search_settings *s = &run->settings;
    if (s->id_column)
        return ids_of_matrix(run->base, run->base_rows, s->base, &run->ids);
    ww_status status = s->ids ? ids_read(s->ids, &run->ids) : WW_OK;
    if (status == WW_OK && s->ids && run->ids.count != run->base_rows)
        status = ww_fail(WW_DIMENSION_MISMATCH, "%s has %lld ids, %s has %lld rows; there must be one id per row", s->ids,
                         (long long)run->ids.count, s->base, (long long)run->base_rows);
    return status;
}

static ww_status choose_rows(search_run *run)
{
    const search_settings *s = &run->settings;
    if (s->rows_skip > run->base_rows)
        return ww_fail(WW_OUT_OF_RANGE, "--rows-skip %lld: %s has only %lld rows", (long long)s->rows_skip, s->base,
                       (long long)run->base_rows);
    const int64_t left = run->base_rows - s->rows_skip;
    if (s->rows_take > left)
        return ww_fail(WW_OUT_OF_RANGE, "--rows-take %lld: %s has only %lld rows after --rows-skip %lld",
                       (long long)s->rows_take, s->base, (long long)left, (long long)s->rows_skip);
    run->row_count = s->rows_take == ROWS_ALL ? left : s->rows_take;
    if (run->row_count > WW_ROWS_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "%s: %lld rows; the maximum of a collection is %lld; select some with --rows-take",
                       s->base, (long long)run->row_count, (long long)WW_ROWS_MAX);
    if (s->out_neighbors && s->rows_skip + run->row_count - 1 > INT32_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "--out-neighbors: row numbers past %d do not fit a file of 32-bit integers", INT32_MAX);
    return WW_OK;
}

static ww_status open_files(search_run *run)
{
    const search_settings *s = &run->settings;
    ww_matrix_info base, queries;
    ww_status status = open_matrix(s, s->base, s->id_column, &run->base, &base);
    if (status == WW_OK)
        status = open_matrix(s, s->queries, s->query_id_column, &run->query_file, &queries);
    if (status != WW_OK)
        return status;
    if (base.dim != queries.dim)
        return ww_fail(WW_DIMENSION_MISMATCH, "%s has vectors of dimension %lld, %s of dimension %lld; they must be equal",
                       s->base, (long long)base.dim, s->queries, (long long)queries.dim);
    if (base.dim > WW_DIM_MAX)
        return ww_fail(WW_UNSUPPORTED, "%s: the vectors have dimension %lld; the maximum is %d", s->base, (long long)base.dim,
                       WW_DIM_MAX);
    run->dim = (int32_t)base.dim;
    run->base_rows = base.rows;
    run->query_count = queries.rows;
    status = choose_rows(run);
    return status == WW_OK ? read_ids(run) : status;
}

/* ---- the collection -------------------------------------------------------------------------------------------------------
 */

static ww_status open_collection(search_run *run)
{
    ww_collection_config config = ww_collection_config_default();
    config.name = run->settings.base;
    config.dim = run->dim;
    config.metric = (ww_metric)run->settings.metric;
    config.screen = (ww_screen)run->settings.screen;
    config.type = (ww_vector_type)run->settings.type;
    config.rows = (ww_row_place)run->settings.place;
    run->device_info = ww_device_info_default();
    ww_status status = command_open_device(run->settings.device, &run->device);
    if (status == WW_OK)
        status = ww_device_describe(run->device, &run->device_info);
    if (status == WW_OK)
        status = ww_collection_create(run->device, &config, &run->collection);
    if (status == WW_OK)
        status = ww_collection_reserve(run->collection, run->row_count);
    return status;
}

/* Reads and adds rows [first, first + count) of the rows taken. */
static ww_status add_piece(search_run *run, int64_t first, int64_t count, float *piece, progress *bar)
{
    const int64_t file_row = run->settings.rows_skip + first;
    const double start = seconds_now();
    file_rows from = {.file = run->base, .type = (ww_vector_type)run->settings.type, .room = piece};
    ww_status status = file_rows_read(&from, file_row, count);
    if (status != WW_OK)
        return status;
    const double loaded = seconds_now();
    ww_rows rows = ww_rows_default();
    rows.count = count;
    rows.dim = run->dim;
    file_rows_give(&from, &rows);
    rows.ids = run->ids.lines ? run->ids.lines + file_row : NULL;
    rows.progress = progress_report;
    rows.progress_user = bar;
    bar->before = first;
    status = ww_collection_add(run->collection, &rows);
    run->load_seconds += loaded - start;
    run->add_seconds += seconds_now() - loaded;
    if (status != WW_OK && file_row > 0) /* the library's message counts from the start of the batch; add the row in the file */
        status = ww_fail(status, "%s (the batch starts at row %lld of the file)", ww_error_message(), (long long)file_row);
    return status == WW_OK ? interrupt_check() : status;
}

static ww_status add_rows(search_run *run)
{
    const size_t row_bytes = (size_t)run->dim * sizeof(float);
    const int64_t fit = (int64_t)(PIECE_BYTES / row_bytes);
    const int64_t piece_rows = min_i64(fit, run->row_count);
    float *piece = memory_alloc((size_t)piece_rows * row_bytes);
    ww_status status = piece ? WW_OK : memory_failed("rows of the base file", (size_t)piece_rows * row_bytes);
    progress bar;
    progress_begin(&bar, "adding rows", run->row_count);
    for (int64_t first = 0; first < run->row_count && status == WW_OK; first += piece_rows) {
        const int64_t left = run->row_count - first;
        status = add_piece(run, first, min_i64(piece_rows, left), piece, &bar);
    }
    progress_end(&bar);
    memory_free(piece);
    return status;
}

/* With --check, verifies that the device's data still matches the rows. */
static ww_status check_rows(search_run *run)
{
    progress bar;
    if (!run->settings.check)
        return WW_OK;
    run->checked = ww_damage_report_default();
    progress_begin(&bar, "checking rows", run->row_count);
    const ww_status status = ww_collection_check(run->collection, &run->checked, progress_report, &bar);
    progress_end(&bar);
    return status;
}

/* ---- the search -----------------------------------------------------------------------------------------------------------
 */

static ww_status take_array(void *array, int64_t count, int64_t width, size_t element_bytes, const char *what)
{
    size_t bytes;
    if (!size_multiply((size_t)count, (size_t)width, &bytes) || !size_multiply(bytes, element_bytes, &bytes))
        return ww_fail(WW_OUT_OF_MEMORY, "%s: %lld x %lld do not fit into memory", what, (long long)count, (long long)width);
    void *taken = memory_alloc(bytes);
    memcpy(array, &taken, sizeof taken);
    return taken ? WW_OK : memory_failed(what, bytes);
}

static ww_status read_queries(search_run *run)
{
    const double start = seconds_now();
    ww_status status = take_array(&run->queries, run->query_count, run->dim, sizeof *run->queries, "the queries");
    if (status == WW_OK)
        status = take_array(&run->rows, run->query_count, run->settings.k, sizeof *run->rows, "the neighbours' rows");
    if (status == WW_OK)
        status = take_array(&run->scores, run->query_count, run->settings.k, sizeof *run->scores, "the neighbours' scores");
    if (status == WW_OK)
        status = ww_matrix_read_f32(run->query_file, 0, run->query_count, run->queries);
    if (status == WW_OK)
        status = ww_matrix_check_finite(run->query_file, 0, run->query_count, run->queries);
    run->load_seconds += seconds_now() - start;
    return status;
}

static ww_status search_repeatedly(search_run *run)
{
    const int64_t repeat = run->settings.repeat;
    double *seconds = NULL;
    progress bar;
    ww_query search = ww_query_default();
    search.queries = run->queries;
    search.query_count = run->query_count;
    search.dim = run->dim;
    search.k = (int32_t)run->settings.k;
    search.progress = progress_report;
    search.progress_user = &bar;
    search.nprobe = run->settings.nprobe;
    search.recall = run->settings.recall;
    run->stats = ww_search_stats_default();
    search.stats = &run->stats;
    ww_status status = take_array(&seconds, repeat, 1, sizeof *seconds, "the times");
    progress_begin(&bar, "searching", repeat * run->query_count);
    for (int64_t i = 0; i < repeat && status == WW_OK; i++) {
        bar.before = i * run->query_count;
        const double start = seconds_now();
        status = run->settings.ranged ? search_range_once(run, progress_report, &bar)
                                      : ww_collection_search(run->collection, &search, run->rows, run->scores);
        seconds[i] = seconds_now() - start;
        if (status == WW_OK)
            status = interrupt_check();
    }
    progress_end(&bar);
    if (status == WW_OK)
        run->search_seconds = median(seconds, repeat);
    memory_free(seconds);
    return status;
}

/* The collection numbers its rows from 0; files and users count from the start of the base. */
static void number_as_in_file(search_run *run)
{
    for (int64_t i = 0; i < run->query_count * run->settings.k; i++)
        if (run->rows[i] >= 0)
            run->rows[i] += run->settings.rows_skip;
}

static ww_status search(const search_settings *settings)
{
    search_run run = {.settings = *settings};
    ww_status status = search_range_read(&run.settings);
    if (status == WW_OK)
        status = search_index_read(&run.settings);
    if (status == WW_OK)
        status = search_output_check(settings);
    if (status == WW_OK)
        status = open_files(&run);
    if (status == WW_OK)
        status = open_collection(&run);
    if (status == WW_OK)
        status = add_rows(&run);
    if (status == WW_OK)
        status = check_rows(&run);
    if (status == WW_OK)
        status = search_index_build(&run);
    if (status == WW_OK)
        status = read_queries(&run);
    if (status == WW_OK)
        status = search_repeatedly(&run);
    if (status == WW_OK) {
        number_as_in_file(&run);
        status = search_output_files(&run);
    }
    if (status == WW_OK)
        status = search_output_report(&run);
    memory_free(run.totals);
    memory_free(run.scores);
    memory_free(run.rows);
    memory_free(run.queries);
    ww_collection_destroy(run.collection);
    ww_device_close(run.device);
    ids_free(&run.ids);
    ww_matrix_close(run.query_file);
    ww_matrix_close(run.base);
    return status;
}

/* Searches the rows of a file, or a collection in a store, which has its own metric and ids. */
static ww_status check_where(const search_settings *s)
{
    const bool of_file = s->base || s->ids || s->id_column || s->query_id_column || s->out_neighbors || s->out_distances ||
                         s->rows_skip > 0 || s->rows_take != ROWS_ALL || s->repeat > 1 || s->check ||
                         s->metric != METRIC_NOT_GIVEN || s->screen != WW_SCREEN_INT8 || s->nlist > 0;
    if (!s->text && !s->queries)
        return ww_fail(WW_INVALID_ARGUMENT, "--queries FILE is missing");
    if (!s->store && !s->base)
        return ww_fail(WW_INVALID_ARGUMENT, "--base FILE is missing, or --store FILE in its place");
    if (!s->store && (s->collection || s->where || s->filter || s->params.count > 0))
        return ww_fail(WW_INVALID_ARGUMENT, "--collection, --where, --filter and --param go with --store");
    if (!s->store && (s->text || s->model || s->rerank))
        return ww_fail(WW_INVALID_ARGUMENT, "--text, --model and --rerank go with --store");
    if (s->store && of_file)
        return ww_fail(
            WW_INVALID_ARGUMENT,
            "beside --store only --collection, --queries, --text, --model, --rerank, --format, -k, --where, --filter, --param, "
            "--radius, --min-score, --limit, --device, --yes, --quiet and --json can be given");
    return WW_OK;
}

static exit_code search_run_command(const char *const *arguments, size_t count)
{
    search_settings settings = {.k = 10, .metric = METRIC_NOT_GIVEN, .rows_take = ROWS_ALL, .repeat = 1, .limit = -1};
    const exit_code code = command_parse(&command_search, arguments, count, &settings);
    if (code != EXIT_CODE_OK)
        return code;
    if (settings.quiet)
        terminal_be_quiet();
    ww_status status = command_line_wrong(check_where(&settings));
    if (settings.metric == METRIC_NOT_GIVEN && !settings.store)
        settings.metric = WW_COSINE;
    if (status == WW_OK)
        status = settings.store ? search_in_store(&settings) : search(&settings);
    return command_end(&command_search, status);
}

#define TEXT(...)    OPTION_IS_TEXT(search_settings, __VA_ARGS__)
#define INTEGER(...) OPTION_IS_INTEGER(search_settings, __VA_ARGS__)

static const option options[] = {
    TEXT(base, false, "--base", "FILE", "the rows to search; - is standard input"),
    TEXT(queries, false, "--queries", "FILE", "the rows to search for; - is standard input"),
    TEXT(format, false, "--format", "F", "format of inputs whose names do not show it: npy, fbin, csv, ..."),
    INTEGER(k, false, "-k", "N", 1, WW_K_MAX, "neighbours per query, 1 to 16384; default: 10"),
    OPTION_IS_CHOICE(search_settings, metric, false, "--metric", "cosine|l2|dot",
                     "the distance or similarity to rank by; default: cosine"),
    TEXT(radius, false, "--radius", "R", "all rows within this distance (l2) instead of the nearest k"),
    TEXT(min_score, false, "--min-score", "S", "all rows with at least this score (cosine, dot) instead of the best k"),
    INTEGER(limit, false, "--limit", "N", 0, WW_ROWS_MAX,
            "with --radius or --min-score: the best N of them; 0 only counts; default: 1000"),
    OPTION_IS_CHOICE(search_settings, screen, false, "--screen", "int8|none",
                     "how rows are screened before exact scoring; results are the same; default: int8"),
    OPTION_IS_CHOICE(search_settings, type, false, "--type", "f32|f16|bf16|i8|u8",
                     "type of the stored rows; i8 and u8 hold integers only; default: f32"),
    OPTION_IS_CHOICE(search_settings, place, false, "--rows-on", "device|host",
                     "where rows are stored; host: for more rows than the GPU holds; default: device"),
    TEXT(device, false, "--device", "D", "auto, cpu, cuda:0, ..., as listed by `warpwave devices`; default: auto"),
    TEXT(ids, false, "--ids", "FILE", "ids of the base file's rows, one per line; default: row numbers"),
    TEXT(id_column, false, "--id-column", "C", "the column of a CSV base that holds its ids: its name, or its number from 1"),
    TEXT(query_id_column, false, "--query-id-column", "C", "the same for CSV queries; reports name queries by these ids"),
    TEXT(out_neighbors, false, "--out-neighbors", "F.ibin",
         "write row numbers (queries x k) to a .ibin or .npy file, a pipe, or - (as .ibin)"),
    TEXT(out_distances, false, "--out-distances", "F.fbin",
         "write scores (queries x k) to a .fbin or .npy file, a pipe, or - (as .fbin)"),
    INTEGER(nprobe, false, "--nprobe", "N", 1, WW_IVF_LISTS_MAX,
            "read only the N nearest lists of an index, built for this search or kept in the store: faster, and may miss rows; "
            "default: all rows, exactly"),
    OPTION_IS_TEXT(search_settings, recall_text, false, "--recall", "R",
                   "read as many lists of the index as this recall needs, such as 0.95"),
    INTEGER(nlist, false, "--nlist", "N", 1, WW_IVF_LISTS_MAX,
            "with --nprobe or --recall: lists of the index; default: 4 times the square root of the rows"),
    INTEGER(rows_skip, false, "--rows-skip", "N", 0, INT64_MAX, "skip the first N rows of the base; default: 0"),
    INTEGER(rows_take, false, "--rows-take", "N", 0, INT64_MAX, "use N rows of the base; default: all that remain"),
    INTEGER(repeat, false, "--repeat", "N", 1, REPEAT_MAX, "search N times and report the median time; default: 1"),
    TEXT(store, false, "--store", "FILE", "search a collection of this store in place of --base; see `warpwave help store`"),
    TEXT(collection, false, "--collection", "NAME", "with --store: the collection; default: the only one"),
    TEXT(text, false, "--text", "T",
         "with --store: a text to search for in place of --queries; - reads texts from standard input"),
    TEXT(model, false, "--model", "M", "with --text: the collection's model, if its file has moved"),
    TEXT(rerank, false, "--rerank", "MODEL", "with --text: rerank the best 100 with this model"),
    TEXT(where, false, "--where", "SQL",
         "with --store: only rows that meet this condition, as in \"payload->>'$.year' > 2000\""),
    TEXT(filter, false, "--filter", "JSON",
         "with --store: only rows whose payload meets it, as in '{\"year\": {\"$gt\": 2000}}'"),
    OPTION_IS_LIST(search_settings, params, false, "--param", "N=V",
                   "with --store: the value of a parameter :N of --where; may be repeated"),
    OPTION_IS_FLAG(search_settings, check, "--check", "before the search, check the device's copy of the rows, bit by bit"),
    OPTION_IS_FLAG(search_settings, yes, "--yes", "fetch a model that is given by its name without asking"),
    OPTION_IS_FLAG(search_settings, quiet, "--quiet", "show no progress bar and no notes"),
    OPTION_IS_FLAG(search_settings, json, "--json", "print one JSON object"),
};

const command command_search = {
    .name = "search",
    .summary = "For each row of one file, find the nearest rows of another, exactly",
    .notes = "Files are .npy, .fvecs, .bvecs, .ivecs, .fbin, .f32bin, .f16bin, .hbin, .u8bin, .bbin, .i8bin, .ibin,\n"
             ".i32bin or .csv. The name's ending shows the format; if it does not, give --format. An output may not be one\n"
             "of the inputs. Results are best first: the largest score for cosine and dot, the smallest distance for l2\n"
             "(euclidean); equal scores by row number. Row numbers count from 0 in the base FILE, also with --rows-skip,\n"
             "and --ids has one line for every row of the file. If there are fewer than k rows, output files are filled up\n"
             "with row -1 and an infinite score; JSON has only the rows found.\n"
             "\n"
             "With --radius or --min-score, k is the largest number of rows that a query has, and JSON has totals: how\n"
             "many rows are within the bound of each query, which may be more than --limit.\n"
             "\n"
             "JSON: device, device_name, rows, dim, type, queries, k, metric, repeat, load_seconds (reading files),\n"
             "add_seconds (into the collection), search_seconds (all queries once; the median of --repeat), and statistics\n"
             "of the last repetition: screen, exact, rows_screened, rows_kept, rows_scored, fallback_queries, certificate,\n"
             "repeated_queries. A row counts once for each query; exact is true if the certificate proves the results, and\n"
             "false with an index. With --nprobe or --recall there is index (build_seconds, lists_read, rows_read).\n"
             "Without --out-neighbors and --out-distances there is results: an array of {row, id, score} for each query.\n"
             "--query-id-column adds query_ids, --check adds rows_checked.\n",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .run = search_run_command,
};
