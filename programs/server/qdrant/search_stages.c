/* From the searches of a request to a plan of the library. A search becomes one stage, which comes after those of its
 * prefetches; one with mmr becomes two. Trees that differ only in their vectors are the questions of one plan. */
#include <math.h>
#include <string.h>

#include <warpwave/ranking.h>

#include "base/memory.h"
#include "server/qdrant/manhattan.h"
#include "server/qdrant/search.h"

/* A stage with the memory that it points to. */
typedef struct built_stage {
    ww_stage stage;
    union {
        ww_query query;
        ww_fuse fuse;
        ww_diversity diversity;
        ww_finder finder;
    } how;
    ww_sparse_query sparse;
    ww_multi_query multi;
    ww_match match;
    ww_stage_report report;
    entry *entry;
    search *search; /* of the first tree */
    void *values;   /* the vectors or texts of all trees */
    int32_t *inputs;
    const char **exclude;
    int64_t rows; /* that a finder has read */
} built_stage;

typedef struct building {
    entry *entry;
    built_stage *list;
    const ww_stage **pointers;
    int64_t count;
    size_t questions;
} building;

static size_t count_searches(const search *s)
{
    size_t count = 1;
    for (size_t i = 0; i < s->child_count; i++)
        count += count_searches(&s->children[i]);
    return count;
}

static ww_status building_create(building *b, const search *tree)
{
    const size_t room = 2 * count_searches(tree);
    b->list = memory_alloc_zeroed(room, sizeof *b->list);
    b->pointers = memory_alloc_zeroed(room, sizeof *b->pointers);
    return b->list && b->pointers ? WW_OK : memory_failed("a plan", room * sizeof *b->list);
}

static void building_free(building *b)
{
    for (int64_t i = 0; b->list && i < b->count; i++) {
        memory_free(b->list[i].values);
        memory_free(b->list[i].inputs);
        memory_free((void *)b->list[i].exclude);
    }
    memory_free(b->list);
    memory_free((void *)b->pointers);
}

/* ---- searches without a vector, or with the server's own scores ---------------------------------------------------------- */

/* Makes results of the points that a list has. */
static ww_status results_of_list(const entry *e, const listing *l, int64_t count, ww_results **results)
{
    const char **ids = memory_alloc((size_t)(count + 1) * sizeof *ids);
    ww_picked_hit *hits = memory_alloc((size_t)(count + 1) * sizeof *hits);
    ww_results *got = NULL;
    int64_t there = 0;
    ww_status status = ids && hits ? WW_OK : memory_failed("hits", (size_t)count * sizeof *hits);
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        ids[i] = l->rows[i].id;
    if (status == WW_OK)
        status = points_get(e, ids, count, WW_FETCH_IDS, &got);
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        if (ww_results_id(got, 0, i)) /* otherwise it was removed in the meantime */
            hits[there++] = (ww_picked_hit){got, 0, i, 1.0F};
    if (status == WW_OK)
        status = ww_results_pick(hits, there, results);
    ww_results_destroy(got);
    memory_free((void *)ids);
    memory_free(hits);
    return status;
}

/* Lists points by ids, by values or at random, all with score 1. */
static ww_status find_listed(void *user, int64_t question, const ww_filter *filter, int64_t limit, ww_results **results)
{
    (void)question;
    const built_stage *t = user;
    search *s = t->search;
    point_filter admitted = {.filter = (ww_filter *)(uintptr_t)filter};
    const bool all = s->kind == SEARCH_SAMPLE || limit >= WW_ROWS_MAX;
    listing_free(&s->list);
    ww_status status = listing_make(&s->list, t->entry, &admitted, &s->order, (list_part){NULL, all ? 0 : limit});
    if (status == WW_OK && s->kind == SEARCH_SAMPLE)
        listing_shuffle(&s->list);
    return status == WW_OK ? results_of_list(t->entry, &s->list, s->list.count < limit ? s->list.count : limit, results)
                           : status;
}

static ww_status find_near(void *user, int64_t question, const ww_filter *filter, int64_t limit, ww_results **results)
{
    (void)question;
    built_stage *t = user;
    int64_t rows = 0;
    const manhattan_query query = {t->search->vector, filter, limit, WW_FETCH_IDS};
    const ww_status status = manhattan_search(t->search->target, &query, results, &rows);
    t->rows += rows;
    return status;
}

static ww_status find_by_examples(void *user, int64_t question, const ww_filter *filter, int64_t limit, ww_results **results)
{
    (void)question;
    const built_stage *t = user;
    return examples_find(t->search, filter, limit, results);
}

static void set_finder(built_stage *t)
{
    search *s = t->search;
    ww_finder *finder = &t->how.finder;
    const bool by_list = s->kind == SEARCH_LIST || s->kind == SEARCH_SAMPLE, near = s->kind == SEARCH_NEAREST;
    *finder = ww_finder_default();
    finder->find = by_list ? find_listed : near ? find_near : find_by_examples;
    finder->user = t;
    finder->filter = s->filter.filter;
    finder->smaller_is_better = near;
    finder->in_order = !near; /* those of examples are in the order of ids already, if that is wanted */
    t->stage.finder = finder;
}

/* ---- stages -------------------------------------------------------------------------------------------------------------- */

/* The search at the same place in every tree. */
typedef struct twins {
    search **list;
} twins;

static ww_status copy_vectors(building *b, built_stage *t, twins all)
{
    const size_t dim = (size_t)t->search->target->dim, bytes = b->questions * dim * sizeof(float);
    float *vectors = memory_alloc(bytes);
    t->values = vectors;
    if (!vectors)
        return memory_failed("queries", bytes);
    for (size_t i = 0; i < b->questions; i++)
        memcpy(vectors + i * dim, all.list[i]->vector, dim * sizeof *vectors);
    t->how.query.queries = vectors;
    t->how.query.nprobe = t->search->nprobe;
    t->how.query.recall = (float)t->search->recall;
    return WW_OK;
}

static ww_status copy_others(building *b, built_stage *t, twins all)
{
    const search_kind kind = t->search->kind;
    ww_sparse_vector *sparse = kind == SEARCH_SPARSE ? memory_alloc(b->questions * sizeof *sparse) : NULL;
    ww_multivector *multi = kind == SEARCH_MULTI ? memory_alloc(b->questions * sizeof *multi) : NULL;
    const char **texts = kind == SEARCH_WORDS ? memory_alloc(b->questions * sizeof *texts) : NULL;
    t->values = sparse ? (void *)sparse : multi ? (void *)multi : (void *)texts;
    if (!t->values)
        return memory_failed("queries", b->questions * sizeof *sparse);
    for (size_t i = 0; i < b->questions; i++) {
        if (sparse)
            sparse[i] = all.list[i]->sparse;
        else if (multi)
            multi[i] = all.list[i]->multi;
        else
            texts[i] = all.list[i]->words;
    }
    if (sparse) {
        t->sparse = ww_sparse_query_default();
        t->sparse.vectors = sparse;
        t->sparse.modifier = t->search->target->idf ? WW_SPARSE_IDF : WW_SPARSE_PLAIN;
        t->how.query.sparse = &t->sparse;
    } else if (multi) {
        t->multi = ww_multi_query_default();
        t->multi.vectors = multi;
        t->how.query.multi = &t->multi;
    } else {
        t->match = ww_match_default();
        t->match.texts = texts;
        t->match.mode = WW_MATCH_TEXT;
        t->match.counts = t->search->counts.found ? &t->search->counts : NULL; /* then it is the only question */
        t->how.query.match = &t->match;
    }
    return WW_OK;
}

static ww_status set_query(building *b, built_stage *t, twins all)
{
    ww_query *query = &t->how.query;
    *query = ww_query_default();
    query->query_count = (int64_t)b->questions;
    query->dim = t->search->target->dim;
    query->filter = t->search->filter.filter;
    t->stage.query = query;
    return t->search->kind == SEARCH_NEAREST ? copy_vectors(b, t, all) : copy_others(b, t, all);
}

void search_fusion(const search *s, ww_fuse *how)
{
    *how = ww_fuse_default();
    how->fusion = s->kind == SEARCH_RRF ? WW_FUSION_SCALED_RANKS : WW_FUSION_DISTRIBUTIONS;
    how->constant = s->rank_constant - 1; /* ranks count from 0 in Qdrant's formula */
    how->weights = s->weights;
}

static void set_fusion(built_stage *t)
{
    search_fusion(t->search, &t->how.fuse);
    t->stage.fuse = &t->how.fuse;
}

/* The ids of the examples, which the search must not find. */
static ww_status set_exclude(built_stage *t)
{
    const search *s = t->search;
    if (!s->excludes_examples)
        return WW_OK;
    t->exclude = memory_alloc((s->example_count + 1) * sizeof *t->exclude);
    if (!t->exclude)
        return memory_failed("ids", s->example_count * sizeof *t->exclude);
    for (size_t i = 0; i < s->example_count; i++)
        if (s->examples[i].id[0] != '\0')
            t->exclude[t->stage.exclude_count++] = s->examples[i].id;
    t->stage.exclude = t->exclude;
    return WW_OK;
}

static built_stage *begin_stage(building *b, search *s, ww_collection *collection)
{
    built_stage *t = &b->list[b->count];
    b->pointers[b->count++] = &t->stage;
    t->entry = b->entry;
    t->search = s;
    t->stage = ww_stage_default();
    t->report = ww_stage_report_default();
    t->stage.report = &t->report;
    t->stage.collection = collection;
    t->stage.limit = s->limit;
    t->stage.offset = s->offset;
    t->stage.has_threshold = s->has_threshold && s->kind != SEARCH_LIST && s->kind != SEARCH_SAMPLE;
    t->stage.threshold = s->threshold;
    return t;
}

int64_t search_candidates(const search *s)
{
    const int64_t wanted = s->limit + s->offset, most = s->candidates > wanted ? s->candidates : wanted;
    return most < WW_DIVERSITY_MAX ? most : WW_DIVERSITY_MAX;
}

/* Chooses among the nearest points those that are not like the ones before, by maximal marginal relevance. */
static ww_status add_diversity(building *b, built_stage *candidates)
{
    search *s = candidates->search;
    int32_t *inputs = memory_alloc(sizeof *inputs);
    if (!inputs)
        return memory_failed("a plan", sizeof *inputs);
    *inputs = (int32_t)(b->count - 1);
    candidates->stage.limit = search_candidates(s);
    candidates->stage.offset = 0;
    candidates->stage.has_threshold = false;
    built_stage *t = begin_stage(b, s, s->target->collection);
    t->how.diversity = ww_diversity_default();
    t->how.diversity.lambda = 1 - s->diversity;
    t->how.diversity.similarity = s->kind == SEARCH_SPARSE ? WW_FETCH_SPARSE : s->kind == SEARCH_MULTI ? WW_FETCH_MULTI : 0;
    t->stage.diversity = &t->how.diversity;
    t->stage.inputs = t->inputs = inputs;
    t->stage.input_count = 1;
    return WW_OK;
}

static ww_status add_tree(building *b, twins all, int32_t *number);

/* Adds the stages of what is prefetched. */
static ww_status add_children(building *b, twins all, int32_t **inputs)
{
    const size_t count = all.list[0]->child_count;
    ww_status status = WW_OK;
    *inputs = NULL;
    if (count == 0)
        return WW_OK;
    const twins children = {memory_alloc(b->questions * sizeof *children.list)};
    *inputs = memory_alloc(count * sizeof **inputs);
    if (!children.list || !*inputs)
        status = memory_failed("a plan", b->questions * sizeof *children.list);
    for (size_t c = 0; status == WW_OK && c < count; c++) {
        for (size_t i = 0; i < b->questions; i++)
            children.list[i] = &all.list[i]->children[c];
        status = add_tree(b, children, &(*inputs)[c]);
    }
    memory_free((void *)children.list);
    return status;
}

static ww_status add_tree(building *b, twins all, int32_t *number)
{
    search *s = all.list[0];
    int32_t *inputs = NULL;
    ww_status status = add_children(b, all, &inputs);
    if (status != WW_OK) {
        memory_free(inputs);
        return status;
    }
    built_stage *t = begin_stage(b, s, s->target->collection);
    t->stage.inputs = t->inputs = inputs;
    t->stage.input_count = (int64_t)s->child_count;
    status = set_exclude(t);
    if (s->kind == SEARCH_RRF || s->kind == SEARCH_DBSF)
        set_fusion(t);
    else if (s->kind == SEARCH_FORMULA)
        t->stage.formula = s->formula;
    else if (s->kind == SEARCH_SPARSE || s->kind == SEARCH_MULTI || s->kind == SEARCH_WORDS ||
             (s->kind == SEARCH_NEAREST && !s->target->manhattan))
        status = status == WW_OK ? set_query(b, t, all) : status;
    else
        set_finder(t);
    if (status == WW_OK && s->diverse)
        status = add_diversity(b, t);
    *number = (int32_t)(b->count - 1);
    return status;
}

/* ---- what the stages did ------------------------------------------------------------------------------------------------- */

/* A row is screened by its codes, a byte per element, and scored by its vector. With an index the library counts the bytes of
 * codes itself. */
static void add_cost(search_cost *cost, const built_stage *t)
{
    static const int64_t ELEMENT_BYTES[] = {
        [WW_VECTOR_F32] = 4, [WW_VECTOR_F16] = 2, [WW_VECTOR_BF16] = 2, [WW_VECTOR_I8] = 1, [WW_VECTOR_U8] = 1};
    const ww_stage_report *r = &t->report;
    const entry *e = t->search->target;
    const int64_t scored = r->rows_scored + t->rows;
    const int64_t codes = r->lists_read > 0 ? r->list_bytes_read : r->rows_screened * e->dim;
    cost->rows_screened += r->rows_screened;
    cost->rows_scored += scored;
    cost->lists_read += r->lists_read;
    cost->bytes += codes + scored * e->dim * ELEMENT_BYTES[e->type];
}

static void put_number(out *o, const char *name, int64_t number)
{
    if (number > 0)
        out_format(o, ",\"%s\":%lld", name, (long long)number);
}

static void put_stage(out *o, const built_stage *t, size_t questions)
{
    const ww_stage_report *r = &t->report;
    const char *name = ww_stage_name(&t->stage);
    out_format(o, "{\"stage\":\"%s\",\"using\":", name);
    out_quoted(o, t->search->using, strlen(t->search->using));
    out_text(o, ",\"inputs\":[");
    for (int64_t i = 0; i < t->stage.input_count; i++)
        out_format(o, i > 0 ? ",%d" : "%d", (int)t->stage.inputs[i]);
    out_format(o, "],\"questions\":%zu,\"found\":%lld,\"hits\":%lld", questions, (long long)r->rows_found, (long long)r->hits);
    put_number(o, "rows_in", r->rows_in);
    put_number(o, "beyond_threshold", r->rows_worse);
    put_number(o, "excluded", r->rows_excluded);
    put_number(o, "skipped", r->rows_skipped);
    put_number(o, "gone", r->rows_gone);
    put_number(o, "rows_screened", r->rows_screened);
    put_number(o, "rows_kept", r->rows_kept);
    put_number(o, "rows_scored", r->rows_scored + t->rows);
    put_number(o, "lists_read", r->lists_read);
    out_text(o, ",\"seconds\":");
    out_double(o, r->seconds);
    out_text(o, "}");
}

/* The stages as JSON; NULL without memory. */
static char *explain(const building *b)
{
    out o = {0};
    out_text(&o, "[");
    for (int64_t i = 0; i < b->count; i++) {
        out_text(&o, i > 0 ? "," : "");
        put_stage(&o, &b->list[i], b->questions);
    }
    out_text(&o, "]");
    char *text = o.failed ? NULL : memory_copy_text(o.bytes, o.length);
    out_free(&o);
    return text;
}

static ww_status tell(building *b, search **trees)
{
    metrics *m = &b->entry->queue.server->metrics;
    search_cost cost = {.queries = (int64_t)b->questions};
    for (int64_t i = 0; i < b->count; i++) {
        const built_stage *t = &b->list[i];
        add_cost(&cost, t);
        if (t->stage.query || (t->stage.finder && t->search->kind != SEARCH_LIST && t->search->kind != SEARCH_SAMPLE))
            atomic_fetch_add(&m->searches, (long long)b->questions);
    }
    atomic_fetch_add(&m->rows_read, cost.rows_screened + cost.rows_scored);
    for (size_t i = 0; i < b->questions; i++)
        trees[i]->cost = cost;
    for (size_t i = 0; trees[0]->explain && i < b->questions; i++) {
        trees[i]->explained = explain(b);
        if (!trees[i]->explained)
            return memory_failed("an explanation", 0);
    }
    return WW_OK;
}

ww_status stages_run(entry *e, search **trees, size_t count, ww_results **results)
{
    building b = {.entry = e, .questions = count};
    search *top = trees[0];
    ww_plan plan = ww_plan_default();
    int32_t number = 0;
    ww_results *made = NULL;
    ww_status status = building_create(&b, top);
    if (status == WW_OK)
        status = add_tree(&b, (twins){trees}, &number);
    plan.stages = b.pointers;
    plan.stage_count = b.count;
    plan.question_count = (int64_t)count;
    plan.fetch = parts_fetch(&top->with);
    plan.collection = top->kind == SEARCH_NEAREST ? top->target->collection : e->collection;
    plan.ties_by_id = e->by_id;
    plan.cancel = job_cancel();
    if (status == WW_OK)
        status = ww_plan_run(&plan, &made);
    if (status == WW_OK)
        status = tell(&b, trees);
    building_free(&b);
    if (status == WW_OK)
        *results = made;
    else
        ww_results_destroy(made);
    return status;
}
