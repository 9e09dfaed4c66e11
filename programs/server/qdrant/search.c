/* Searches of Qdrant's API, and the batch that a collection's worker computes. */
#include "server/qdrant/search.h"

#include <string.h>
#include <sys/random.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "base/tables/hash.h"
#include "server/qdrant/collections/strict.h"
#include "server/route.h"

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

static void plan_free(void *plan)
{
    search_plan *p = plan;
    for (size_t i = 0; i < p->count; i++)
        search_free(&p->searches[i]);
    memory_free(p->searches);
    values_key_free(&p->group_by);
    parts_free(&p->group_with);
    memory_free(p->group_lookup);
    memory_free(p);
}

static search_plan *plan_create(request *r, size_t count, search_form form)
{
    search_plan *p = request_plan_create(r, sizeof *p, plan_free);
    if (!p)
        return NULL;
    p->form = form;
    p->searches = memory_alloc_zeroed(count + 1, sizeof *p->searches);
    if (!p->searches)
        request_fail_status(r, memory_failed("searches", count * sizeof *p->searches));
    return p->searches ? p : NULL;
}

/* A search by one vector can be computed with others that are alike: it gets a number that these have in common. Others, which
 * may take long, are computed alone. */
static void set_batch(request *r, const search *s)
{
    if (s->kind != SEARCH_NEAREST || s->diverse || s->child_count > 0 || !s->examples[0].vector || s->example_count > 1 ||
        s->limit + s->offset > WW_K_MAX)
        return;
    const uint64_t parts[] = {s->filter_hash,
                              (uint64_t)(s->limit + s->offset),
                              parts_fetch(&s->with),
                              (uint64_t)s->nprobe,
                              fnv_bytes(FNV_BEGIN, s->using, strlen(s->using)),
                              (uint64_t)(s->recall * 1e6)};
    uint64_t batch = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        batch = (batch ^ parts[i]) * 0x9e3779b97f4a7c15 + (batch >> 29);
    r->batch = batch | 1;
}

static bool prepare_query(request *r)
{
    const char *body = request_body(r);
    search_plan *p = body ? plan_create(r, 1, FORM_POINTS) : NULL;
    if (!p)
        return false;
    p->count = 1;
    if (!request_read_bool(r, body, "with_cost", &p->with_cost) || !request_read_bool(r, body, "explain", &p->explain) ||
        !search_read_query(r, body, p->searches))
        return false;
    p->searches->explain = p->explain;
    set_batch(r, p->searches);
    return true;
}

/* Reads one search of the body. */
typedef bool (*search_reader)(request *r, const char *object, search *out);

static bool prepare_one(request *r, search_reader read)
{
    const char *body = request_body(r);
    search_plan *p = body ? plan_create(r, 1, FORM_LIST) : NULL;
    if (!p)
        return false;
    p->count = 1;
    if (!read(r, body, p->searches))
        return false;
    set_batch(r, p->searches);
    return true;
}

static bool prepare_search(request *r)
{
    return prepare_one(r, search_read_search);
}

static bool prepare_recommend(request *r)
{
    return prepare_one(r, search_read_recommended);
}

static bool prepare_discover(request *r)
{
    return prepare_one(r, search_read_discovered);
}

static bool prepare_many(request *r, search_form form, search_reader read)
{
    const char *body = request_body(r), *list = body ? json_given(body, "searches") : NULL;
    size_t count = 0;
    if (!body)
        return false;
    if (!list || json_type_of(list) != JSON_LIST)
        return request_fail(r, 400, "searches: a list is needed");
    for (const char *at = json_first(list); at; at = json_next(at), count++)
        if (json_type_of(at) != JSON_OBJECT)
            return request_fail(r, 400, "searches[%zu]: an object is needed", count);
    if (count > SEARCHES_MAX)
        return request_fail(r, 400, "searches: %zu of them; the maximum is %d", count, SEARCHES_MAX);
    search_plan *p = plan_create(r, count, form);
    strict_ask(r, STRICT_SEARCHES, (int64_t)count);
    for (const char *at = p ? json_first(list) : NULL; at; at = json_next(at))
        if (!read(r, at, &p->searches[p->count++]))
            return false;
    return p != NULL;
}

static bool prepare_queries(request *r)
{
    return prepare_many(r, FORM_BATCH_POINTS, search_read_query);
}

static bool prepare_searches(request *r)
{
    return prepare_many(r, FORM_BATCH_LIST, search_read_search);
}

static bool prepare_recommends(request *r)
{
    return prepare_many(r, FORM_BATCH_LIST, search_read_recommended);
}

static bool prepare_discovers(request *r)
{
    return prepare_many(r, FORM_BATCH_LIST, search_read_discovered);
}

/* "authors", or {"collection": "authors", "with_payload": ...} */
static bool read_group_lookup(request *r, const char *value, search_plan *p)
{
    if (!value)
        return true;
    const bool object = json_type_of(value) == JSON_OBJECT;
    p->group_with.payload = true;
    p->group_lookup = request_copy_text(r, object ? json_given(value, "collection") : value, "with_lookup.collection");
    return p->group_lookup && access_lookup(r, p->group_lookup) && (!object || parts_read(r, value, &p->group_with));
}

static void search_all(search *s)
{
    s->limit = WW_ROWS_MAX;
    for (size_t i = 0; i < s->child_count; i++)
        search_all(&s->children[i]);
}

/* Groups are made of all rows in the order of their scores, so the search looks at every row. */
static bool prepare_grouped(request *r, search_reader read)
{
    const char *body = request_body(r);
    search_plan *p = body ? plan_create(r, 1, FORM_GROUPS) : NULL;
    if (!p)
        return false;
    p->count = 1;
    p->group_size = 3;
    if (!read(r, body, p->searches) || !request_read_integer(r, body, "group_size", 1, &p->group_size) ||
        !values_key_read(r, json_given(body, "group_by"), "group_by", &p->group_by))
        return false;
    if (!read_group_lookup(r, json_given(body, "with_lookup"), p))
        return false;
    p->group_limit = p->searches->limit;
    search_all(p->searches);
    p->group_payload = p->searches->with.payload;
    p->searches->with.payload = true; /* it has the key */
    return true;
}

static bool prepare_groups(request *r)
{
    return prepare_grouped(r, search_read_query);
}

static bool prepare_search_groups(request *r)
{
    return prepare_grouped(r, search_read_search);
}

static bool prepare_recommend_groups(request *r)
{
    return prepare_grouped(r, search_read_recommended);
}

/* ---- answering ----------------------------------------------------------------------------------------------------------- */

static void put_hit(request *r, const search *s, const found_point *f, const selection *with)
{
    put_scored_begin(&r->answer, &(point){r->entry, s->results, s->query, f->hit, with}, f->score);
    if (s->order.key.read)
        put_order_value(&r->answer, f->order);
    out_text(&r->answer, "}");
}

void put_hits(request *r, const search *s)
{
    out_text(&r->answer, "[");
    for (int64_t i = 0; i < s->found_count && job_look(i) == WW_OK; i++) {
        out_text(&r->answer, i > 0 ? "," : "");
        put_hit(r, s, &s->found[i], &s->with);
    }
    out_text(&r->answer, "]");
}

typedef struct group {
    value_counted key;
    int64_t *hits; /* numbers of found points; key.count of them, with room for `capacity` */
    int64_t capacity;
} group;

/* Groups are found by a hash of their keys; places are numbers of groups plus 1, and 0 is a free place. The seed is a secret,
 * so that nobody can choose keys that collide. */
typedef struct grouping {
    request *request;
    const search_plan *plan;
    group *groups;
    int64_t count, capacity;
    uint32_t *places;
    size_t place_mask; /* their number, a power of two, minus 1 */
    uint64_t seed;
    int64_t hit; /* the point whose keys are told */
    bool failed;
} grouping;

/* A point with a key that is neither a text nor an integer is in no group. */
static bool tell_whether_key(void *user, const char *value)
{
    bool *keys = user;
    *keys = json_type_of(value) == JSON_TEXT || (json_type_of(value) == JSON_NUMBER && json_number_of(value).is_integer);
    return *keys;
}

static uint64_t hash_of_key(const grouping *g, value_counted key)
{
    uint64_t hash = g->seed;
    for (size_t i = 0; i < key.bytes; i++)
        hash = (hash ^ (unsigned char)key.json[i]) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 32;
}

/* The place of a key's group, or the free place for it. There is always a free one. */
static uint32_t *place_of(const grouping *g, value_counted key)
{
    size_t at = hash_of_key(g, key) & g->place_mask;
    for (; g->places[at] != 0; at = (at + 1) & g->place_mask) {
        const value_counted *there = &g->groups[g->places[at] - 1].key;
        if (there->bytes == key.bytes && memcmp(there->json, key.json, key.bytes) == 0)
            break;
    }
    return &g->places[at];
}

/* Makes room for one more group. */
static bool reserve_group(grouping *g)
{
    if (g->places && g->count < g->capacity)
        return true;
    const int64_t larger = g->capacity > 0 ? 2 * g->capacity : 16;
    group *moved = memory_resize(g->groups, (size_t)larger * sizeof *moved);
    if (moved)
        g->groups = moved;
    uint32_t *places = memory_alloc_zeroed(2 * (size_t)larger, sizeof *places);
    if (!moved || !places) {
        memory_free(places);
        return false;
    }
    memory_free(g->places);
    g->places = places;
    g->place_mask = 2 * (size_t)larger - 1;
    g->capacity = larger;
    for (int64_t i = 0; i < g->count; i++)
        *place_of(g, g->groups[i].key) = (uint32_t)i + 1;
    return true;
}

/* The group of a key, which is made if it is not there. NULL: there are enough groups, or no memory for more. */
static group *group_of(grouping *g, value_counted key)
{
    const uint32_t *there = g->places ? place_of(g, key) : NULL;
    if (there && *there != 0)
        return &g->groups[*there - 1];
    if (g->count == g->plan->group_limit)
        return NULL;
    g->failed = !reserve_group(g);
    if (g->failed)
        return NULL;
    *place_of(g, key) = (uint32_t)g->count + 1;
    g->groups[g->count] = (group){.key = key};
    return &g->groups[g->count++];
}

/* Returns false if out of memory. */
static bool add_hit(group *to, int64_t hit)
{
    if (to->key.count == to->capacity) {
        const int64_t larger = to->capacity > 0 ? 2 * to->capacity : 4;
        int64_t *moved = memory_resize(to->hits, (size_t)larger * sizeof *moved);
        if (!moved)
            return false;
        to->hits = moved;
        to->capacity = larger;
    }
    to->hits[to->key.count++] = hit;
    return true;
}

/* Adds a point to the group of one of its keys. */
static bool tell_key(void *user, const char *value)
{
    grouping *g = user;
    group *to = group_of(g, (value_counted){value, (size_t)(json_end(value) - value), 0});
    const bool twin = to && to->key.count > 0 && to->hits[to->key.count - 1] == g->hit; /* the same key twice */
    if (to && !twin && to->key.count < g->plan->group_size)
        g->failed = !add_hit(to, g->hit);
    return !g->failed;
}

/* Writes the point of another collection whose id is the key of a group. */
static void put_lookup(request *r, const search_plan *p, const entry *from, const char *key)
{
    point_id id;
    const char *ids[1] = {id};
    ww_results *found = NULL;
    if (!from || !point_id_read(key, id))
        return;
    const ww_status status = points_get(from, ids, 1, parts_fetch(&p->group_with), &found);
    r->answer.failed = r->answer.failed || status != WW_OK;
    if (status == WW_OK && ww_results_id(found, 0, 0)) {
        out_text(&r->answer, ",\"lookup\":");
        put_record(&r->answer, &(point){from, found, 0, 0, &p->group_with});
    }
    ww_results_destroy(found);
}

/* Puts the points that were found into groups. */
static void make_groups(grouping *g)
{
    const search *s = g->plan->searches;
    (void)!getrandom(&g->seed, sizeof g->seed, 0);
    for (const char *key = g->plan->group_keys ? json_first(g->plan->group_keys) : NULL; key && !g->failed;
         key = json_next(key))
        (void)group_of(g, (value_counted){key, (size_t)(json_end(key) - key), 0});
    for (g->hit = 0; !g->failed && g->hit < s->found_count && job_look(g->hit) == WW_OK; g->hit++) {
        const char *payload = ww_results_payload(s->results, s->query, s->found[g->hit].hit);
        bool keys = false;
        if (payload)
            values_each(&g->plan->group_by, payload, tell_whether_key, &keys);
        if (keys)
            values_each(&g->plan->group_by, payload, tell_key, g);
    }
}

static void put_group(request *r, const search *s, const group *one, const selection *with)
{
    out_text(&r->answer, "{\"id\":");
    out_bytes(&r->answer, one->key.json, one->key.bytes);
    out_text(&r->answer, ",\"hits\":[");
    for (int64_t k = 0; k < one->key.count; k++) {
        out_text(&r->answer, k > 0 ? "," : "");
        put_hit(r, s, &s->found[one->hits[k]], with);
    }
    out_text(&r->answer, "]");
}

static void put_groups(request *r, const search_plan *p, selection with)
{
    entry *lookup = p->group_lookup ? entry_open(r->server, p->group_lookup) : NULL;
    grouping g = {.request = r, .plan = p};
    make_groups(&g);
    out_text(&r->answer, "{\"groups\":[");
    for (int64_t i = 0; i < g.count && job_look(i) == WW_OK; i++) {
        out_text(&r->answer, i > 0 ? "," : "");
        put_group(r, p->searches, &g.groups[i], &with);
        put_lookup(r, p, lookup, g.groups[i].key.json);
        out_text(&r->answer, "}");
    }
    for (int64_t i = 0; i < g.count; i++)
        memory_free(g.groups[i].hits);
    out_text(&r->answer, "]}");
    r->answer.failed = r->answer.failed || g.failed;
    memory_free(g.groups);
    memory_free(g.places);
    if (lookup)
        entry_release(r->server, lookup);
}

/* How many of the points found are certainly the nearest, in order. A fusion has no such order. */
static int64_t proven_of(const search *s)
{
    int64_t proven = 0;
    if (s->child_count > 0 || s->kind != SEARCH_NEAREST || !s->results)
        return s->found_count;
    while (proven < s->found_count && s->found[proven].hit < ww_results_proven(s->results, s->query))
        proven++;
    return proven;
}

void put_cost(request *r, const search *s)
{
    const search_cost sum = s->cost;
    ww_device_info device = ww_device_info_default();
    const bool known = ww_device_describe(r->server->config.device, &device) == WW_OK;
    out_format(&r->answer, ",\"cost\":{\"rows_screened\":%lld,\"rows_scored\":%lld,\"lists_read\":%lld,\"bytes\":%lld,",
               (long long)sum.rows_screened, (long long)sum.rows_scored, (long long)sum.lists_read, (long long)sum.bytes);
    out_format(&r->answer, "\"queries\":%lld,\"exact\":%s,\"proven\":%lld,\"device\":", (long long)sum.queries,
               sum.lists_read == 0 ? "true" : "false", (long long)proven_of(s));
    out_quoted(&r->answer, known ? device.id : "", strlen(known ? device.id : ""));
    out_text(&r->answer, "}");
}

static void put_answer(request *r, const search_plan *p)
{
    const bool batch = p->form == FORM_BATCH_POINTS || p->form == FORM_BATCH_LIST;
    const bool object = p->form == FORM_POINTS || p->form == FORM_BATCH_POINTS;
    request_result_begin(r);
    out_text(&r->answer, batch ? "[" : "");
    for (size_t i = 0; i < p->count; i++) {
        out_text(&r->answer, i > 0 ? "," : "");
        if (p->form == FORM_GROUPS) {
            selection with = p->searches[i].with;
            with.payload = p->group_payload;
            put_groups(r, p, with);
            continue;
        }
        out_text(&r->answer, object ? "{\"points\":" : "");
        put_hits(r, &p->searches[i]);
        out_text(&r->answer, object ? "}" : "");
    }
    out_text(&r->answer, batch ? "]" : "");
    if (p->with_cost)
        put_cost(r, p->searches);
    if (p->explain) {
        out_text(&r->answer, ",\"explain\":");
        out_text(&r->answer, p->searches->explained ? p->searches->explained : "[]");
    }
    request_result_end(r);
}

/* Answers a request whose searches were computed. */
static void answer(request *r)
{
    const search_plan *p = r->plan;
    for (size_t i = 0; i < p->count; i++) {
        const search *s = &p->searches[i];
        if (s->failure_status == 0)
            continue;
        (void)ww_fail((ww_status)s->failure_status, "%s", s->failure ? s->failure : "out of memory");
        request_fail_status(r, (ww_status)s->failure_status);
        return;
    }
    put_answer(r, p);
    if (job_check() != WW_OK)
        request_fail_status(r, WW_CANCELLED); /* it may be incomplete */
}

/* What another node asks for is merged with other shards' hits before any are skipped. */
static void widen_part(request *r)
{
    search_plan *p = r->plan;
    for (size_t i = 0; r->part && i < p->count; i++) {
        p->searches[i].limit += p->searches[i].offset;
        p->searches[i].offset = 0;
    }
}

/* Runs all waiting searches, a list linked by `next`. */
static void run_searches(request *list)
{
    size_t count = 0, at = 0;
    if (!list)
        return;
    for (request *r = list; r; r = r->next) {
        widen_part(r);
        count += ((const search_plan *)r->plan)->count;
    }
    search **searches = memory_alloc((count + 1) * sizeof *searches);
    kept_results kept = {0};
    for (request *r = list; searches && r; r = r->next) {
        search_plan *p = r->plan;
        for (size_t i = 0; i < p->count; i++)
            searches[at++] = &p->searches[i];
    }
    if (searches)
        searches_run(list->entry, searches, count, &kept);
    for (request *r = list, *next; r; r = next) {
        next = r->next;
        if (searches)
            answer(r);
        else
            request_fail_status(r, memory_failed("searches", count * sizeof *searches));
    }
    memory_free(searches);
    kept_free(&kept);
}

/* ---- the table ----------------------------------------------------------------------------------------------------------- */

#define POINTS "/collections/{collection_name}/points"
#define COMMON                                                                                                                 \
    "\"limit\":{\"type\":\"integer\",\"minimum\":1},\"offset\":{\"type\":\"integer\"},\"filter\":{\"type\":\"object\"},"       \
    "\"with_payload\":{},\"with_vector\":{},\"score_threshold\":{\"type\":\"number\"},\"params\":{\"type\":\"object\"}"
#define MATRIX                                                                                                                 \
    "\"sample\":{\"type\":\"integer\"},\"limit\":{\"type\":\"integer\"},\"using\":{\"type\":\"string\"},\"filter\":{\"type\":" \
    "\"object\"}"

static const route routes[] = {
    {"POST", POINTS "/query", RIGHT_POINTS, WORK_READ, prepare_query, run_searches, "Search, or fuse several searches",
     "\"query\":{},\"prefetch\":{},\"with_cost\":{\"type\":\"boolean\"},\"explain\":{\"type\":\"boolean\"}," COMMON,
     "The points, the best first.", true},
    {"POST", POINTS "/query/batch", RIGHT_POINTS, WORK_READ, prepare_queries, run_searches, "Several queries at once",
     "\"searches\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}", "The points of each query.", true},
    {"POST", POINTS "/query/groups", RIGHT_POINTS, WORK_READ, prepare_groups, run_searches, "Search, in groups by a key",
     "\"query\":{},\"group_by\":{\"type\":\"string\"},\"group_size\":{\"type\":\"integer\"}," COMMON,
     "The groups with the best points.", true},
    {"POST", POINTS "/search", RIGHT_POINTS, WORK_READ, prepare_search, run_searches, "Search (older clients)",
     "\"vector\":{}," COMMON, "The points, the best first.", true},
    {"POST", POINTS "/search/batch", RIGHT_POINTS, WORK_READ, prepare_searches, run_searches,
     "Several searches at once (older clients)", "\"searches\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}",
     "The points of each search.", true},
    {"POST", POINTS "/search/groups", RIGHT_POINTS, WORK_READ, prepare_search_groups, run_searches,
     "Search, in groups by a key (older clients)",
     "\"vector\":{},\"group_by\":{\"type\":\"string\"},\"group_size\":{\"type\":\"integer\"}," COMMON,
     "The groups with the best points.", true},
    {"POST", POINTS "/recommend", RIGHT_POINTS, WORK_READ, prepare_recommend, run_searches,
     "Search by examples (older clients)",
     "\"positive\":{\"type\":\"array\",\"items\":{}},\"negative\":{\"type\":\"array\",\"items\":{}},\"strategy\":{\"type\":"
     "\"string\"}," COMMON,
     "The points, the best first.", true},
    {"POST", POINTS "/recommend/batch", RIGHT_POINTS, WORK_READ, prepare_recommends, run_searches,
     "Several searches by examples (older clients)", "\"searches\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}",
     "The points of each search.", true},
    {"POST", POINTS "/recommend/groups", RIGHT_POINTS, WORK_READ, prepare_recommend_groups, run_searches,
     "Search by examples, in groups by a key (older clients)",
     "\"positive\":{\"type\":\"array\",\"items\":{}},\"group_by\":{\"type\":\"string\"},\"group_size\":{\"type\":\"integer\"}"
     "," COMMON,
     "The groups with the best points.", true},
    {"POST", POINTS "/discover", RIGHT_POINTS, WORK_READ, prepare_discover, run_searches,
     "Search by a target and pairs of examples (older clients)",
     "\"target\":{},\"context\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}," COMMON, "The points, the best first.",
     true},
    {"POST", POINTS "/discover/batch", RIGHT_POINTS, WORK_READ, prepare_discovers, run_searches,
     "Several such searches (older clients)", "\"searches\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}",
     "The points of each search.", true},
    {"POST", POINTS "/search/matrix/pairs", RIGHT_POINTS, WORK_READ, prepare_matrix, run_matrix_pairs,
     "Scores between points of a sample", MATRIX, "Pairs of points with their scores.", false},
    {"POST", POINTS "/search/matrix/offsets", RIGHT_POINTS, WORK_READ, prepare_matrix, run_matrix_offsets,
     "Scores between points of a sample, as a sparse matrix", MATRIX, "Rows, columns, scores, and the ids.", false},
};

const route_table routes_search = {routes, sizeof routes / sizeof *routes};
