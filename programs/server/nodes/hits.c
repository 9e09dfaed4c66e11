/* Lists of hits from the answers of shards. */
#include "server/nodes/hits.h"

#include <string.h>

#include "base/array.h"
#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/qdrant/point_id.h"

ww_status odd_answer(void)
{
    return ww_fail(WW_INTERNAL, "a shard answered in another form than this node does; is its version the same?");
}

void hits_free(hit_list *l)
{
    for (int64_t i = 0; i < l->count; i++)
        memory_free(l->hits[i].id);
    memory_free(l->hits);
    *l = (hit_list){0};
}

char *hits_copy_id(const char *value)
{
    const size_t room = (size_t)(json_end(value) - value) + 1;
    char *id = memory_alloc(room);
    size_t length = room - 1;
    if (id && json_type_of(value) == JSON_TEXT)
        length = json_text_read(value, id);
    else if (id)
        memcpy(id, value, length);
    if (id)
        id[length] = '\0';
    return id;
}

ww_metric hits_metric(const request *r, const search *s, ww_metric metric)
{
    entry *e = entry_find(r->server, r->names[0]);
    const entry *part = e ? entry_part(e, s->using) : NULL;
    if (part)
        metric = part->metric;
    if (e)
        entry_release(r->server, e);
    return metric;
}

hit_order hits_order(const request *r, const search *s, ww_metric metric)
{
    if (s->kind == SEARCH_LIST)
        return (hit_order){s->order.key.read ? "order_value" : NULL, s->order.descending ? -1 : 1};
    return (hit_order){"score", s->kind == SEARCH_NEAREST && hits_metric(r, s, metric) == WW_L2 ? 1 : -1};
}

/* Makes room for one more hit, which the list then owns. */
static void append(hit_list *l, part_hit hit)
{
    if (l->status == WW_OK)
        l->status =
            hit.id ? array_reserve(&l->hits, &l->capacity, l->count + 1, sizeof *l->hits, "hits") : memory_failed("an id", 1);
    if (l->status == WW_OK)
        l->hits[l->count++] = hit;
    else
        memory_free(hit.id);
}

void hits_append(hit_list *l, const part_hit *hit)
{
    part_hit copy = *hit;
    copy.id = memory_copy_text(hit->id, strlen(hit->id));
    append(l, copy);
}

static double number_of(const char *value)
{
    const json_number number = json_number_of(value);
    return number.is_integer ? (double)number.integer : number.real;
}

static const char *number_in(const char *object, const char *key)
{
    const char *value = key ? json_given(object, key) : NULL;
    return value && json_type_of(value) == JSON_NUMBER ? value : NULL;
}

void hits_add(hit_list *l, const char *list, hit_order order)
{
    if (!list || json_type_of(list) != JSON_LIST)
        l->status = odd_answer();
    for (const char *at = l->status == WW_OK ? json_first(list) : NULL; at && l->status == WW_OK; at = json_next(at)) {
        const char *id = json_given(at, "id"), *rank = number_in(at, order.key), *score = number_in(at, "score");
        if (!id || (order.key && !rank)) {
            l->status = odd_answer();
            return;
        }
        append(l, (part_hit){.text = at,
                             .id = hits_copy_id(id),
                             .rank = rank ? order.sign * number_of(rank) : 0,
                             .score = score ? number_of(score) : 1});
    }
}

static int compare_hits(const void *first, const void *second)
{
    const part_hit *a = first, *b = second;
    return a->rank != b->rank ? (a->rank > b->rank) - (a->rank < b->rank) : point_id_compare(a->id, b->id);
}

void hits_sort(hit_list *l)
{
    if (l->status == WW_OK)
        l->status = job_sort(l->hits, (size_t)l->count, sizeof *l->hits, compare_hits);
}

void hits_cut(hit_list *l, int64_t offset, int64_t limit)
{
    const int64_t first = offset < l->count ? offset : l->count, rest = l->count - first, kept = limit < rest ? limit : rest;
    for (int64_t i = 0; i < l->count; i++)
        if (i < first || i >= first + kept)
            memory_free(l->hits[i].id);
    if (first > 0)
        memmove(l->hits, l->hits + first, (size_t)kept * sizeof *l->hits);
    l->count = kept;
}

const part_hit *hits_find(const hit_list *l, const char *id)
{
    int64_t low = 0, high = l->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (point_id_compare(l->hits[middle].id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < l->count && strcmp(l->hits[low].id, id) == 0 ? &l->hits[low] : NULL;
}

void hits_put(out *o, const hit_list *l, int64_t first, int64_t end)
{
    out_text(o, "[");
    for (int64_t i = first; i < end && i < l->count; i++) {
        const char *text = l->hits[i].text;
        out_text(o, i > first ? "," : "");
        out_bytes(o, text, (size_t)(json_end(text) - text));
    }
    out_text(o, "]");
}
