/* Packing hits, and merging what all ranks packed into one results object. */
#include "mpi/records.h"

#include <stdlib.h>
#include <string.h>

#include "base/integers.h"
#include "base/memory.h"
#include "vectors/internal/core.h"

typedef struct record_head {
    rank_key key;
    int64_t handle;
    int64_t id_bytes;      /* -1: none */
    int64_t payload_bytes; /* -1: none */
} record_head;

typedef struct query_head {
    int64_t count, total;
} query_head;

/* ---- packing ------------------------------------------------------------------------------------------------------------- */

static int64_t text_bytes(const char *text)
{
    return text ? (int64_t)strlen(text) : -1;
}

static record_head head_of(const ww_cluster *c, const records_own *own, int64_t query, int64_t hit)
{
    const ww_results *r = own->results;
    return (record_head){
        .key = rank_key_make(c->metric, ww_results_scores(r, query)[hit], c->rank, ww_results_rows(r, query)[hit]),
        .handle = ww_results_handles(r, query)[hit],
        .id_bytes = own->fetch & WW_FETCH_IDS ? text_bytes(ww_results_id(r, query, hit)) : -1,
        .payload_bytes = own->fetch & WW_FETCH_PAYLOADS ? text_bytes(ww_results_payload(r, query, hit)) : -1};
}

static size_t vector_bytes(const ww_cluster *c, uint32_t fetch)
{
    return fetch & WW_FETCH_VECTORS ? (size_t)c->dim * sizeof(float) : 0;
}

static size_t record_bytes(const ww_cluster *c, const record_head *head, uint32_t fetch)
{
    return sizeof *head + vector_bytes(c, fetch) + (size_t)max_i64(head->id_bytes, 0) + (size_t)max_i64(head->payload_bytes, 0);
}

static unsigned char *put(unsigned char *to, const void *from, size_t bytes)
{
    if (bytes > 0)
        memcpy(to, from, bytes);
    return to + bytes;
}

static unsigned char *put_record(const ww_cluster *c, const records_own *own, int64_t query, int64_t hit, unsigned char *to)
{
    const record_head head = head_of(c, own, query, hit);
    to = put(to, &head, sizeof head);
    to = put(to, ww_results_vector(own->results, query, hit), vector_bytes(c, own->fetch));
    to = put(to, ww_results_id(own->results, query, hit), (size_t)max_i64(head.id_bytes, 0));
    return put(to, ww_results_payload(own->results, query, hit), (size_t)max_i64(head.payload_bytes, 0));
}

ww_status records_pack(cluster_call *call, const records_own *own, unsigned char **packed, int64_t *bytes)
{
    const ww_cluster *c = call->cluster;
    const int64_t query_count = ww_results_query_count(own->results);
    size_t all = (size_t)query_count * sizeof(query_head);
    for (int64_t q = 0; q < query_count; q++) {
        for (int64_t i = 0; i < own->counts[q]; i++) {
            const record_head head = head_of(c, own, q, i);
            all += record_bytes(c, &head, own->fetch);
        }
    }
    const ww_status status = call_array(call, (int64_t)all, 1, "the results of this rank", packed);
    if (status != WW_OK)
        return status;
    unsigned char *to = *packed;
    for (int64_t q = 0; q < query_count; q++) {
        const query_head head = {own->counts[q], ww_results_total(own->results, q)};
        to = put(to, &head, sizeof head);
    }
    for (int64_t q = 0; q < query_count; q++)
        for (int64_t i = 0; i < own->counts[q]; i++)
            to = put_record(c, own, q, i, to);
    *bytes = (int64_t)all;
    return WW_OK;
}

/* ---- merging ------------------------------------------------------------------------------------------------------------- */

typedef struct entry {
    rank_key key;
    const unsigned char *record;
} entry;

typedef struct merging {
    const records_all *all;
    const unsigned char **cursors; /* each rank's next record */
    entry *entries;                /* for one query */
    const unsigned char **kept;    /* the record of each kept hit */
} merging;

static query_head query_head_at(const records_all *all, int32_t rank, int64_t query)
{
    query_head head;
    memcpy(&head, all->packed + all->starts[rank] + query * (int64_t)sizeof head, sizeof head);
    return head;
}

static int64_t hits_of(const ww_cluster *c, const records_all *all, int64_t query)
{
    int64_t hits = 0;
    for (int32_t r = 0; r < c->ranks; r++)
        hits += query_head_at(all, r, query).count;
    return hits;
}

static int compare_entries(const void *left, const void *right)
{
    const entry *a = left, *b = right;
    return rank_key_before(a->key, b->key) ? -1 : rank_key_before(b->key, a->key);
}

/* Takes the records of one query from all ranks, in the order of their keys. */
static int64_t take_query(const ww_cluster *c, merging *m, int64_t query)
{
    int64_t count = 0;
    for (int32_t r = 0; r < c->ranks; r++) {
        const int64_t hits = query_head_at(m->all, r, query).count;
        for (int64_t i = 0; i < hits; i++) {
            record_head head;
            memcpy(&head, m->cursors[r], sizeof head);
            m->entries[count++] = (entry){head.key, m->cursors[r]};
            m->cursors[r] += record_bytes(c, &head, m->all->fetch);
        }
    }
    qsort(m->entries, (size_t)count, sizeof *m->entries, compare_entries);
    return count;
}

static void fill_hits(const ww_cluster *c, merging *m, ww_results *results)
{
    int64_t hit = 0;
    for (int64_t q = 0; q < m->all->query_count; q++) {
        const int64_t there = take_query(c, m, q), kept = min_i64(there, m->all->limit);
        for (int64_t i = 0; i < kept; i++, hit++) {
            record_head head;
            memcpy(&head, m->entries[i].record, sizeof head);
            results->rows[hit] = c->first_rows[rank_key_rank(head.key)] + (int64_t)head.key.row;
            results->handles[hit] = head.handle;
            results->scores[hit] = rank_key_score(c->metric, head.key);
            m->kept[hit] = m->entries[i].record;
        }
        results->starts[q + 1] = hit;
        if (results->totals)
            results->totals[q] = 0;
        for (int32_t r = 0; r < c->ranks && results->totals; r++)
            results->totals[q] += query_head_at(m->all, r, q).total;
    }
}

/* Copies the data of the hits. There is room for all texts, because the records are longer than the texts. */
static ww_status fill_fetched(const ww_cluster *c, const merging *m, ww_results *results)
{
    const size_t vector = vector_bytes(c, m->all->fetch);
    const int64_t hits = results->starts[results->query_count];
    ww_status status = WW_OK;
    for (int64_t hit = 0; hit < hits && status == WW_OK; hit++) {
        const unsigned char *from = m->kept[hit] + sizeof(record_head);
        record_head head;
        memcpy(&head, m->kept[hit], sizeof head);
        if (results->vectors)
            memcpy(results->vectors + hit * results->dim, from, vector);
        from += vector;
        if (head.id_bytes >= 0)
            status = ww_core()->results_put(results, &results->ids[hit], (const char *)from, (size_t)head.id_bytes);
        from += max_i64(head.id_bytes, 0);
        if (status == WW_OK && head.payload_bytes >= 0)
            status = ww_core()->results_put(results, &results->payloads[hit], (const char *)from, (size_t)head.payload_bytes);
    }
    return status;
}

ww_status records_merge(cluster_call *call, const records_all *all, ww_results **made)
{
    const ww_cluster *c = call->cluster;
    merging m = {.all = all};
    ww_results *results = NULL;
    int64_t hits = 0, hits_max = 0;
    for (int64_t q = 0; q < all->query_count; q++) {
        const int64_t there = hits_of(c, all, q);
        hits += min_i64(there, all->limit);
        hits_max = max_i64(hits_max, there);
    }
    ww_status status = call_array(call, c->ranks, sizeof *m.cursors, "merging results", &m.cursors);
    if (status == WW_OK)
        status = call_array(call, hits_max, sizeof *m.entries, "merging results", &m.entries);
    if (status == WW_OK)
        status = call_array(call, hits, sizeof *m.kept, "merging results", &m.kept);
    if (status == WW_OK)
        status = ww_core()->results_create(all->query_count, hits, &results);
    if (status == WW_OK && all->ranged)
        status = ww_core()->results_totals(results);
    if (status == WW_OK) {
        for (int32_t r = 0; r < c->ranks; r++)
            m.cursors[r] = all->packed + all->starts[r] + all->query_count * (int64_t)sizeof(query_head);
        fill_hits(c, &m, results);
        const bool texts = hits > 0 && all->fetch & (WW_FETCH_IDS | WW_FETCH_PAYLOADS);
        status = ww_core()->results_prepare(results, all->fetch, c->dim, texts ? (size_t)all->starts[c->ranks] : 0);
    }
    if (status == WW_OK)
        status = fill_fetched(c, &m, results);
    if (status == WW_OK)
        *made = results;
    else
        ww_results_destroy(results);
    return status;
}
