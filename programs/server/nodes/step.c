/* What a node computes of a search that several shards answer together. */
#include "server/nodes/step.h"

#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/nodes/hits.h"
#include "server/route.h"

const char *step_of(const request *r)
{
    static const char SEARCHES[] = "/collections/{collection_name}/points/"; /* the routes there whose requests run together */
    const bool searches = r->route->batched && strncmp(r->route->path, SEARCHES, sizeof SEARCHES - 1) == 0;
    const char *step = searches ? json_given(json_root(r->body), "shard_step") : NULL;
    return step && json_type_of(step) == JSON_OBJECT ? step : NULL;
}

search *step_search(search *list, size_t count, size_t *number)
{
    for (size_t i = 0; i < count; i++) {
        if ((*number)-- == 0)
            return &list[i];
        search *found = step_search(list[i].children, list[i].child_count, number);
        if (found)
            return found;
    }
    return NULL;
}

/* ---- reading a step ------------------------------------------------------------------------------------------------------ */

static ww_status odd_step(void)
{
    return ww_fail(WW_INVALID_ARGUMENT, "shard_step: this node's version does not understand it");
}

/* The number that a list begins with; -1: it does not. */
static int64_t first_number(const char *list)
{
    const char *first = list && json_type_of(list) == JSON_LIST ? json_first(list) : NULL;
    const json_number number = first && json_type_of(first) == JSON_NUMBER ? json_number_of(first) : (json_number){0};
    return number.is_integer && number.integer >= 0 && number.integer < SEARCHES_MAX ? number.integer : -1;
}

static search *search_of(const request *r, const char *list)
{
    search_plan *p = r->plan;
    const int64_t number = first_number(list);
    size_t left = (size_t)number;
    return number < 0 ? NULL : step_search(p->searches, p->count, &left);
}

/* Reads [search, example, [vector]]. */
static ww_status give_example(const request *r, const char *one)
{
    search *s = search_of(r, one);
    const char *at = s ? json_next(json_first(one)) : NULL;
    const json_number number = at && json_type_of(at) == JSON_NUMBER ? json_number_of(at) : (json_number){0};
    const char *list = at ? json_next(at) : NULL;
    const int64_t dim = list && json_type_of(list) == JSON_LIST ? json_numbers_count(list) : -1;
    if (dim <= 0 || !number.is_integer || number.integer < 0 || (size_t)number.integer >= s->example_count)
        return odd_step();
    search_example *x = &s->examples[number.integer];
    memory_free(x->vector);
    x->vector = memory_alloc((size_t)dim * sizeof *x->vector);
    x->dim = dim;
    if (!x->vector)
        return memory_failed("a query", (size_t)dim * sizeof *x->vector);
    return json_numbers_read(list, x->vector) ? WW_OK : odd_step();
}

static bool read_count(const char *value, int64_t *count)
{
    const json_number number = value && json_type_of(value) == JSON_NUMBER ? json_number_of(value) : (json_number){0};
    *count = number.integer;
    return number.is_integer && number.integer >= 0;
}

/* Reads [search,texts,words,[texts with each word]]. */
static ww_status give_words(const request *r, const char *one)
{
    search *s = search_of(r, one);
    const char *texts = s ? json_next(json_first(one)) : NULL, *words = texts ? json_next(texts) : NULL;
    const char *list = words ? json_next(words) : NULL;
    ww_word_counts counts = {0};
    if (!list || json_type_of(list) != JSON_LIST || s->counts.found || !read_count(texts, &counts.texts) ||
        !read_count(words, &counts.words))
        return odd_step();
    counts.found = memory_alloc(WW_MATCH_WORDS_MAX * sizeof *counts.found);
    if (!counts.found)
        return memory_failed("counts of words", WW_MATCH_WORDS_MAX * sizeof *counts.found);
    s->counts = counts;
    for (const char *at = json_first(list); at; at = json_next(at), s->counts.count++)
        if (s->counts.count == WW_MATCH_WORDS_MAX || !read_count(at, &s->counts.found[s->counts.count]))
            return odd_step();
    return WW_OK;
}

/* Gives the searches what a list of the step has for them. */
static ww_status give_all(const request *r, const char *key, ww_status (*give)(const request *r, const char *one))
{
    const char *list = json_given(r->step, key);
    ww_status status = !list || json_type_of(list) == JSON_LIST ? WW_OK : odd_step();
    for (const char *at = list && status == WW_OK ? json_first(list) : NULL; at && status == WW_OK; at = json_next(at))
        status = give(r, at);
    return status;
}

/* Reads a list of ids. The caller frees both, even after a failure. */
typedef struct id_list {
    const char **ids;
    int64_t count;
} id_list;

static void ids_free(id_list *l)
{
    for (int64_t i = 0; i < l->count; i++)
        memory_free((void *)(uintptr_t)l->ids[i]);
    memory_free(l->ids);
}

static ww_status ids_read(const char *list, id_list *l)
{
    int64_t count = 0;
    *l = (id_list){0};
    if (json_type_of(list) != JSON_LIST)
        return odd_step();
    for (const char *at = json_first(list); at; at = json_next(at))
        count++;
    l->ids = memory_alloc((size_t)(count + 1) * sizeof *l->ids);
    if (!l->ids)
        return memory_failed("ids", (size_t)count * sizeof *l->ids);
    for (const char *at = json_first(list); at; at = json_next(at)) {
        char *id = hits_copy_id(at);
        if (!id)
            return memory_failed("ids", (size_t)count);
        l->ids[l->count++] = id;
    }
    return WW_OK;
}

/* ---- preparing ----------------------------------------------------------------------------------------------------------- */

/* Writes [search, example, [vector]] for each example that is a point of this shard. */
static ww_status put_examples(request *r, const search *s, size_t number, bool *begun)
{
    entry *other = s->lookup.collection[0] != '\0' ? entry_open(r->server, s->lookup.collection) : NULL;
    const entry *from = s->lookup.collection[0] != '\0' ? other : r->entry;
    const char *name = s->lookup.has_vector ? s->lookup.vector : s->using;
    const entry *part = from ? entry_part(from, name) : NULL;
    ww_status status = WW_OK;
    for (size_t i = 0; i < s->example_count && status == WW_OK; i++) {
        const char *id = s->examples[i].id;
        const ww_filter *seen = from == r->entry && r->grant ? r->grant->seen : NULL;
        ww_results *found = NULL;
        if (id[0] == '\0')
            continue;
        if (!from)
            status = ww_fail(WW_NOT_FOUND, "Not found: Collection `%s` doesn't exist!", s->lookup.collection);
        else if (!part)
            status = ww_fail(WW_INVALID_ARGUMENT, "Wrong input: Not existing vector name error: %s", name);
        else if (part->sparse || part->multi)
            status = ww_fail(WW_UNSUPPORTED, "query: over several shards, a point's id can stand only for a dense vector");
        else
            status = point_get(part, id, seen, WW_FETCH_VECTORS, &found);
        const bool elsewhere = status == WW_NOT_FOUND && found;
        if (status == WW_OK) {
            out_format(&r->answer, "%s[%zu,%zu,", *begun ? "," : "", number, i);
            out_floats(&r->answer, ww_results_vector(found, 0, 0), part->dim);
            out_text(&r->answer, "]");
            *begun = true;
        }
        status = elsewhere ? WW_OK : status;
        ww_results_destroy(found);
    }
    if (other)
        entry_release(r->server, other);
    return status;
}

/* Writes [search,texts,words,[texts with each word]]. */
static ww_status put_words(request *r, const search *s, size_t number, bool *begun)
{
    int64_t found[WW_MATCH_WORDS_MAX];
    ww_word_counts counts = {.count = WW_MATCH_WORDS_MAX, .found = found};
    const entry *part = s->words ? entry_part(r->entry, s->using) : NULL;
    if (!part || part->sparse)
        return WW_OK;
    const ww_status status = ww_collection_count_words(part->collection, s->words, &counts);
    out_format(&r->answer, "%s[%zu,%lld,%lld,[", *begun ? "," : "", number, (long long)counts.texts, (long long)counts.words);
    for (int64_t i = 0; status == WW_OK && i < counts.count; i++)
        out_format(&r->answer, i > 0 ? ",%lld" : "%lld", (long long)found[i]);
    out_text(&r->answer, "]]");
    *begun = true;
    return status;
}

/* Calls `put` for every search of the request. */
static ww_status put_all(request *r, ww_status (*put)(request *r, const search *s, size_t number, bool *begun))
{
    search_plan *p = r->plan;
    ww_status status = WW_OK;
    bool begun = false;
    for (size_t number = 0; status == WW_OK; number++) {
        size_t left = number;
        const search *s = step_search(p->searches, p->count, &left);
        if (!s)
            break;
        status = put(r, s, number, &begun);
    }
    return status;
}

static ww_status prepare(request *r)
{
    out_text(&r->answer, "{\"examples\":[");
    ww_status status = put_all(r, put_examples);
    out_text(&r->answer, "],\"words\":[");
    if (status == WW_OK)
        status = put_all(r, put_words);
    out_text(&r->answer, "]}");
    return status;
}

/* ---- searching ----------------------------------------------------------------------------------------------------------- */

/* A search by itself: what it prefetches is replaced by a list of the points with given ids. */
typedef struct alone {
    search *search, *children, among;
    size_t child_count;
    bool diverse;
} alone;

static ww_status alone_make(alone *a, search *s, const char *ids)
{
    id_list list = {0};
    *a = (alone){.search = s, .children = s->children, .child_count = s->child_count, .diverse = s->diverse};
    a->among = (search){.kind = SEARCH_LIST, .limit = WW_ROWS_MAX};
    s->children = ids ? &a->among : NULL;
    s->child_count = ids ? 1 : 0;
    if (s->diverse) { /* the asking node chooses among the candidates */
        s->limit = search_candidates(s);
        s->offset = 0;
        s->diverse = s->has_threshold = false;
    }
    s->limit = s->limit + s->offset;
    s->offset = 0;
    if (!ids)
        return WW_OK;
    ww_status status = ids_read(ids, &list);
    if (status == WW_OK)
        status = ww_filter_create(&a->among.filter.filter);
    if (status == WW_OK)
        status = ww_filter_add_ids(a->among.filter.filter, list.ids, list.count);
    ids_free(&list);
    return status;
}

static void alone_free(alone *a)
{
    a->search->children = a->children;
    a->search->child_count = a->child_count;
    search_free(&a->among);
}

/* Writes the vectors of the hits, bit by bit, in their order. */
static ww_status put_vectors(out *o, const search *s)
{
    const char **ids = memory_alloc((size_t)(s->found_count + 1) * sizeof *ids);
    ww_results *found = NULL;
    if (!ids)
        return memory_failed("ids", (size_t)s->found_count * sizeof *ids);
    for (int64_t i = 0; i < s->found_count; i++)
        ids[i] = s->found[i].id;
    const ww_status status = points_get(s->target, ids, s->found_count, WW_FETCH_IDS | WW_FETCH_VECTORS, &found);
    out_text(o, ",\"vectors\":[");
    for (int64_t i = 0; status == WW_OK && i < s->found_count; i++) {
        out_text(o, i > 0 ? "," : "");
        if (ww_results_id(found, 0, i))
            out_floats(o, ww_results_vector(found, 0, i), s->target->dim);
        else
            out_text(o, "null"); /* removed meanwhile */
    }
    out_text(o, "]");
    ww_results_destroy(found);
    memory_free(ids);
    return status;
}

static ww_status put_found(request *r, const alone *a)
{
    const search *s = a->search;
    const search_plan *p = r->plan;
    out *o = &r->answer;
    ww_status status = WW_OK;
    out_text(o, "{\"points\":");
    put_hits(r, s);
    if (s->kind == SEARCH_SAMPLE)
        out_format(o, ",\"total\":%lld", (long long)s->list.count);
    if (a->diverse && (s->target->manhattan || s->target->sparse || s->target->multi))
        status = ww_fail(WW_UNSUPPORTED, "query.mmr: is not supported for %s",
                         s->target->manhattan ? "Manhattan distance"
                         : s->target->sparse  ? "sparse vectors"
                                              : "multivectors");
    else if (a->diverse)
        status = put_vectors(o, s);
    if (p->with_cost)
        put_cost(r, s);
    out_text(o, "}");
    return status;
}

static ww_status fail_again(const search *s)
{
    return ww_fail((ww_status)s->failure_status, "%s", s->failure ? s->failure : "out of memory");
}

static ww_status run_alone(request *r, alone *list, size_t count)
{
    search **searches = memory_alloc((count + 1) * sizeof *searches);
    kept_results kept = {0};
    if (!searches)
        return memory_failed("searches", count * sizeof *searches);
    for (size_t i = 0; i < count; i++)
        searches[i] = list[i].search;
    searches_run(r->entry, searches, count, &kept);
    ww_status status = job_check();
    out_text(&r->answer, "[");
    for (size_t i = 0; i < count && status == WW_OK; i++) {
        out_text(&r->answer, i > 0 ? "," : "");
        status = searches[i]->failure_status != 0 ? fail_again(searches[i]) : put_found(r, &list[i]);
    }
    out_text(&r->answer, "]");
    memory_free(searches);
    kept_free(&kept);
    return status;
}

static ww_status run_nodes(request *r)
{
    const char *nodes = json_given(r->step, "nodes");
    size_t wanted = 0, count = 0;
    if (!nodes || json_type_of(nodes) != JSON_LIST)
        return odd_step();
    for (const char *at = json_first(nodes); at; at = json_next(at))
        wanted++;
    alone *list = wanted <= SEARCHES_MAX ? memory_alloc_zeroed(wanted + 1, sizeof *list) : NULL;
    ww_status status = list ? WW_OK : memory_failed("searches", wanted * sizeof *list);
    for (const char *at = json_first(nodes); at && status == WW_OK; at = json_next(at)) {
        search *s = search_of(r, at);
        const char *ids = s ? json_next(json_first(at)) : NULL;
        for (size_t i = 0; s && i < count; i++)
            s = list[i].search == s ? NULL : s; /* each once */
        status = s && ids && s->kind != SEARCH_RRF && s->kind != SEARCH_DBSF && s->kind != SEARCH_FORMULA ? WW_OK : odd_step();
        if (status == WW_OK)
            status = alone_make(&list[count++], s, json_type_of(ids) == JSON_NULL ? NULL : ids);
    }
    if (status == WW_OK)
        status = run_alone(r, list, count);
    for (size_t i = 0; i < count; i++)
        alone_free(&list[i]);
    memory_free(list);
    return status;
}

/* ---- points -------------------------------------------------------------------------------------------------------------- */

static ww_status put_points(request *r, const selection *with, const id_list *l)
{
    const ww_filter *seen = r->grant ? r->grant->seen : NULL;
    ww_results *found = NULL;
    bool begun = false;
    const uint32_t fetch = parts_fetch(with) | (seen ? (uint32_t)WW_FETCH_PAYLOADS : 0);
    const ww_status status = points_get(r->entry, l->ids, l->count, fetch, &found);
    out_text(&r->answer, "[");
    for (int64_t i = 0; status == WW_OK && i < l->count; i++) {
        const char *id = ww_results_id(found, 0, i);
        if (!id || !filter_admits(seen, id, ww_results_payload(found, 0, i)))
            continue;
        out_text(&r->answer, begun ? "," : "");
        put_record(&r->answer, &(point){r->entry, found, 0, i, with});
        begun = true;
    }
    out_text(&r->answer, "]");
    ww_results_destroy(found);
    return status;
}

static ww_status fetch_points(request *r)
{
    const search_plan *p = r->plan;
    const char *lists = json_given(r->step, "lists"), *at = NULL;
    ww_status status = WW_OK;
    if (lists && json_type_of(lists) == JSON_LIST)
        at = json_first(lists);
    out_text(&r->answer, "[");
    for (size_t i = 0; i < p->count && status == WW_OK; i++, at = at ? json_next(at) : NULL) {
        id_list list = {0};
        out_text(&r->answer, i > 0 ? "," : "");
        status = at ? ids_read(at, &list) : odd_step();
        if (status == WW_OK)
            status = put_points(r, &p->searches[i].with, &list);
        ids_free(&list);
    }
    out_text(&r->answer, "]");
    return status;
}

/* ---- steps --------------------------------------------------------------------------------------------------------------- */

static void run_groups(request *r)
{
    search_plan *p = r->plan;
    const char *keys = json_given(r->step, "keys");
    if (keys && json_type_of(keys) == JSON_LIST) {
        p->group_keys = keys;
        p->group_limit = 0;
        for (const char *at = json_first(keys); at; at = json_next(at))
            p->group_limit++;
    }
    r->route->run(r);
}

void step_run(request *r)
{
    static const struct {
        const char *name;
        ww_status (*run)(request *r);
    } STEPS[] = {{"prepare", prepare}, {"search", run_nodes}, {"points", fetch_points}};
    const search_plan *p = r->plan;
    const char *name = json_given(r->step, "do");
    ww_status (*run)(request *) = NULL;
    ww_status status = name && json_type_of(name) == JSON_TEXT ? give_all(r, "examples", give_example) : odd_step();
    if (status == WW_OK)
        status = give_all(r, "words", give_words);
    if (status == WW_OK && json_text_is(name, "groups", 6) && p->form == FORM_GROUPS) {
        run_groups(r);
        return;
    }
    for (size_t i = 0; status == WW_OK && i < sizeof STEPS / sizeof *STEPS; i++)
        if (json_text_is(name, STEPS[i].name, strlen(STEPS[i].name)))
            run = STEPS[i].run;
    if (status == WW_OK && !run)
        status = odd_step();
    request_result_begin(r);
    if (status == WW_OK)
        status = run(r);
    if (status != WW_OK)
        request_fail_status(r, status);
    else
        request_result_end(r);
}
