/* Plans: checks all stages, and then runs one after the other. */
#include "vectors/plan/plan.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/float_guard.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/structs.h"
#include "vectors/collection.h"
#include "vectors/filter/filter.h"

STRUCT_INIT(ww_stage_report, {0})
STRUCT_INIT(ww_order, {0})
STRUCT_INIT(ww_finder, {0})
STRUCT_INIT(ww_stage, {0})
STRUCT_INIT(ww_plan, {.question_count = 1})

static const char FUNCTION[] = "ww_plan_run";

/* ---- checks -------------------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static ww_status refuse(const stage_run *s, const char *format, ...)
{
    char why[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    return ww_fail(WW_INVALID_ARGUMENT, "%s: stage %d: %s", FUNCTION, s->number, why);
}

static int tasks_of(const ww_stage *stage)
{
    return !!stage->query + !!stage->fuse + !!stage->diversity + !!stage->grouping + !!stage->order + !!stage->formula +
           !!stage->finder;
}

static ww_status check_inputs(const stage_run *s)
{
    const ww_stage *stage = &s->stage;
    const bool one = stage->diversity || stage->grouping;
    if (stage->input_count < 0 || (stage->input_count > 0 && !stage->inputs))
        return refuse(s, "input_count is %lld, without that many inputs", (long long)stage->input_count);
    if (one ? stage->input_count != 1 : stage->input_count < 1 && !stage->query && !stage->finder)
        return refuse(s, "a %s has %s", ww_stage_name(stage), one ? "one input" : "at least one input");
    for (int64_t i = 0; i < stage->input_count; i++)
        if (stage->inputs[i] < 0 || stage->inputs[i] >= s->number)
            return refuse(s, "input %d is not an earlier stage", (int)stage->inputs[i]);
    return WW_OK;
}

static ww_status check_numbers(const stage_run *s)
{
    const ww_stage *stage = &s->stage;
    if (stage->limit < 0 || stage->offset < 0)
        return refuse(s, "limit is %lld and offset %lld; neither must be negative", (long long)stage->limit,
                      (long long)stage->offset);
    if (stage->has_threshold && isnan(stage->threshold))
        return refuse(s, "the threshold is not a number");
    if (stage->exclude_count < 0 || (stage->exclude_count > 0 && !stage->exclude))
        return refuse(s, "exclude_count is %lld, without that many ids", (long long)stage->exclude_count);
    for (int64_t i = 0; i < stage->exclude_count; i++)
        if (!stage->exclude[i])
            return refuse(s, "exclude[%lld] is NULL", (long long)i);
    return stage->report ? struct_check(stage->report, FUNCTION, "ww_stage_report") : WW_OK;
}

/* Reads the query of a stage with the structs that it points to. */
static ww_status take_query(const plan_run *p, stage_run *s)
{
    ww_query *query = &s->how.query;
    ww_status status = struct_read(query, sizeof *query, s->stage.query, FUNCTION, "ww_query");
    if (status == WW_OK && query->sparse)
        status = struct_read(&s->sparse, sizeof s->sparse, query->sparse, FUNCTION, "ww_sparse_query");
    if (status == WW_OK && query->multi)
        status = struct_read(&s->multi, sizeof s->multi, query->multi, FUNCTION, "ww_multi_query");
    if (status == WW_OK && query->match)
        status = struct_read(&s->match, sizeof s->match, query->match, FUNCTION, "ww_match");
    if (status != WW_OK)
        return status;
    query->struct_size = sizeof *query; /* of copies all fields are set */
    s->sparse.struct_size = sizeof s->sparse;
    s->multi.struct_size = sizeof s->multi;
    s->match.struct_size = sizeof s->match;
    const char *field = query->mode != WW_QUERY_NEAREST ? "mode"
                        : query->k != 0                 ? "k"
                        : query->bound != 0.0f          ? "bound"
                        : query->limit != 0             ? "limit"
                        : query->fetch != 0             ? "fetch"
                        : query->stats                  ? "stats"
                        : query->progress               ? "progress"
                        : query->cancel                 ? "cancel"
                                                        : NULL;
    if (field)
        return refuse(s, "its query sets %s; set it in the stage or the plan instead", field);
    if (!query->query_tensor && query->query_count != p->plan.question_count)
        return refuse(s, "its query has query_count %lld, and the plan question_count %lld", (long long)query->query_count,
                      (long long)p->plan.question_count);
    if (query->sparse && p->plan.question_count > 0 && !s->sparse.vectors)
        return refuse(s, "sparse has no vectors");
    if (query->multi && p->plan.question_count > 0 && !s->multi.vectors)
        return refuse(s, "multi has no vectors");
    if (query->match && p->plan.question_count > 0 && !s->match.texts)
        return refuse(s, "match has no texts");
    status = collection_check(s->home, FUNCTION);
    if (status == WW_OK)
        s->smaller = s->home->metric == WW_L2 && !query->sparse && !query->match;
    return status == WW_OK ? filter_check_closed(query->filter, FUNCTION) : status;
}

static ww_status take_finder(stage_run *s)
{
    ww_finder *finder = &s->how.finder;
    const ww_status status = struct_read(finder, sizeof *finder, s->stage.finder, FUNCTION, "ww_finder");
    if (status == WW_OK && !finder->find)
        return refuse(s, "its finder has no function");
    s->smaller = finder->smaller_is_better;
    return status == WW_OK ? filter_check_closed(finder->filter, FUNCTION) : status;
}

/* Stages are in one list. */
static const stage_run *first_input(const stage_run *s)
{
    return s - s->number + s->stage.inputs[0];
}

static ww_status take_ranking(stage_run *s)
{
    const ww_stage *stage = &s->stage;
    ww_status status = WW_OK;
    if (stage->fuse) {
        status = struct_read(&s->how.fuse, sizeof s->how.fuse, stage->fuse, FUNCTION, "ww_fuse");
        s->how.fuse.struct_size = sizeof s->how.fuse;
        return status;
    }
    s->smaller = !stage->formula && first_input(s)->smaller;
    if (stage->grouping) {
        status = struct_read(&s->how.grouping, sizeof s->how.grouping, stage->grouping, FUNCTION, "ww_grouping");
        s->how.grouping.struct_size = sizeof s->how.grouping;
    }
    if (stage->diversity) {
        status = struct_read(&s->how.diversity, sizeof s->how.diversity, stage->diversity, FUNCTION, "ww_diversity");
        s->how.diversity.struct_size = sizeof s->how.diversity;
        if (status == WW_OK)
            status = collection_check(s->home, FUNCTION);
        if (status == WW_OK)
            s->how.diversity.metric = s->home->metric;
    }
    if (stage->order) {
        json_path path;
        status = struct_read(&s->how.order, sizeof s->how.order, stage->order, FUNCTION, "ww_order");
        const char *field = s->how.order.field;
        const char *wrong = status != WW_OK ? NULL : field ? json_path_read(field, strlen(field), &path) : "it is NULL";
        if (wrong)
            return refuse(s, "field '%s': %s", field ? field : "", wrong);
    }
    return status;
}

static ww_status take_stage(const plan_run *p, stage_run *s)
{
    const ww_stage *callers = p->plan.stages[s->number];
    if (!callers)
        return refuse(s, "is NULL");
    ww_status status = struct_read(&s->stage, sizeof s->stage, callers, FUNCTION, "ww_stage");
    if (status != WW_OK)
        return status;
    if (tasks_of(&s->stage) != 1)
        return refuse(s, "give one of query, fuse, diversity, grouping, order, formula and finder");
    status = check_inputs(s);
    if (status == WW_OK)
        status = check_numbers(s);
    if (status != WW_OK)
        return status;
    s->home = s->stage.collection;
    if (!s->home && s->stage.input_count > 0)
        s->home = first_input(s)->home;
    s->report.struct_size = sizeof s->report;
    if (s->stage.query)
        return take_query(p, s);
    return s->stage.finder ? take_finder(s) : take_ranking(s);
}

static ww_status take_plan(plan_run *p, const ww_plan *callers)
{
    const ww_plan *plan = &p->plan;
    ww_status status = struct_read(&p->plan, sizeof p->plan, callers, FUNCTION, "ww_plan");
    if (status == WW_OK && (plan->stage_count < 1 || plan->stage_count > WW_PLAN_STAGES_MAX))
        status = ww_fail(WW_OUT_OF_RANGE, "%s: stage_count is %lld; it must be 1 to %d", FUNCTION, (long long)plan->stage_count,
                         WW_PLAN_STAGES_MAX);
    if (status == WW_OK && plan->question_count < 0)
        status = ww_fail(WW_OUT_OF_RANGE, "%s: question_count is %lld; it must not be negative", FUNCTION,
                         (long long)plan->question_count);
    if (status == WW_OK && !plan->stages)
        return fail_null(FUNCTION, "stages");
    if (status == WW_OK)
        status = fetch_check(FUNCTION, plan->fetch);
    if (status == WW_OK && plan->collection)
        status = collection_check(plan->collection, FUNCTION);
    if (status != WW_OK)
        return status;
    p->stages = memory_alloc_zeroed((size_t)plan->stage_count, sizeof *p->stages);
    if (!p->stages)
        return memory_failed("the stages of a plan", (size_t)plan->stage_count * sizeof *p->stages);
    for (int64_t i = 0; status == WW_OK && i < plan->stage_count; i++) {
        p->stages[i].number = (int32_t)i;
        status = take_stage(p, &p->stages[i]);
    }
    return status;
}

/* ---- running ------------------------------------------------------------------------------------------------------------- */

static ww_status run_stage(const plan_run *p, stage_run *s)
{
    const int64_t begun = clock_nanoseconds();
    const bool searches = s->stage.query || s->stage.finder, scores = s->stage.formula || s->stage.order;
    found_list *lists = memory_alloc_zeroed((size_t)p->plan.question_count + 1, sizeof *lists);
    if (!lists)
        return memory_failed("lists of a plan", (size_t)p->plan.question_count * sizeof *lists);
    ww_status status = WW_OK;
    if (searches || scores)
        status = searches ? stage_find(p, s, lists) : stage_score(p, s, lists);
    else {
        const int64_t questions = p->plan.question_count;
        lists[questions].owned = true;
        status = stage_rank(p, s, &lists[questions].results);
        for (int64_t q = 0; q < questions; q++)
            lists[q] = (found_list){lists[questions].results, q, false};
    }
    if (status == WW_OK)
        status = stage_trim(p, s, lists);
    for (int64_t q = 0; q <= p->plan.question_count; q++) {
        if (status == WW_OK && !s->results && lists[q].owned)
            s->results = lists[q].results; /* all of them, untrimmed: no other list has its own */
        else if (lists[q].owned)
            ww_results_destroy(lists[q].results);
    }
    memory_free(lists);
    s->report.seconds = (double)(clock_nanoseconds() - begun) * 1e-9;
    return status;
}

/* Takes the results of the last stage, with what the caller wants of their rows. */
static ww_status finish(plan_run *p, ww_results **results)
{
    stage_run *last = &p->stages[p->plan.stage_count - 1];
    ww_collection *home = p->plan.collection ? p->plan.collection : last->home;
    const uint32_t wanted = p->plan.fetch & ~(uint32_t)WW_FETCH_IDS;
    ww_results *made = NULL;
    ww_status status = WW_OK;
    if (wanted != 0 && last->fetched != wanted) {
        status = results_with(p, home, wanted, last->results, &made);
        last->report.rows_gone += status == WW_OK ? results_hits(last->results) - results_hits(made) : 0;
    }
    if (status != WW_OK) {
        ww_results_destroy(made);
        return status;
    }
    *results = made ? made : last->results;
    if (!made)
        last->results = NULL;
    for (int64_t i = 0; i < p->plan.stage_count; i++)
        if (p->stages[i].stage.report) /* take_stage() has checked the struct */
            (void)struct_write(p->stages[i].stage.report, &p->stages[i].report, sizeof p->stages[i].report, FUNCTION,
                               "ww_stage_report");
    return WW_OK;
}

static void plan_release(plan_run *p)
{
    for (int64_t i = 0; p->stages && i < p->plan.stage_count; i++)
        ww_results_destroy(p->stages[i].results);
    memory_free(p->stages);
}

ww_status ww_plan_run(const ww_plan *plan, ww_results **results)
{
    FLOAT_GUARD();
    plan_run p = {0};
    if (!plan || !results)
        return fail_null(FUNCTION, plan ? "results" : "plan");
    ww_status status = take_plan(&p, plan);
    CANCEL_BY(status == WW_OK ? p.plan.cancel : NULL);
    if (status == WW_OK) { /* a search that is the last stage fetches at once what the results need */
        stage_run *last = &p.stages[p.plan.stage_count - 1];
        if (last->stage.query && (!p.plan.collection || p.plan.collection == last->home))
            last->fetched = p.plan.fetch & ~(uint32_t)WW_FETCH_IDS;
    }
    for (int64_t i = 0; status == WW_OK && i < p.plan.stage_count; i++)
        status = run_stage(&p, &p.stages[i]);
    if (status == WW_OK)
        status = finish(&p, results);
    plan_release(&p);
    return status;
}

/* ---- for people ---------------------------------------------------------------------------------------------------------- */

const char *ww_stage_name(const ww_stage *stage)
{
    return !stage             ? ""
           : stage->query     ? "query"
           : stage->fuse      ? "fuse"
           : stage->diversity ? "diversity"
           : stage->grouping  ? "grouping"
           : stage->order     ? "order"
           : stage->formula   ? "formula"
           : stage->finder    ? "finder"
                              : "";
}

typedef struct writing {
    char *text;
    size_t capacity, length;
} writing;

__attribute__((format(printf, 2, 3))) static void put(writing *w, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const bool fits = w->length < w->capacity;
    const int length = vsnprintf(fits ? w->text + w->length : NULL, fits ? w->capacity - w->length : 0, format, arguments);
    va_end(arguments);
    w->length += length > 0 ? (size_t)length : 0;
}

static void put_count(writing *w, int64_t count, const char *what)
{
    if (count > 0)
        put(w, ", %lld %s", (long long)count, what);
}

static void put_stage(writing *w, int64_t number, const ww_stage *stage, const ww_stage_report *r)
{
    put(w, "%lld %s", (long long)number, ww_stage_name(stage));
    for (int64_t i = 0; i < stage->input_count; i++)
        put(w, "%s%d", i == 0 ? " of " : ", ", (int)stage->inputs[i]);
    put(w, ": %lld of %lld hits", (long long)r->hits, (long long)r->rows_found);
    put_count(w, r->rows_in, "rows in");
    put_count(w, r->rows_worse, "beyond the threshold");
    put_count(w, r->rows_excluded, "excluded by id");
    put_count(w, r->rows_skipped, "skipped");
    put_count(w, r->rows_gone, "gone or without a value");
    put_count(w, r->rows_screened, "rows screened");
    put_count(w, r->rows_kept, "kept by the bound");
    put_count(w, r->rows_scored, "scored");
    put_count(w, r->lists_read, "lists read");
    put(w, ", %.3f ms\n", 1e3 * r->seconds);
}

size_t ww_plan_explain(const ww_plan *plan, char *text, size_t capacity)
{
    writing w = {text, text ? capacity : 0, 0};
    ww_plan read;
    ww_stage stage;
    ww_stage_report report;
    if (w.capacity > 0)
        *text = '\0';
    if (!plan || struct_read(&read, sizeof read, plan, "ww_plan_explain", "ww_plan") != WW_OK)
        return 0;
    for (int64_t i = 0; read.stages && i < read.stage_count; i++)
        if (read.stages[i] && struct_read(&stage, sizeof stage, read.stages[i], "ww_plan_explain", "ww_stage") == WW_OK &&
            stage.report && struct_read(&report, sizeof report, stage.report, "ww_plan_explain", "ww_stage_report") == WW_OK)
            put_stage(&w, i, &stage, &report);
    return w.length;
}
