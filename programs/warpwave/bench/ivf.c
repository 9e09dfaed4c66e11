/* `warpwave bench --ivf`: an index compared with the exact search, by the number of lists that a query reads. */
#include "warpwave/bench/bench.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "warpwave/command.h"
#include "warpwave/json.h"
#include "warpwave/terminal.h"

enum { ONES_MAX = 100 }; /* queries that are searched one by one; all differ, so no cache holds their lists */

static const double recall_enough = 0.999;

static ww_query query_of(const bench *b, int64_t first, int64_t count, int64_t nprobe)
{
    ww_query asked = ww_query_default();
    asked.queries = b->queries + first * b->settings.dim;
    asked.query_count = count;
    asked.dim = (int32_t)b->settings.dim;
    asked.k = (int32_t)b->settings.k;
    asked.nprobe = nprobe;
    return asked;
}

static ww_status build(bench *b)
{
    progress bar;
    ww_ivf_config config = ww_ivf_config_default();
    config.nlist = b->settings.nlist;
    config.progress = progress_report;
    config.progress_user = &bar;
    progress_begin(&bar, "building the index", b->settings.rows);
    const double start = seconds_now();
    ww_status status = ww_collection_build_ivf(b->collection, &config);
    b->build_seconds = seconds_now() - start;
    progress_end(&bar);
    b->index = ww_ivf_info_default();
    if (status == WW_OK)
        status = ww_collection_describe_ivf(b->collection, &b->index);
    return status == WW_OK ? interrupt_check() : status;
}

/* Searches once as a warm-up, then takes the median of the other searches. */
static ww_status time_all(bench *b, bench_probe *probe)
{
    const ww_query asked = query_of(b, 0, b->settings.queries, probe->nprobe);
    ww_status status = WW_OK;
    for (int64_t i = -1; i < b->settings.repeat && status == WW_OK; i++) {
        const double start = seconds_now();
        status = ww_collection_search(b->collection, &asked, b->found, b->scores);
        if (i >= 0)
            b->seconds[i] = seconds_now() - start;
        if (status == WW_OK)
            status = interrupt_check();
    }
    if (status == WW_OK)
        probe->all_seconds = median(b->seconds, b->settings.repeat);
    return status;
}

static ww_status time_ones(bench *b, bench_probe *probe)
{
    double seconds[ONES_MAX];
    const int64_t count = b->settings.queries < ONES_MAX ? b->settings.queries : ONES_MAX;
    ww_status status = WW_OK;
    for (int64_t i = -1; i < count && status == WW_OK; i++) {
        const ww_query asked = query_of(b, i < 0 ? 0 : i, 1, probe->nprobe);
        const double start = seconds_now();
        status = ww_collection_search(b->collection, &asked, b->found, b->scores);
        if (i >= 0)
            seconds[i] = seconds_now() - start;
    }
    if (status == WW_OK)
        probe->one_seconds = median(seconds, count);
    return status == WW_OK ? interrupt_check() : status;
}

/* Computes the fraction of `truth`, k rows per query, that was found, and the fraction of the hits that is proven. */
static void compare(const bench *b, const ww_results *found, const int64_t *truth, bench_probe *probe)
{
    int64_t hits = 0, proven = 0, wanted = 0;
    for (int64_t q = 0; q < b->settings.queries; q++) {
        const int64_t *rows = ww_results_rows(found, q), *right = truth + q * b->settings.k;
        const int64_t count = ww_results_count(found, q);
        for (int64_t i = 0; i < b->settings.k && right[i] >= 0; i++, wanted++)
            for (int64_t j = 0; j < count; j++)
                hits += rows[j] == right[i];
        proven += ww_results_proven(found, q);
    }
    probe->recall = (double)hits / (double)wanted;
    probe->proven = (double)proven / (double)wanted;
}

static ww_status measure_probe(bench *b, const int64_t *truth, bench_probe *probe)
{
    ww_results *found = NULL;
    const ww_query asked = query_of(b, 0, b->settings.queries, probe->nprobe);
    ww_status status = ww_collection_query(b->collection, &asked, &found);
    if (status == WW_OK)
        compare(b, found, truth, probe);
    ww_results_destroy(found);
    if (status == WW_OK)
        status = time_all(b, probe);
    return status == WW_OK ? time_ones(b, probe) : status;
}

/* Repeats the exact search, which can now use the index to exclude lists. */
static ww_status measure_exact_again(bench *b, const int64_t *truth)
{
    bench_probe *probe = &b->probes[b->probe_count++];
    *probe = (bench_probe){.by_index = true};
    return measure_probe(b, truth, probe);
}

ww_status bench_ivf_measure(bench *b)
{
    const size_t bytes = (size_t)(b->settings.queries * b->settings.k) * sizeof *b->found;
    int64_t *truth = memory_alloc(bytes);
    if (!truth)
        return memory_failed("the nearest rows", bytes);
    bench_probe *exact = &b->probes[b->probe_count++];
    *exact = (bench_probe){.recall = 1.0, .proven = 1.0};
    ww_status status = time_all(b, exact); /* before the index is built */
    if (status == WW_OK)
        memcpy(truth, b->found, bytes);
    if (status == WW_OK)
        status = time_ones(b, exact);
    if (status == WW_OK)
        status = build(b);
    double recall = 0.0;
    for (int64_t nprobe = 1; status == WW_OK && recall < recall_enough && b->probe_count < BENCH_PROBES_MAX - 1; nprobe *= 2) {
        if (nprobe > 1 && nprobe > b->index.nlist / 2)
            break;
        bench_probe *probe = &b->probes[b->probe_count++];
        *probe = (bench_probe){.nprobe = nprobe};
        status = measure_probe(b, truth, probe);
        recall = probe->recall;
    }
    if (status == WW_OK)
        status = measure_exact_again(b, truth);
    memory_free(truth);
    return status;
}

void bench_ivf_print(const bench *b)
{
    char name[32];
    printf("index   %lld lists of %.0f rows on average, %lld at most; built in %.2f s\n\n", (long long)b->index.nlist,
           b->index.rows_mean, (long long)b->index.rows_largest, b->build_seconds);
    snprintf(name, sizeof name, "%lld quer%s", (long long)b->settings.queries, b->settings.queries == 1 ? "y" : "ies");
    printf("%-12s %10s %10s %15s %18s %12s\n", "nprobe", "recall", "proven", "one query", name, "queries/s");
    for (int i = 0; i < b->probe_count; i++) {
        const bench_probe *p = &b->probes[i];
        snprintf(name, sizeof name, p->by_index ? "exact, index" : p->nprobe == 0 ? "exact" : "%lld", (long long)p->nprobe);
        printf("%-12s %10.4f %10.4f %12.3f ms %15.3f ms %12.1f\n", name, p->recall, p->proven, p->one_seconds * 1e3,
               p->all_seconds * 1e3, (double)b->settings.queries / p->all_seconds);
    }
}

void bench_ivf_print_json(const bench *b)
{
    json_writer w = {.to = stdout, .digits = JSON_DIGITS_F32};
    json_open(&w, NULL, '{');
    json_put_text(&w, "device", b->device_info.id);
    json_put_text(&w, "device_name", b->device_info.name);
    json_put_integer(&w, "rows", b->settings.rows);
    json_put_integer(&w, "dim", b->settings.dim);
    json_put_text(&w, "type", ww_vector_type_name((ww_vector_type)b->settings.type));
    json_put_integer(&w, "k", b->settings.k);
    json_put_text(&w, "metric", ww_metric_name((ww_metric)b->settings.metric));
    json_put_integer(&w, "queries", b->settings.queries);
    json_put_real(&w, "add_seconds", b->add_seconds);
    json_put_integer(&w, "nlist", b->index.nlist);
    json_put_integer(&w, "rows_largest", b->index.rows_largest);
    json_put_real(&w, "build_seconds", b->build_seconds);
    json_open(&w, "searches", '[');
    for (int i = 0; i < b->probe_count; i++) {
        const bench_probe *p = &b->probes[i];
        json_open(&w, NULL, '{');
        json_put_integer(&w, "nprobe", p->nprobe);
        json_put_bool(&w, "indexed", p->by_index || p->nprobe > 0);
        json_put_real(&w, "recall", p->recall);
        json_put_real(&w, "proven", p->proven);
        json_put_real(&w, "one_query_seconds", p->one_seconds);
        json_put_real(&w, "seconds", p->all_seconds);
        json_close(&w);
    }
    json_close(&w);
    json_close(&w);
}
