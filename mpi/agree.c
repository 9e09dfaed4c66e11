/* Agreeing: every rank sends its report to all others, and all draw the same conclusion from the same reports. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "mpi/cluster.h"

enum { REPORT_FORMAT = 4, REPORT_WORDS = sizeof(rank_report) / sizeof(int64_t) };

static int64_t version_word(void)
{
    return (int64_t)WW_VERSION_MAJOR << 48 | (int64_t)WW_VERSION_MINOR << 32 | (int64_t)WW_VERSION_PATCH << 16 | REPORT_FORMAT;
}

/* ---- disagreement -------------------------------------------------------------------------------------------------------- */

typedef void (*word_to_text)(int64_t word, char *text, size_t capacity);

static void number_text(int64_t word, char *text, size_t capacity)
{
    snprintf(text, capacity, "%" PRId64, word);
}

static void version_text(int64_t word, char *text, size_t capacity)
{
    snprintf(text, capacity, "%d.%d.%d", (int)(word >> 48 & 0xffff), (int)(word >> 32 & 0xffff), (int)(word >> 16 & 0xffff));
}

static void call_text(int64_t word, char *text, size_t capacity)
{
    const char *name = call_name(word);
    text_copy(text, capacity, name ? name : "another call");
}

static void metric_text(int64_t word, char *text, size_t capacity)
{
    const char *name = ww_metric_name((ww_metric)word);
    text_copy(text, capacity, name ? name : "an unknown metric");
}

static void answer_text(int64_t word, char *text, size_t capacity)
{
    text_copy(text, capacity, word == WW_ANSWER_ROOT ? "the root" : "all ranks");
}

typedef struct agreed_field {
    size_t offset;
    const char *what; /* "dimension" */
    word_to_text text;
    ww_status status;
} agreed_field;

#define FIELD(name) offsetof(rank_report, name)
static const agreed_field first_fields[] = {{FIELD(version), "version of warpwave", version_text, WW_UNSUPPORTED},
                                            {FIELD(call), "call", call_text, WW_INVALID_ARGUMENT}};
static const agreed_field fields[] = {{FIELD(dim), "dimension", number_text, WW_DIMENSION_MISMATCH},
                                      {FIELD(metric), "metric", metric_text, WW_INVALID_ARGUMENT},
                                      {FIELD(root), "root", number_text, WW_INVALID_ARGUMENT},
                                      {FIELD(answer), "rank to answer on", answer_text, WW_INVALID_ARGUMENT},
                                      {FIELD(k), "k", number_text, WW_INVALID_ARGUMENT},
                                      {FIELD(query_count), "number of queries", number_text, WW_INVALID_ARGUMENT}};

static int64_t word_at(const rank_report *report, size_t offset)
{
    int64_t word;
    memcpy(&word, (const char *)report + offset, sizeof word);
    return word;
}

/* Reports the first rank whose field differs from rank 0's. */
static ww_status compare_fields(const cluster_call *call, const agreed_field *list, size_t count)
{
    const ww_cluster *c = call->cluster;
    for (size_t i = 0; i < count; i++) {
        const int64_t first = word_at(&c->reports[0], list[i].offset);
        for (int32_t r = 1; r < c->ranks; r++) {
            const int64_t other = word_at(&c->reports[r], list[i].offset);
            char texts[2][48];
            if (other == first)
                continue;
            list[i].text(first, texts[0], sizeof texts[0]);
            list[i].text(other, texts[1], sizeof texts[1]);
            return ww_fail(list[i].status, "%s: ranks disagree in the %s: rank 0 has %s, rank %d has %s", call->function,
                           list[i].what, texts[0], r, texts[1]);
        }
    }
    return WW_OK;
}

/* Ranks that have queries must have the same as the root. */
static ww_status compare_queries(const cluster_call *call)
{
    const ww_cluster *c = call->cluster;
    const rank_report *root = &c->reports[c->root];
    for (int32_t r = 0; r < c->ranks; r++)
        if (root->queries_given && c->reports[r].queries_given && c->reports[r].queries_hash != root->queries_hash)
            return ww_fail(WW_INVALID_ARGUMENT,
                           "%s: rank %d has other queries than the root, rank %d; give the same, or NULL to receive them",
                           call->function, r, c->root);
    return WW_OK;
}

/* ---- failures ------------------------------------------------------------------------------------------------------------ */

/* The first rank that failed tells all others why. */
static ww_status tell_failure(cluster_call *call, int32_t failed)
{
    ww_cluster *c = call->cluster;
    ww_status status = cluster_mpi(
        c, MPI_Ibcast(c->failure, sizeof c->failure, MPI_CHAR, failed, c->communicator, &c->requests[0]), "MPI_Ibcast");
    if (status == WW_OK)
        status = cluster_wait(c, 1, call->function);
    if (status != WW_OK)
        return status;
    c->failure[sizeof c->failure - 1] = '\0';
    return ww_fail((ww_status)c->reports[failed].status, "rank %d: %s", failed, c->failure);
}

ww_status call_agree_all(cluster_call *call, ww_status mine)
{
    ww_cluster *c = call->cluster;
    text_copy(c->failure, sizeof c->failure, mine == WW_OK ? "" : ww_error_message());
    c->report = call->report;
    c->report.version = version_word();
    c->report.status = mine;
    c->report.dim = c->dim;
    c->report.metric = c->metric;
    c->report.root = c->root;
    c->report.first_row = c->first_row;
    ww_status status = cluster_mpi(c,
                                   MPI_Iallgather(&c->report, REPORT_WORDS, MPI_INT64_T, c->reports, REPORT_WORDS, MPI_INT64_T,
                                                  c->communicator, &c->requests[0]),
                                   "MPI_Iallgather");
    if (status == WW_OK)
        status = cluster_wait(c, 1, call->function);
    if (status == WW_OK)
        status = compare_fields(call, first_fields, sizeof first_fields / sizeof *first_fields);
    if (status != WW_OK)
        return status;
    for (int32_t r = 0; r < c->ranks; r++)
        if (c->reports[r].status != WW_OK)
            return tell_failure(call, r);
    status = compare_fields(call, fields, sizeof fields / sizeof *fields);
    return status == WW_OK ? compare_queries(call) : status;
}

/* ---- numbers ------------------------------------------------------------------------------------------------------------- */

ww_status cluster_number_rows(ww_cluster *c)
{
    int64_t end = 0;
    for (int32_t r = 0; r < c->ranks; r++) {
        const int64_t given = c->reports[r].first_row;
        if (given >= 0 && given < end)
            return ww_fail(WW_INVALID_ARGUMENT,
                           "rank %d: first_row is %" PRId64 ", but the rows of lower ranks reach up to %" PRId64, r, given,
                           end - 1);
        c->first_rows[r] = given >= 0 ? given : end;
        c->row_counts[r] = c->reports[r].rows_end;
        if (__builtin_add_overflow(c->first_rows[r], c->reports[r].rows_end, &end))
            return ww_fail(WW_OUT_OF_RANGE, "rank %d: its rows are numbered from %" PRId64 " on, which does not fit 64 bits", r,
                           c->first_rows[r]);
    }
    c->first_rows[c->ranks] = end;
    return WW_OK;
}
