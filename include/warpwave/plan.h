/* Plans: searches in stages, where ww_query is for the ordinary case of one.
 *
 *     dense.query = &by_vector, dense.collection = docs, dense.limit = 100;
 *     words.query = &by_words, words.collection = docs, words.limit = 100;
 *     both.fuse = &fuse, both.inputs = (const int32_t[]){0, 1}, both.input_count = 2, both.limit = 50;
 *     best.formula = boost, best.inputs = (const int32_t[]){2}, best.input_count = 1, best.limit = 10;
 *     plan.stages = (const ww_stage *const[]){&dense, &words, &both, &best}, plan.stage_count = 4;
 *     ww_plan_run(&plan, &results);
 *
 * A stage searches a collection, or works on the hits of stages before it, to any depth. The hits of the last stage are the
 * results. Stages may use different collections: a row is what its id says. A plan can ask many questions at once, as a query
 * can: each stage then has as many lists of hits. The answer is the same on every machine. Each stage sees a snapshot of its
 * own, so a row that is removed meanwhile drops out.
 */
#ifndef WARPWAVE_PLAN_H
#define WARPWAVE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <warpwave/formula.h>
#include <warpwave/ranking.h>
#include <warpwave/results.h>
#include <warpwave/status.h>
#include <warpwave/vectors.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WW_PLAN_STAGES_MAX 8192

/* What a stage did, over all questions. */
typedef struct ww_stage_report {
    size_t struct_size;    /* set by ww_stage_report_default() */
    int64_t rows_in;       /* different rows of its inputs */
    int64_t rows_found;    /* hits before anything below left some out */
    int64_t rows_worse;    /* left out because of the threshold */
    int64_t rows_excluded; /* because their ids are excluded */
    int64_t rows_skipped;  /* by the offset */
    int64_t rows_gone;     /* removed since the stage before, or without a value to order by */
    int64_t hits;          /* what is left, up to the limit */
    double seconds;
    int64_t rows_screened, rows_kept, rows_scored; /* of a search, as in ww_search_stats */
    int64_t lists_read, list_bytes_read;
    float certificate;
} ww_stage_report;

/* Orders hits by a field of their payloads: numbers, or texts that are dates. Of a list the value that comes first counts. Rows
 * without a value are left out. */
typedef struct ww_order {
    size_t struct_size;
    const char *field; /* "year", "author.born", "dates[]" */
    bool descending;
} ww_order;

/* A search of the caller's own: finds at most `limit` rows for a question among those that the filter admits (NULL: all), best
 * first, equal ones in any order that is always the same, with ids (WW_FETCH_IDS), as results of one query. It may be asked
 * again with a larger limit. */
typedef struct ww_finder {
    size_t struct_size;
    ww_status (*find)(void *user, int64_t question, const ww_filter *filter, int64_t limit, ww_results **results);
    void *user;
    const ww_filter *filter;
    bool smaller_is_better; /* scores are distances */
    bool in_order;          /* the order says more than the scores: WW_PLAN's ties_by_id leaves it alone */
} ww_finder;

/* One stage. Give one of query, fuse, diversity, grouping, order, formula and finder. */
typedef struct ww_stage {
    size_t struct_size;
    ww_collection *collection; /* that it searches, or where the fields and vectors of its inputs' rows are; NULL: that of the
                                * first input */
    const int32_t *inputs;     /* numbers of earlier stages, from 0 */
    int64_t input_count;
    /* A search by vectors, sparse vectors, multivectors or words, with its filter. With inputs, among their rows only. Mode, k,
     * bound, limit, fetch, stats, progress and cancel must be as in ww_query_default(). */
    const ww_query *query;
    const ww_fuse *fuse;           /* makes one list of its inputs; limit, by_id and cancel are ignored */
    const ww_diversity *diversity; /* thins out its input; limit and metric are ignored */
    const ww_grouping *grouping;   /* of its input */
    const ww_order *order;         /* of the rows of its inputs; scores stay those of the first that has the row */
    const ww_formula *formula;     /* a new score for each row of its inputs, larger is better */
    const ww_finder *finder;       /* with inputs, among their rows only */
    int64_t limit;                 /* at most this many hits per question; 0: all */
    int64_t offset;                /* the first are skipped */
    bool has_threshold;
    double threshold;           /* hits with a worse score are left out */
    const char *const *exclude; /* ids of rows that are left out */
    int64_t exclude_count;
    ww_stage_report *report; /* filled in if the plan succeeds; may be NULL */
} ww_stage;

typedef struct ww_plan {
    size_t struct_size;
    const ww_stage *const *stages; /* an input comes before the stage that reads it */
    int64_t stage_count;           /* 1 to WW_PLAN_STAGES_MAX */
    int64_t question_count;        /* 1 by default; the query_count of every query */
    uint32_t fetch;                /* as in ww_query, for the results; they always have ids */
    ww_collection *collection;     /* that `fetch` reads; NULL: that of the last stage */
    /* Hits of equal score come in the order of their ids instead of their rows, numbers first, and a limit takes the first of
     * these: the order is then the same in collections that were filled in another order. */
    bool ties_by_id;
    const ww_cancel *cancel; /* as in ww_query */
} ww_plan;

/* device.h says how ..._default() and ..._init() differ. */
WW_API ww_status ww_stage_report_init(void *value, size_t struct_size);
WW_API ww_status ww_order_init(void *value, size_t struct_size);
WW_API ww_status ww_finder_init(void *value, size_t struct_size);
WW_API ww_status ww_stage_init(void *value, size_t struct_size);
WW_API ww_status ww_plan_init(void *value, size_t struct_size);

static inline ww_stage_report ww_stage_report_default(void)
{
    ww_stage_report value;
    ww_stage_report_init(&value, sizeof value);
    return value;
}
static inline ww_order ww_order_default(void)
{
    ww_order value;
    ww_order_init(&value, sizeof value);
    return value;
}
static inline ww_finder ww_finder_default(void)
{
    ww_finder value;
    ww_finder_init(&value, sizeof value);
    return value;
}
static inline ww_stage ww_stage_default(void)
{
    ww_stage value;
    ww_stage_init(&value, sizeof value);
    return value;
}
static inline ww_plan ww_plan_default(void)
{
    ww_plan value;
    ww_plan_init(&value, sizeof value);
    return value;
}

/* Runs the plan. Everything stays the caller's and is read only during the call. Checks every stage before the first one
 * runs, except what its query says about vectors. Refuses inputs that are not earlier stages, and stages with none or several
 * of the things to do. A diversity has at most WW_DIVERSITY_MAX hits to choose from. May wait for a writer. */
WW_API ww_status ww_plan_run(const ww_plan *plan, ww_results **results);

/* Returns what a stage does: "query", "fuse", "diversity", "grouping", "order", "formula" or "finder"; "" for none. */
WW_API const char *ww_stage_name(const ww_stage *stage);

/* Writes what the stages did for people to read, a line per stage, from the reports that ww_plan_run() has filled in; "" for
 * stages without a report. NUL-terminated, cut off if it does not fit into `capacity` bytes. Returns the length of the whole
 * text. */
WW_API size_t ww_plan_explain(const ww_plan *plan, char *text, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
