/* Merging the groups of shards. */
#include "server/nodes/groups.h"

#include <string.h>

#include "base/array.h"
#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/qdrant/point_id.h"

void group_merge_free(group_merge *m)
{
    for (int64_t i = 0; i < m->count; i++) {
        memory_free(m->groups[i].id);
        if (m->hits)
            hits_free(&m->hits[i]);
    }
    memory_free(m->groups);
    memory_free(m->hits);
    memory_free(m->lookups);
    *m = (group_merge){0};
}

static void put_key(out *o, const char *key)
{
    out_bytes(o, key, (size_t)(json_end(key) - key));
}

void group_merge_ask(const group_merge *m, out *body)
{
    out_text(body, m->chosen ? "\"groups\",\"keys\":[" : "\"groups\",\"keys\":null");
    for (int64_t i = 0; m->chosen && i < m->count; i++) {
        out_text(body, i > 0 ? "," : "");
        put_key(body, m->groups[i].key);
    }
    out_text(body, m->chosen ? "]" : "");
}

static bool same_key(const char *a, const char *b)
{
    const size_t bytes = (size_t)(json_end(a) - a);
    return bytes == (size_t)(json_end(b) - b) && memcmp(a, b, bytes) == 0;
}

static const char *groups_of(const shard_answer *answer)
{
    const char *result = merge_result(answer), *list = result ? json_given(result, "groups") : NULL;
    return list && json_type_of(list) == JSON_LIST ? list : NULL;
}

/* ---- the first round: which groups -----------------------------------------------------------------------------------------
 */

static int compare_keys(const void *first, const void *second)
{
    const char *a = ((const shard_group *)first)->key, *b = ((const shard_group *)second)->key;
    const size_t x = (size_t)(json_end(a) - a), y = (size_t)(json_end(b) - b);
    const int order = memcmp(a, b, x < y ? x : y);
    return order != 0 ? order : (x > y) - (x < y);
}

static int compare_groups(const void *first, const void *second)
{
    const shard_group *a = first, *b = second;
    int order = (a->rank > b->rank) - (a->rank < b->rank);
    order = order != 0 ? order : point_id_compare(a->id, b->id);
    return order != 0 ? order : (a->number > b->number) - (a->number < b->number);
}

/* By key, and among those with the same the best first. */
static int compare_same(const void *first, const void *second)
{
    const int order = compare_keys(first, second);
    return order != 0 ? order : compare_groups(first, second);
}

static ww_status add_group(group_merge *m, const char *group, int64_t number, hit_order order)
{
    const char *key = json_given(group, "id"), *list = json_given(group, "hits");
    hit_list hits = {0};
    ww_status status = key ? array_reserve(&m->groups, &m->capacity, m->count + 1, sizeof *m->groups, "groups") : odd_answer();
    hits_add(&hits, list, order);
    if (status == WW_OK)
        status = hits.status;
    if (status == WW_OK && hits.count > 0) {
        m->groups[m->count++] = (shard_group){key, hits.hits[0].id, hits.hits[0].rank, number};
        hits.hits[0].id = NULL;
    }
    hits_free(&hits);
    return status;
}

/* Keeps the best of each key, and of these the best. */
static ww_status choose(group_merge *m, int64_t limit)
{
    int64_t kept = 0;
    ww_status status = job_sort(m->groups, (size_t)m->count, sizeof *m->groups, compare_same);
    for (int64_t i = 0; status == WW_OK && i < m->count; i++) {
        if (kept == 0 || !same_key(m->groups[kept - 1].key, m->groups[i].key))
            m->groups[kept++] = m->groups[i];
        else
            memory_free(m->groups[i].id);
    }
    if (status != WW_OK)
        return status;
    m->count = kept;
    status = job_sort(m->groups, (size_t)m->count, sizeof *m->groups, compare_groups);
    for (; m->count > limit; m->count--)
        memory_free(m->groups[m->count - 1].id);
    return status;
}

/* ---- the second round: their hits ------------------------------------------------------------------------------------------
 */

/* The groups come in the order in which they were asked for. */
static ww_status take_hits(group_merge *m, const shard_answer *answer, hit_order order)
{
    const char *list = groups_of(answer), *at = list ? json_first(list) : NULL;
    for (int64_t i = 0; i < m->count; i++, at = json_next(at)) {
        const char *key = at ? json_given(at, "id") : NULL;
        if (!key || !same_key(key, m->groups[i].key))
            return odd_answer();
        hits_add(&m->hits[i], json_given(at, "hits"), order);
        if (m->hits[i].status != WW_OK)
            return m->hits[i].status;
        if (!m->lookups[i])
            m->lookups[i] = json_given(at, "lookup");
    }
    return WW_OK;
}

ww_status group_merge_take(group_merge *m, const request *r, const shard_answers *from)
{
    const search_plan *p = r->plan;
    const hit_order order = hits_order(r, p->searches, from->metric);
    ww_status status = WW_OK;
    if (!m->chosen) {
        for (size_t k = 0; k < from->count && status == WW_OK; k++) {
            const char *list = groups_of(&from->list[k]);
            int64_t number = 0;
            status = list ? WW_OK : odd_answer();
            for (const char *at = list ? json_first(list) : NULL; at && status == WW_OK; at = json_next(at))
                status = add_group(m, at, number++, order);
        }
        if (status == WW_OK)
            status = choose(m, p->group_limit);
        m->chosen = true;
        m->over = m->count == 0;
        return status;
    }
    m->over = true;
    m->hits = memory_alloc_zeroed((size_t)m->count + 1, sizeof *m->hits);
    m->lookups = memory_alloc_zeroed((size_t)m->count + 1, sizeof *m->lookups);
    if (!m->hits || !m->lookups)
        return memory_failed("groups", (size_t)m->count * sizeof *m->hits);
    for (size_t k = 0; k < from->count && status == WW_OK; k++)
        status = take_hits(m, &from->list[k], order);
    for (int64_t i = 0; i < m->count && status == WW_OK; i++) {
        hits_sort(&m->hits[i]);
        status = m->hits[i].status;
    }
    return status;
}

ww_status group_merge_put(const group_merge *m, request *r)
{
    const search_plan *p = r->plan;
    out *o = &r->answer;
    bool begun = false;
    out_text(o, "{\"groups\":[");
    for (int64_t i = 0; m->hits && i < m->count; i++) {
        if (m->hits[i].count == 0)
            continue; /* its points changed between the rounds */
        out_text(o, begun ? ",{\"id\":" : "{\"id\":");
        put_key(o, m->groups[i].key);
        out_text(o, ",\"hits\":");
        hits_put(o, &m->hits[i], 0, p->group_size);
        if (m->lookups[i]) {
            out_text(o, ",\"lookup\":");
            put_key(o, m->lookups[i]);
        }
        out_text(o, "}");
        begun = true;
    }
    out_text(o, "]}");
    return WW_OK;
}
