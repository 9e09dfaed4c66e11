/* `warpwave-mpi dedup`: groups rows that are near each other and keeps the first of each group.
 *
 * Two rows within the bound are in one group, and so are rows that others connect: groups are the connected components, so they
 * depend only on the data. Block by block, all ranks search their slices for the rows of the file and send edges to rank 0,
 * which keeps a disjoint-set forest over all rows.
 *
 * A shard with many equal rows has very many hits, but few that connect anything new. So each rank keeps a forest over its own
 * rows and sends a hit only if it joins two groups of its shard: at most one edge for each row of the file and one for each of
 * its own rows.
 *
 * Edges are also kept in a file, OUT.part, from which --resume rebuilds the forest.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/tables/hash.h"
#include "files/matrix.h"
#include "mpi/cluster.h"
#include "mpi/command/mpi.h"
#include "mpi/command/parts.h"
#include "warpwave/file_uses.h"
#include "warpwave/json.h"
#include "warpwave/terminal.h"

enum { HITS_AT_ONCE = 1024 }; /* hits of a row in a shard; a row with more is searched again, alone */

typedef struct dedup_options {
    common_settings common;
    const char *radius, *min_score, *out_kept, *out_groups;
    float bound;
} dedup_options;

typedef struct edge {
    int64_t row, other; /* other < row */
} edge;

typedef struct dedup_job {
    const dedup_options *options;
    loaded data;
    ww_matrix *file;
    int64_t shard_rows;
    int64_t *shard_forest; /* over this rank's rows, by their index in the shard */
    int64_t *forest;       /* over all rows; on rank 0 */
    float *block;
    edge *edges; /* of a block */
    int64_t edge_count, edge_room;
    parts out; /* the two result files, and the progress of the run */
    char journal[PATH_MAX];
    int journal_file;
    int64_t kept;
    double search_seconds;
} dedup_job;

/* ---- forests --------------------------------------------------------------------------------------------------------------
 */

/* The first row of a row's group. Halves the path on the way. */
static int64_t forest_find(int64_t *forest, int64_t row)
{
    while (forest[row] != row) {
        forest[row] = forest[forest[row]];
        row = forest[row];
    }
    return row;
}

/* Joins the groups of two rows. Returns false if they were one group already. */
static bool forest_join(int64_t *forest, int64_t a, int64_t b)
{
    const int64_t first = forest_find(forest, a), second = forest_find(forest, b);
    forest[max_i64(first, second)] = min_i64(first, second);
    return first != second;
}

static int64_t *forest_make(int64_t rows)
{
    int64_t *forest = memory_alloc((size_t)max_i64(rows, 1) * sizeof *forest);
    for (int64_t i = 0; i < rows && forest; i++)
        forest[i] = i;
    return forest;
}

/* ---- edges ----------------------------------------------------------------------------------------------------------------
 */

static ww_status edge_add(dedup_job *j, int64_t row, int64_t other)
{
    const ww_status grown = array_reserve(&j->edges, &j->edge_room, j->edge_count + 1, sizeof *j->edges, "pairs of rows");
    if (grown != WW_OK)
        return grown;
    j->edges[j->edge_count++] = (edge){row, other};
    return WW_OK;
}

/* Adds edges from one row of the file to its hits in this shard. Takes only hits before the row; the others find it themselves.
 */
static ww_status join_hits(dedup_job *j, int64_t row, const int64_t *hits, int64_t count)
{
    const int64_t own = row - j->data.first_row; /* the row itself, if it is in this shard */
    int64_t joined = own >= 0 && own < j->shard_rows ? own : -1;
    ww_status status = WW_OK;
    for (int64_t i = 0; i < count && status == WW_OK; i++) {
        if (j->data.first_row + hits[i] >= row)
            continue;
        const bool news = joined < 0 || forest_join(j->shard_forest, joined, hits[i]);
        joined = joined < 0 ? hits[i] : joined;
        if (news)
            status = edge_add(j, row, j->data.first_row + hits[i]);
    }
    return status;
}

static ww_query range_of(const dedup_job *j, const float *rows, int64_t count, int64_t limit)
{
    ww_query range = ww_query_default();
    range.mode = WW_QUERY_RANGE;
    range.queries = rows;
    range.query_count = count;
    range.dim = j->data.dim;
    range.bound = j->options->bound;
    range.limit = limit;
    return range;
}

/* Searches for one row that has more hits than HITS_AT_ONCE. */
static ww_status search_alone(dedup_job *j, int64_t row, const float *vector)
{
    ww_results *results = NULL;
    const ww_query range = range_of(j, vector, 1, WW_ROWS_MAX);
    ww_status status = ww_collection_query(ww_cluster_collection(j->data.cluster), &range, &results);
    if (status == WW_OK)
        status = join_hits(j, row, ww_results_rows(results, 0), ww_results_count(results, 0));
    ww_results_destroy(results);
    return status;
}

static ww_status search_shard(dedup_job *j, int64_t begin, int64_t count)
{
    ww_results *results = NULL;
    j->edge_count = 0;
    if (j->data.first_row >= begin + count || j->shard_rows == 0) /* no row of this shard comes before a row of the block */
        return WW_OK;
    const ww_query range = range_of(j, j->block, count, HITS_AT_ONCE);
    ww_status status = mpi_read_rows(j->file, begin, count, j->block);
    if (status == WW_OK)
        status = ww_collection_query(ww_cluster_collection(j->data.cluster), &range, &results);
    for (int64_t q = 0; q < count && status == WW_OK; q++) {
        if (ww_results_total(results, q) > ww_results_count(results, q))
            status = search_alone(j, begin + q, j->block + q * j->data.dim);
        else
            status = join_hits(j, begin + q, ww_results_rows(results, q), ww_results_count(results, q));
    }
    ww_results_destroy(results);
    return status;
}

/* ---- rank 0 ---------------------------------------------------------------------------------------------------------------
 */

static ww_status join_edges(dedup_job *j, const unsigned char *edges, int64_t bytes)
{
    for (int64_t at = 0; at + (int64_t)sizeof(edge) <= bytes; at += (int64_t)sizeof(edge)) {
        edge e;
        memcpy(&e, edges + at, sizeof e);
        if (e.row < 0 || e.row >= j->data.rows || e.other < 0 || e.other >= e.row)
            return ww_fail(WW_CORRUPT_FILE, "%s: rows %" PRId64 " and %" PRId64 " are joined; there are %" PRId64, j->journal,
                           e.row, e.other, j->data.rows);
        forest_join(j->forest, e.row, e.other);
    }
    return WW_OK;
}

static ww_status journal_failed(const dedup_job *j, const char *what)
{
    return ww_fail_errno(WW_IO_ERROR, errno, "%s: cannot %s", j->journal, what);
}

static ww_status journal_write(dedup_job *j, const unsigned char *edges, int64_t bytes)
{
    for (int64_t done = 0; done < bytes;) {
        const ssize_t put = pwrite(j->journal_file, edges + done, (size_t)(bytes - done), j->out.bytes_done + done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return journal_failed(j, "write");
        done += put;
    }
    if (fdatasync(j->journal_file) != 0)
        return journal_failed(j, "flush it to the disk");
    j->out.bytes_done += bytes;
    return WW_OK;
}

/* Joins the edges of all complete blocks again. */
static ww_status journal_replay(dedup_job *j)
{
    enum { PIECE = 1 << 16 };
    _Static_assert(PIECE % sizeof(edge) == 0, "edges are not cut");
    unsigned char *piece = memory_alloc(PIECE);
    ww_status status = piece ? WW_OK : memory_failed("pairs of rows", PIECE);
    for (int64_t done = 0; done < j->out.bytes_done && status == WW_OK;) {
        const size_t wanted = min_size(PIECE, (size_t)(j->out.bytes_done - done));
        const ssize_t got = pread(j->journal_file, piece, wanted, done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got != (ssize_t)wanted)
            status = got < 0 ? journal_failed(j, "read it")
                             : ww_fail(WW_CORRUPT_FILE, "%s: ends before the %" PRId64 " bytes that are complete", j->journal,
                                       j->out.bytes_done);
        else
            status = join_edges(j, piece, got);
        done += got;
    }
    memory_free(piece);
    return status;
}

/* ---- blocks ---------------------------------------------------------------------------------------------------------------
 */

static ww_status block_done(dedup_job *j)
{
    cluster_call call;
    collecting edges = {.mine = j->edges, .bytes = j->edge_count * (int64_t)sizeof *j->edges};
    ww_status status = call_begin(&call, j->data.cluster, CALL_COLLECT);
    if (status != WW_OK)
        return status;
    status = cluster_collect(&call, &edges);
    if (status == WW_OK && here.rank == 0) {
        const int64_t bytes = edges.starts[here.ranks];
        status = join_edges(j, edges.all, bytes);
        if (status == WW_OK)
            status = journal_write(j, edges.all, bytes);
    }
    call_end(&call);
    return status == WW_OK ? parts_block_done(&j->out) : status;
}

static ww_status search_blocks(dedup_job *j)
{
    const int64_t block = j->options->common.block;
    const double begun = seconds_now();
    rank_progress told;
    ww_status status = WW_OK;
    rank_progress_begin(&told, "rows", j->out.blocks_done * block, j->data.rows, j->options->common.quiet);
    for (int64_t begin = j->out.blocks_done * block; begin < j->data.rows && status == WW_OK; begin += block) {
        status = search_shard(j, begin, min_i64(block, j->data.rows - begin));
        if (status == WW_OK)
            status = block_done(j);
        rank_progress_tell(&told, begin + block);
    }
    j->search_seconds = seconds_now() - begun;
    return status;
}

/* ---- results --------------------------------------------------------------------------------------------------------------
 */

/* Writes row numbers in the file's element type: the first row of each row's group, or only the rows that are kept. */
static ww_status write_numbers(dedup_job *j, part_file *f, bool kept_only)
{
    enum { BUFFERED = 8192 };
    const int64_t element_bytes = ww_element_bytes(f->element);
    char *buffer = memory_alloc(BUFFERED * sizeof(int64_t));
    ww_status status = buffer ? WW_OK : memory_failed("row numbers", BUFFERED * sizeof(int64_t));
    int64_t written = 0, count = 0;
    for (int64_t row = 0; row < j->data.rows && status == WW_OK; row++) {
        const int64_t first = forest_find(j->forest, row);
        if (!kept_only || first == row) {
            const int32_t narrow = (int32_t)first;
            memcpy(buffer + count++ * element_bytes, element_bytes == 4 ? (const void *)&narrow : &first,
                   (size_t)element_bytes);
        }
        if (count == BUFFERED || row + 1 == j->data.rows) {
            status = part_write(f, written, count, buffer);
            written += count;
            count = 0;
        }
    }
    memory_free(buffer);
    return status;
}

/* Makes the files once all results are known; never reuses their parts. */
static ww_status write_results(dedup_job *j)
{
    parts results = {.files = {j->out.files[0], j->out.files[1]}};
    for (int64_t row = 0; row < j->data.rows; row++)
        j->kept += forest_find(j->forest, row) == row;
    results.files[0].rows = j->kept;
    results.files[1].rows = j->data.rows;
    ww_status status = parts_make(&results);
    if (status == WW_OK && results.files[0].target)
        status = write_numbers(j, &results.files[0], true);
    if (status == WW_OK && results.files[1].target)
        status = write_numbers(j, &results.files[1], false);
    if (status == WW_OK)
        status = parts_finish(&results);
    parts_close(&results);
    return status;
}

static void report(const dedup_job *j)
{
    const dedup_options *o = j->options;
    if (here.rank != 0)
        return;
    if (o->common.json) {
        json_writer w = {.to = stdout, .digits = JSON_DIGITS_F32};
        mpi_report_begin(&w, &j->data);
        json_put_text(&w, "metric", ww_metric_name((ww_metric)o->common.metric));
        json_put_real(&w, "bound", (double)o->bound);
        json_put_integer(&w, "kept", j->kept);
        json_put_integer(&w, "duplicates", j->data.rows - j->kept);
        mpi_report_end(&w, &j->data, j->search_seconds);
        return;
    }
    printf("%d ranks, %lld rows of %d: %lld kept, %lld near one of them\nloaded in %.3g s, searched in %.3g s\n", here.ranks,
           (long long)j->data.rows, j->data.dim, (long long)j->kept, (long long)(j->data.rows - j->kept), j->data.load_seconds,
           j->search_seconds);
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------
 */

static ww_status read_bound(dedup_options *o)
{
    const bool l2 = o->common.metric == WW_L2;
    const char *text = l2 ? o->radius : o->min_score, *name = l2 ? "--radius" : "--min-score";
    char *end = NULL;
    if ((o->radius != NULL) + (o->min_score != NULL) != 1 || !text)
        return ww_fail(WW_INVALID_ARGUMENT, "--metric %s needs %s and no other bound",
                       ww_metric_name((ww_metric)o->common.metric), name);
    o->bound = strtof(text, &end);
    if (*end != '\0' || isnan(o->bound) || (l2 && o->bound < 0.0f))
        return ww_fail(WW_INVALID_ARGUMENT, "%s '%s': it must be a number%s", name, text, l2 ? " from 0" : "");
    if (!o->out_kept && !o->out_groups)
        return ww_fail(WW_INVALID_ARGUMENT, "--out-kept or --out-groups is missing");
    return WW_OK;
}

/* Opens the run's own files: the journal, which holds the edges until the results are written, and the progress. */
static ww_status open_run(dedup_job *j)
{
    const dedup_options *o = j->options;
    const char *target = o->out_kept ? o->out_kept : o->out_groups;
    const file_use uses[] = {{.what = "--base", .path = o->common.base},
                             {.what = "--out-kept", .path = o->out_kept, .output = true},
                             {.what = "--out-groups", .path = o->out_groups, .output = true}};
    uint64_t print = FNV_BEGIN;
    uint32_t bound_bits;
    ww_status status = file_uses_check(uses, sizeof uses / sizeof *uses);
    if (status == WW_OK && o->out_kept)
        status = part_file_rows(&j->out.files[0], "--out-kept", o->out_kept, j->data.rows);
    if (status == WW_OK && o->out_groups)
        status = part_file_rows(&j->out.files[1], "--out-groups", o->out_groups, j->data.rows);
    if (status == WW_OK)
        status = fingerprint_file(&print, o->common.base);
    if (status != WW_OK)
        return status;
    fingerprint_text(&print, "dedup");
    fingerprint_text(&print, WW_VERSION_TEXT);
    memcpy(&bound_bits, &o->bound, sizeof bound_bits);
    fingerprint_number(&print, bound_bits);
    fingerprint_number(&print, o->common.metric);
    fingerprint_number(&print, o->common.type);
    fingerprint_number(&print, o->common.block);
    j->out.fingerprint = print;
    j->out.blocks_total = divide_up_i64(j->data.rows, o->common.block);
    j->out.files[0].dim = j->out.files[1].dim = 1;
    snprintf(j->journal, sizeof j->journal, "%s.pairs", target);
    status = parts_resume(&j->out, j->data.cluster, o->common.resume);
    if (status != WW_OK || here.rank != 0)
        return status;
    j->journal_file = open(j->journal, O_RDWR | O_CREAT | O_CLOEXEC | (j->out.blocks_done == 0 ? O_TRUNC : 0), 0666);
    return j->journal_file >= 0 ? journal_replay(j) : journal_failed(j, "open it");
}

static ww_status take_memory(dedup_job *j)
{
    const size_t block_bytes =
        (size_t)min_i64(j->options->common.block, max_i64(1, j->data.rows)) * (size_t)j->data.dim * sizeof *j->block;
    j->shard_rows = ww_collection_count(ww_cluster_collection(j->data.cluster));
    j->shard_forest = forest_make(j->shard_rows);
    j->forest = here.rank == 0 ? forest_make(j->data.rows) : NULL;
    j->block = memory_alloc(block_bytes);
    if (!j->shard_forest || !j->block || (here.rank == 0 && !j->forest))
        return memory_failed("which rows are joined", block_bytes + (size_t)(j->shard_rows + j->data.rows) * sizeof(int64_t));
    return WW_OK;
}

static ww_status dedup(const dedup_options *options)
{
    dedup_job j = {.options = options, .journal_file = -1, .out = {.files = {{.descriptor = -1}, {.descriptor = -1}}}};
    ww_matrix_info info;
    ww_status status = mpi_load(&options->common, &j.data);
    if (status == WW_OK)
        status = mpi_open_file(options->common.base, options->common.format, &j.file, &info);
    if (status == WW_OK)
        status = take_memory(&j);
    if (status == WW_OK)
        status = open_run(&j);
    if (status == WW_OK)
        status = search_blocks(&j);
    if (status == WW_OK && here.rank == 0)
        status = write_results(&j);
    if (status == WW_OK && here.rank == 0) {
        unlink(j.out.progress);
        unlink(j.journal);
    }
    if (status == WW_OK)
        status = mpi_meet(j.data.cluster);
    if (status == WW_OK)
        report(&j);
    if (j.journal_file >= 0)
        close(j.journal_file);
    memory_free(j.edges);
    memory_free(j.block);
    memory_free(j.forest);
    memory_free(j.shard_forest);
    ww_matrix_close(j.file);
    mpi_unload(&j.data);
    return status;
}

static exit_code run(const char *const *arguments, size_t count)
{
    dedup_options settings = {.common = COMMON_DEFAULTS};
    const exit_code code = mpi_parse(&mpi_dedup, arguments, count, &settings);
    if (code != EXIT_CODE_OK)
        return code;
    if (read_bound(&settings) != WW_OK)
        return here.rank == 0 ? command_misused(&mpi_dedup, "%s", ww_error_message()) : EXIT_CODE_USAGE;
    return mpi_end(&mpi_dedup, dedup(&settings));
}

#define TEXT(...) OPTION_IS_TEXT(dedup_options, __VA_ARGS__)

static const option table[] = {
    TEXT(common.base, true, "--base", "FILE", "the rows; each rank holds its own slice"),
    TEXT(radius, false, "--radius", "R", "l2: rows within this distance of each other are duplicates"),
    TEXT(min_score, false, "--min-score", "S", "cosine, dot: rows with at least this score are duplicates"),
    TEXT(out_kept, false, "--out-kept", "FILE", "write the rows to keep, the first of each group, to a .ibin or .npy file"),
    TEXT(out_groups, false, "--out-groups", "FILE", "write the first row of each row's group to a .ibin or .npy file"),
    COMMON_OPTIONS(dedup_options),
};

static const char notes[] =
    "Rows within the bound of each other are in one group, directly or through other rows: groups are the\n"
    "connected components. Files are written at the end; --resume continues an interrupted run.\n";

const command mpi_dedup = {
    .name = "dedup",
    .summary = "Find the rows of a file that are near others, and which one of each group to keep, over all ranks",
    .notes = notes,
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .run = run,
};
