/* Rounds of a search over shards. */
#include "server/nodes/rounds.h"

#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/nodes/cost.h"
#include "server/nodes/fusing.h"
#include "server/nodes/groups.h"
#include "server/nodes/prepare.h"
#include "server/nodes/step.h"

/* A search of the request, with what it prefetches after it. */
typedef struct round_node {
    const search *search;
    size_t end; /* the number of the first one that is not below it */
    bool top, asked, done;
    hit_list hits;
} round_node;

typedef enum round_stage { STAGE_PREPARE, STAGE_SEARCH, STAGE_POINTS, STAGE_GROUPS, STAGE_OVER } round_stage;

struct rounds {
    request *request;
    ww_metric metric;
    round_stage stage;
    round_node *nodes;
    size_t count;
    out prepared;     /* what the shards have said of examples and words, for the steps after that */
    hit_list *points; /* of each search of the request, what the answer shows of them; NULL: their hits have it */
    group_merge groups;
    cost_sum cost;
    int64_t proven; /* hits of the first search that are certainly the nearest, in order */
};

/* ---- what needs rounds ------------------------------------------------------------------------------------------------------
 */

/* Does its score depend on how many points of all shards have an index? */
static bool has_idf(const request *r, const search *s)
{
    entry *e = s->kind == SEARCH_SPARSE || s->words || s->example_count > 0 ? entry_find(r->server, r->names[0]) : NULL;
    const entry *part = e ? entry_part(e, s->using) : NULL;
    bool idf = part && part->sparse && part->idf;
    if (e)
        entry_release(r->server, e);
    for (size_t i = 0; !idf && i < s->child_count; i++)
        idf = has_idf(r, &s->children[i]);
    return idf;
}

bool rounds_needed(const request *r)
{
    const search_plan *p = r->plan;
    bool needed = p->form == FORM_GROUPS || p->with_cost || p->explain || prepare_needed(r);
    for (size_t i = 0; !needed && i < p->count; i++) {
        const search *s = &p->searches[i];
        needed = s->child_count > 0 || s->diverse || s->kind == SEARCH_SAMPLE || has_idf(r, s);
    }
    return needed;
}

static ww_status check(const search_plan *p, const search *s)
{
    if (p->form == FORM_GROUPS && (s->child_count > 0 || s->diverse || s->kind == SEARCH_SAMPLE || s->offset > 0))
        return ww_fail(WW_UNSUPPORTED, "groups: prefetch, mmr, samples and an offset are not supported over several shards");
    if (s->kind == SEARCH_FORMULA || p->explain)
        return ww_fail(WW_UNSUPPORTED, "%s is not supported over several shards", p->explain ? "explain" : "query.formula");
    for (size_t i = 0; i < s->child_count; i++)
        if (check(p, &s->children[i]) != WW_OK)
            return WW_UNSUPPORTED;
    return WW_OK;
}

static bool fuses(const search *s)
{
    return s->kind == SEARCH_RRF || s->kind == SEARCH_DBSF;
}

/* ---- making -------------------------------------------------------------------------------------------------------------- */

static void add_nodes(rounds *x, const search *s, bool top)
{
    const size_t at = x->count++;
    x->nodes[at] = (round_node){.search = s, .top = top};
    for (size_t i = 0; i < s->child_count; i++)
        add_nodes(x, &s->children[i], false);
    x->nodes[at].end = x->count;
}

ww_status rounds_create(request *r, ww_metric metric, rounds **made)
{
    const search_plan *p = r->plan;
    ww_status status = WW_OK;
    for (size_t i = 0; i < p->count && status == WW_OK; i++)
        status = has_idf(r, &p->searches[i])
                     ? ww_fail(WW_UNSUPPORTED, "idf of sparse vectors is not supported over several shards")
                     : check(p, &p->searches[i]);
    rounds *x = status == WW_OK ? memory_alloc_zeroed(1, sizeof *x) : NULL;
    if (!x)
        return status == WW_OK ? memory_failed("rounds", sizeof *x) : status;
    *x = (rounds){.request = r, .metric = metric, .stage = p->form == FORM_GROUPS ? STAGE_GROUPS : STAGE_SEARCH};
    x->nodes = memory_alloc_zeroed(p->nodes + 1, sizeof *x->nodes);
    if (!x->nodes) {
        rounds_free(x);
        return memory_failed("searches", p->nodes * sizeof *x->nodes);
    }
    for (size_t i = 0; i < p->count; i++)
        add_nodes(x, &p->searches[i], true);
    if (prepare_needed(r))
        x->stage = STAGE_PREPARE;
    *made = x;
    return WW_OK;
}

void rounds_free(rounds *x)
{
    if (!x)
        return;
    const search_plan *p = x->request->plan;
    for (size_t i = 0; i < x->count; i++)
        hits_free(&x->nodes[i].hits);
    for (size_t i = 0; x->points && i < p->count; i++)
        hits_free(&x->points[i]);
    memory_free(x->points);
    memory_free(x->nodes);
    out_free(&x->prepared);
    group_merge_free(&x->groups);
    memory_free(x);
}

/* ---- asking -------------------------------------------------------------------------------------------------------------- */

/* May the node be computed, because all that it prefetches was? */
static bool is_ready(const rounds *x, size_t at)
{
    bool ready = !x->nodes[at].done;
    for (size_t c = at + 1; ready && c < x->nodes[at].end; c = x->nodes[c].end)
        ready = x->nodes[c].done;
    return ready;
}

static void put_ids(out *o, const hit_list *l, bool *begun)
{
    for (int64_t i = 0; i < l->count; i++) {
        out_text(o, *begun ? "," : "");
        out_quoted(o, l->hits[i].id, strlen(l->hits[i].id));
        *begun = true;
    }
}

static void put_nodes(rounds *x, out *o)
{
    bool begun = false;
    out_text(o, "\"search\",\"nodes\":[");
    for (size_t at = 0; at < x->count; at++) {
        round_node *node = &x->nodes[at];
        bool ids = false;
        node->asked = is_ready(x, at);
        if (!node->asked)
            continue;
        out_format(o, "%s[%zu,%s", begun ? "," : "", at, node->search->child_count > 0 ? "[" : "null");
        for (size_t c = at + 1; c < node->end; c = x->nodes[c].end)
            put_ids(o, &x->nodes[c].hits, &ids);
        out_text(o, node->search->child_count > 0 ? "]]" : "]");
        begun = true;
    }
    out_text(o, "]");
}

static void put_lists(const rounds *x, out *o)
{
    out_text(o, "\"points\",\"lists\":[");
    for (size_t at = 0; at < x->count; at = x->nodes[at].end) {
        bool ids = false;
        out_text(o, at > 0 ? ",[" : "[");
        if (fuses(x->nodes[at].search))
            put_ids(o, &x->nodes[at].hits, &ids);
        out_text(o, "]");
    }
    out_text(o, "]");
}

bool rounds_ask(rounds *x, out *body)
{
    const request *r = x->request;
    const char *first = json_first(json_root(r->body));
    if (x->stage == STAGE_OVER)
        return false;
    *body = (out){0};
    out_text(body, "{\"shard_step\":{\"do\":");
    if (x->stage == STAGE_PREPARE)
        out_text(body, "\"prepare\"");
    else if (x->stage == STAGE_SEARCH)
        put_nodes(x, body);
    else if (x->stage == STAGE_POINTS)
        put_lists(x, body);
    else
        group_merge_ask(&x->groups, body);
    out_bytes(body, x->prepared.bytes, x->prepared.length);
    out_text(body, first ? "}," : "}}");
    if (first)
        out_text(body, first);
    return true;
}

/* ---- taking hits --------------------------------------------------------------------------------------------------------- */

/* Appends a shard's hits; `vectors` are those of the candidates of a search by maximal marginal relevance. */
static void add_shard(hit_list *l, const char *points, const char *vectors, hit_order order)
{
    const int64_t first = l->count;
    hits_add(l, points, order);
    const char *at = vectors && json_type_of(vectors) == JSON_LIST ? json_first(vectors) : NULL;
    for (int64_t i = first; i < l->count && at; i++, at = json_next(at))
        l->hits[i].vector = at;
}

static bool is_example(const request *r, const search *s, const char *id)
{
    const bool own = s->lookup.collection[0] == '\0' || strcmp(s->lookup.collection, r->names[0]) == 0;
    for (size_t i = 0; own && i < s->example_count; i++)
        if (strcmp(s->examples[i].id, id) == 0)
            return true;
    return false;
}

/* Leaves out hits below the threshold, and examples: the shards do not when they send candidates. */
static void drop_hits(const request *r, const search *s, bool smaller, hit_list *l)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < l->count; i++) {
        const double score = (double)(float)l->hits[i].score;
        const bool within = !s->has_threshold || (smaller ? score <= s->threshold : score >= s->threshold);
        if (within && !is_example(r, s, l->hits[i].id))
            l->hits[kept++] = l->hits[i];
        else
            memory_free(l->hits[i].id);
    }
    l->count = kept;
}

static ww_status diversify(const rounds *x, round_node *node, hit_order order)
{
    const request *r = x->request;
    const search *s = node->search;
    hits_cut(&node->hits, 0, search_candidates(s));
    const ww_status status = hits_diversify(r->server->config.device, s, hits_metric(r, s, x->metric), &node->hits);
    if (status == WW_OK)
        drop_hits(r, s, order.sign > 0, &node->hits);
    return status;
}

/* How many of the merged hits are certainly the nearest. A shard guarantees its first ones: once they are used up, a row that
 * it has missed could come next. */
static int64_t proven_of(const hit_list *l, const char *const *ones, size_t shards)
{
    int64_t proven = l->count;
    for (size_t k = 0; k < shards; k++) {
        const int64_t guaranteed = cost_proven(json_given(ones[k], "cost"));
        const char *last = NULL;
        int64_t count = 0;
        for (const char *at = json_first(json_given(ones[k], "points")); at; at = json_next(at), count++)
            last = count < guaranteed ? at : last;
        if (count <= guaranteed)
            continue;
        for (int64_t i = 0; last && i < proven; i++)
            proven = l->hits[i].text == last ? i + 1 : proven;
        proven = last ? proven : 0;
    }
    return proven;
}

/* Merges what the shards have found for a node. */
static ww_status merge_node(rounds *x, round_node *node, const char *const *ones, size_t shards)
{
    const search *s = node->search;
    const hit_order order = hits_order(x->request, s, x->metric);
    ww_status status = WW_OK;
    node->done = true;
    for (size_t k = 0; k < shards; k++)
        cost_add(&x->cost, json_given(ones[k], "cost"));
    if (s->kind == SEARCH_SAMPLE)
        return hits_draw(ones, shards, s->limit, &node->hits);
    for (size_t k = 0; k < shards; k++)
        add_shard(&node->hits, json_given(ones[k], "points"), json_given(ones[k], "vectors"), order);
    hits_sort(&node->hits);
    status = node->hits.status;
    const bool simple = s->kind == SEARCH_NEAREST && s->child_count == 0 && !s->diverse;
    const int64_t proven = status == WW_OK && simple ? proven_of(&node->hits, ones, shards) : INT64_MAX;
    if (status == WW_OK && s->diverse)
        status = diversify(x, node, order);
    hits_cut(&node->hits, s->offset, s->limit);
    const int64_t rest = proven > s->offset ? proven - s->offset : 0;
    x->proven = rest < node->hits.count ? rest : node->hits.count;
    return status;
}

static ww_status fuse(rounds *x, size_t at)
{
    round_node *node = &x->nodes[at];
    const search *s = node->search;
    hit_list **lists = memory_alloc((s->child_count + 1) * sizeof *lists);
    size_t count = 0;
    if (!lists)
        return memory_failed("lists", s->child_count * sizeof *lists);
    for (size_t c = at + 1; c < node->end; c = x->nodes[c].end)
        lists[count++] = &x->nodes[c].hits;
    const ww_status status = hits_fuse(x->request->server->config.device, s, lists, count, &node->hits);
    memory_free(lists);
    if (status == WW_OK)
        drop_hits(x->request, s, false, &node->hits);
    hits_cut(&node->hits, s->offset, s->limit);
    node->done = true;
    x->proven = node->hits.count;
    return status;
}

/* Fuses what can be fused now; those below others come after them in the list. */
static ww_status fuse_all(rounds *x)
{
    ww_status status = WW_OK;
    for (size_t at = x->count; at-- > 0 && status == WW_OK;)
        if (fuses(x->nodes[at].search) && is_ready(x, at))
            status = fuse(x, at);
    return status;
}

/* What comes after the searches: points that only their ids are known of. */
static round_stage stage_after(const rounds *x)
{
    round_stage stage = STAGE_OVER;
    for (size_t at = 0; at < x->count; at = x->nodes[at].end) {
        const round_node *node = &x->nodes[at];
        if (!node->done)
            return STAGE_SEARCH;
        if (fuses(node->search) && node->hits.count > 0 && (node->search->with.payload || node->search->with.vector))
            stage = STAGE_POINTS;
    }
    return stage;
}

/* The first element of each shard's list; the caller frees them. */
static ww_status lists_begin(const shard_answers *from, const char ***ones)
{
    *ones = memory_alloc((from->count + 1) * sizeof **ones);
    if (!*ones)
        return memory_failed("answers of shards", from->count * sizeof **ones);
    for (size_t k = 0; k < from->count; k++) {
        const char *result = merge_result(&from->list[k]);
        (*ones)[k] = result && json_type_of(result) == JSON_LIST ? json_first(result) : NULL;
    }
    return WW_OK;
}

static ww_status take_nodes(rounds *x, const shard_answers *from)
{
    const char **ones = NULL;
    ww_status status = lists_begin(from, &ones);
    for (size_t at = 0; at < x->count && status == WW_OK; at++) {
        if (!x->nodes[at].asked)
            continue;
        for (size_t k = 0; k < from->count && status == WW_OK; k++)
            status = ones[k] && json_type_of(ones[k]) == JSON_OBJECT ? WW_OK : odd_answer();
        if (status == WW_OK)
            status = merge_node(x, &x->nodes[at], ones, from->count);
        for (size_t k = 0; k < from->count && status == WW_OK; k++)
            ones[k] = json_next(ones[k]);
        x->nodes[at].asked = false;
    }
    memory_free(ones);
    if (status == WW_OK)
        status = fuse_all(x);
    x->stage = stage_after(x);
    return status;
}

static ww_status take_points(rounds *x, const shard_answers *from)
{
    const search_plan *p = x->request->plan;
    const char **ones = NULL;
    ww_status status = lists_begin(from, &ones);
    x->points = memory_alloc_zeroed(p->count + 1, sizeof *x->points);
    if (status == WW_OK && !x->points)
        status = memory_failed("points", p->count * sizeof *x->points);
    for (size_t i = 0; i < p->count && status == WW_OK; i++) {
        for (size_t k = 0; k < from->count; k++) {
            hits_add(&x->points[i], ones[k], (hit_order){0});
            ones[k] = ones[k] ? json_next(ones[k]) : NULL;
        }
        hits_sort(&x->points[i]);
        status = x->points[i].status;
    }
    memory_free(ones);
    x->stage = STAGE_OVER;
    return status;
}

ww_status rounds_take(rounds *x, const shard_answers *from)
{
    const search_plan *p = x->request->plan;
    ww_status status = WW_OK;
    switch (x->stage) {
    case STAGE_PREPARE:
        status = prepare_take(x->request, from, &x->prepared);
        x->stage = p->form == FORM_GROUPS ? STAGE_GROUPS : STAGE_SEARCH;
        return status;
    case STAGE_SEARCH:
        return take_nodes(x, from);
    case STAGE_POINTS:
        return take_points(x, from);
    default:
        status = group_merge_take(&x->groups, x->request, from);
        x->stage = x->groups.over ? STAGE_OVER : STAGE_GROUPS;
        return status;
    }
}

/* ---- answering ----------------------------------------------------------------------------------------------------------- */

/* Writes a hit that was fused: its score, and what was fetched for it. False: it was removed meanwhile. */
static bool put_fused(out *o, const part_hit *hit, const hit_list *points, bool begun)
{
    const part_hit *whole = points ? hits_find(points, hit->id) : NULL;
    if (points && !whole)
        return false;
    out_text(o, begun ? ",{\"id\":" : "{\"id\":");
    put_point_id(o, hit->id);
    out_text(o, ",\"version\":0,\"score\":");
    out_float(o, (float)hit->score);
    for (const char *key = whole ? json_first(whole->text) : NULL; key; key = json_next(key)) {
        const char *value = json_member(key);
        if (json_text_is(key, "id", 2))
            continue;
        out_text(o, ",");
        out_bytes(o, key, (size_t)(json_end(key) - key));
        out_text(o, ":");
        out_bytes(o, value, (size_t)(json_end(value) - value));
    }
    out_text(o, "}");
    return true;
}

static void put_top(const rounds *x, const round_node *node, const hit_list *points)
{
    out *o = &x->request->answer;
    bool begun = false;
    if (!fuses(node->search)) {
        hits_put(o, &node->hits, 0, node->hits.count);
        return;
    }
    out_text(o, "[");
    for (int64_t i = 0; i < node->hits.count; i++)
        begun = put_fused(o, &node->hits.hits[i], points, begun) || begun;
    out_text(o, "]");
}

ww_status rounds_answer(rounds *x)
{
    request *r = x->request;
    const search_plan *p = r->plan;
    const bool batch = p->form == FORM_BATCH_POINTS || p->form == FORM_BATCH_LIST;
    const bool object = p->form == FORM_POINTS || p->form == FORM_BATCH_POINTS;
    request_result_begin(r);
    if (p->form == FORM_GROUPS)
        return group_merge_put(&x->groups, r);
    out_text(&r->answer, batch ? "[" : "");
    for (size_t at = 0, i = 0; at < x->count; at = x->nodes[at].end, i++) {
        out_text(&r->answer, i > 0 ? "," : "");
        out_text(&r->answer, object ? "{\"points\":" : "");
        put_top(x, &x->nodes[at], x->points ? &x->points[i] : NULL);
        out_text(&r->answer, object ? "}" : "");
    }
    out_text(&r->answer, batch ? "]" : "");
    if (p->with_cost)
        cost_put(&x->cost, x->proven, &r->answer);
    return WW_OK;
}
