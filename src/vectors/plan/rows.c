/* Stages that work on the rows of earlier ones: formulas and orders by a field, which read payloads; and fusion, diversity and
 * groups, which ranking.h has. */
#include <math.h>
#include <string.h>

#include "base/instant.h"
#include "base/integers.h"
#include "base/json/json_path.h"
#include "base/memory.h"
#include "base/tables/sort.h"
#include "vectors/plan/formula.h"
#include "vectors/plan/plan.h"

/* ---- the rows of the inputs ---------------------------------------------------------------------------------------------- */

typedef struct input_hit {
    const char *id;
    int64_t order, input;
    float score;
} input_hit;

static int by_row(const void *first, const void *second)
{
    const input_hit *a = first, *b = second;
    const int order = strcmp(a->id, b->id);
    return order != 0 ? order : (a->order > b->order) - (a->order < b->order);
}

static int by_order(const void *first, const void *second)
{
    const merged_row *a = first, *b = second;
    return (a->order > b->order) - (a->order < b->order);
}

static int64_t hits_of(const plan_run *p, const stage_run *s, int64_t question)
{
    int64_t hits = 0;
    for (int64_t i = 0; i < s->stage.input_count; i++)
        hits += ww_results_count(p->stages[s->stage.inputs[i]].results, question);
    return hits;
}

/* Lists the hits of all inputs that have an id, and sorts them by it. */
static ww_status list_hits(const plan_run *p, const stage_run *s, int64_t question, input_hit *hits, int64_t *count)
{
    int64_t order = 0;
    *count = 0;
    for (int64_t i = 0; i < s->stage.input_count; i++) {
        const ww_results *from = p->stages[s->stage.inputs[i]].results;
        for (int64_t hit = 0; hit < ww_results_count(from, question); hit++, order++) {
            const char *id = ww_results_id(from, question, hit);
            if (id)
                hits[(*count)++] = (input_hit){id, order, i, ww_results_scores(from, question)[hit]};
        }
    }
    return sort_elements(hits, (size_t)*count, sizeof *hits, by_row);
}

static void unite(const input_hit *hits, int64_t count, int64_t inputs, merged_rows *merged)
{
    for (int64_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(hits[i - 1].id, hits[i].id) != 0) {
            merged->rows[merged->count] = (merged_row){hits[i].id, hits[i].order, merged->count};
            for (int64_t k = 0; k < inputs; k++)
                merged->scores[merged->count * inputs + k] = NAN;
            merged->count++;
        }
        float *score = &merged->scores[(merged->count - 1) * inputs + hits[i].input];
        *score = isnan(*score) ? hits[i].score : *score;
    }
}

ww_status merged_rows_make(const plan_run *p, const stage_run *s, int64_t question, merged_rows *merged)
{
    const int64_t inputs = s->stage.input_count, room = hits_of(p, s, question);
    size_t numbers = 0;
    int64_t count = 0;
    input_hit *hits = memory_alloc(((size_t)room + 1) * sizeof *hits);
    merged->rows = memory_alloc(((size_t)room + 1) * sizeof *merged->rows);
    merged->ids = memory_alloc(((size_t)room + 1) * sizeof *merged->ids);
    merged->scores = size_multiply((size_t)room + 1, (size_t)inputs * sizeof(float), &numbers) ? memory_alloc(numbers) : NULL;
    ww_status status = hits && merged->rows && merged->ids && merged->scores ? WW_OK : memory_failed("rows of a plan", numbers);
    if (status == WW_OK)
        status = list_hits(p, s, question, hits, &count);
    if (status == WW_OK) {
        unite(hits, count, inputs, merged);
        status = sort_elements(merged->rows, (size_t)merged->count, sizeof *merged->rows, by_order);
    }
    for (int64_t i = 0; status == WW_OK && i < merged->count; i++)
        merged->ids[i] = merged->rows[i].id;
    memory_free(hits);
    return status;
}

void merged_rows_free(merged_rows *merged)
{
    memory_free(merged->rows);
    memory_free(merged->ids);
    memory_free(merged->scores);
    *merged = (merged_rows){0};
}

static ww_status get_rows(const plan_run *p, ww_collection *home, uint32_t fetch, const char *const *ids, ww_get *get)
{
    *get = ww_get_default();
    get->ids = ids;
    get->fetch = WW_FETCH_IDS | fetch;
    get->cancel = p->plan.cancel;
    return home ? WW_OK : ww_fail(WW_INVALID_ARGUMENT, "ww_plan_run: a stage needs a collection to read rows from");
}

/* ---- formulas and orders ------------------------------------------------------------------------------------------------- */

/* A row with its new place. */
typedef struct placed_row {
    double value; /* larger is better */
    int64_t order;
    picked_hit hit;
} placed_row;

static int by_value(const void *first, const void *second)
{
    const placed_row *a = first, *b = second;
    if (a->value != b->value)
        return (a->value < b->value) - (a->value > b->value);
    return (a->order > b->order) - (a->order < b->order);
}

typedef struct ordering {
    double value;
    bool found;
} ordering;

static bool read_value(void *user, const char *value)
{
    enum { DATE_BYTES = 64 };
    ordering *o = user;
    char text[DATE_BYTES];
    int64_t microseconds = 0;
    if (json_type_of(value) == JSON_NUMBER) {
        const json_number number = json_number_of(value);
        *o = (ordering){number.is_integer ? (double)number.integer : number.real, true};
    } else if (json_type_of(value) == JSON_TEXT && json_end(value) - value <= DATE_BYTES &&
               instant_read(text, json_text_read(value, text), &microseconds)) {
        *o = (ordering){(double)microseconds, true};
    }
    return !o->found;
}

/* Puts a row in its place. `found` is false if it has none. */
static ww_status place_row(const stage_run *s, const ww_results *got, int64_t i, const float *scores, placed_row *row)
{
    const char *payload = ww_results_payload(got, 0, i);
    float score = scores[0];
    ww_status status = WW_OK;
    if (s->stage.formula) {
        const ww_formula_row asked = {sizeof asked, ww_results_id(got, 0, i), payload, scores, s->stage.input_count};
        status = formula_score(s->stage.formula, &asked, &score);
        row->value = (double)score;
    } else {
        json_path path;
        ordering o = {0};
        const char *field = s->how.order.field;
        if (payload && !json_path_read(field, strlen(field), &path))
            (void)json_path_visit(path.parts, path.count, json_root(payload), &(json_visit){read_value, &o, true});
        row->value = o.found ? (s->how.order.descending ? o.value : -o.value) : NAN;
        for (int64_t k = 1; isnan(score) && k < s->stage.input_count; k++)
            score = scores[k];
    }
    row->order = i;
    row->hit = (picked_hit){got, i, score};
    return status;
}

static ww_status score_rows(const plan_run *p, stage_run *s, const merged_rows *merged, ww_results **made)
{
    ww_get get = {0};
    ww_results *got = NULL;
    int64_t *starts = NULL, count = 0;
    picked_hit *picked = NULL;
    placed_row *rows = memory_alloc(((size_t)merged->count + 1) * sizeof *rows);
    ww_status status = rows ? get_rows(p, s->home, WW_FETCH_PAYLOADS, merged->ids, &get)
                            : memory_failed("rows of a plan", (size_t)merged->count * sizeof *rows);
    get.count = merged->count;
    if (status == WW_OK)
        status = ww_collection_get(s->home, &get, &got);
    for (int64_t i = 0; status == WW_OK && i < merged->count; i++) {
        if (got->rows[i] < 0)
            continue;
        status = place_row(s, got, i, merged->scores + merged->rows[i].slot * s->stage.input_count, &rows[count]);
        count += !isnan(rows[count].value);
    }
    s->report.rows_gone += merged->count - count;
    if (status == WW_OK)
        status = sort_elements(rows, (size_t)count, sizeof *rows, by_value);
    if (status == WW_OK)
        status = picked_create(1, count, &starts, &picked);
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        picked[i] = rows[i].hit;
    if (status == WW_OK) {
        starts[1] = count;
        status = results_pick(&(picked_hits){1, starts, picked}, made);
    }
    ww_results_destroy(got);
    memory_free(rows);
    memory_free(starts);
    memory_free(picked);
    return status;
}

ww_status stage_score(const plan_run *p, stage_run *s, found_list *lists)
{
    ww_status status = WW_OK;
    for (int64_t q = 0; status == WW_OK && q < p->plan.question_count; q++) {
        merged_rows merged = {0};
        lists[q].owned = true;
        status = merged_rows_make(p, s, q, &merged);
        s->report.rows_in += merged.count;
        if (status == WW_OK)
            status = score_rows(p, s, &merged, &lists[q].results);
        merged_rows_free(&merged);
    }
    return status;
}

/* ---- ranking ------------------------------------------------------------------------------------------------------------- */

ww_status results_with(const plan_run *p, ww_collection *home, uint32_t fetch, const ww_results *from, ww_results **made)
{
    const int64_t hits = results_hits(from), queries = from->query_count;
    ww_get get = {0};
    ww_results *got = NULL;
    int64_t *starts = NULL;
    picked_hit *picked = NULL;
    ww_hit_parts *parts = memory_alloc(((size_t)hits + 1) * sizeof *parts);
    const char **ids = memory_alloc(((size_t)hits + 1) * sizeof *ids);
    ww_status status =
        ids && parts ? get_rows(p, home, fetch, ids, &get) : memory_failed("hits of a plan", (size_t)hits * sizeof *parts);
    for (int64_t i = 0; status == WW_OK && i < hits; i++)
        ids[i] = from->ids[i] >= 0 ? from->text + from->ids[i] : "";
    get.count = hits;
    if (status == WW_OK)
        status = ww_collection_get(home, &get, &got);
    if (status == WW_OK)
        status = picked_create(queries, hits, &starts, &picked);
    int64_t count = 0;
    for (int64_t q = 0; status == WW_OK && q < queries; q++) {
        for (int64_t i = from->starts[q]; i < from->starts[q + 1]; i++) {
            if (got->rows[i] < 0)
                continue;
            parts[count] = from->parts ? from->parts[i] : (ww_hit_parts){0};
            picked[count++] = (picked_hit){got, i, from->scores[i]};
        }
        starts[q + 1] = count;
    }
    if (status == WW_OK)
        status = results_pick(&(picked_hits){queries, starts, picked}, made);
    if (status == WW_OK && from->parts)
        status = results_parts(*made);
    if (status == WW_OK && from->parts && count > 0)
        memcpy((*made)->parts, parts, (size_t)count * sizeof *parts);
    ww_results_destroy(got);
    memory_free(starts);
    memory_free(picked);
    memory_free(parts);
    memory_free(ids);
    return status;
}

static ww_status fuse_inputs(const plan_run *p, stage_run *s, ww_results **made)
{
    const ww_stage *stage = &s->stage;
    ww_fuse how = s->how.fuse;
    const ww_results **lists = memory_alloc_zeroed((size_t)stage->input_count, sizeof *lists);
    if (!lists)
        return memory_failed("lists to fuse", (size_t)stage->input_count * sizeof *lists);
    for (int64_t i = 0; i < stage->input_count; i++) {
        lists[i] = p->stages[stage->inputs[i]].results;
        s->report.rows_in += results_hits(lists[i]);
    }
    how.by_id = true;
    how.cancel = p->plan.cancel;
    how.limit =
        stage->limit > 0 ? min_i64(stage->limit, WW_ROWS_MAX) + min_i64(stage->offset, WW_ROWS_MAX) + stage->exclude_count : 0;
    const ww_status status = ww_results_fuse(lists, stage->input_count, &how, made);
    memory_free((void *)lists);
    return status;
}

ww_status stage_rank(const plan_run *p, stage_run *s, ww_results **made)
{
    if (s->stage.fuse)
        return fuse_inputs(p, s, made);
    const ww_results *input = p->stages[s->stage.inputs[0]].results;
    const uint32_t similarity = s->stage.diversity ? s->how.diversity.similarity : 0;
    const uint32_t fetch = s->stage.grouping ? WW_FETCH_PAYLOADS : similarity != 0 ? similarity : WW_FETCH_VECTORS;
    ww_results *whole = NULL;
    s->report.rows_in += results_hits(input);
    for (int64_t q = 0; s->stage.diversity && q < p->plan.question_count; q++)
        if (ww_results_count(input, q) > WW_DIVERSITY_MAX)
            return ww_fail(WW_OUT_OF_RANGE,
                           "ww_plan_run: stage %d: the diversity has %lld hits to choose from; the maximum is %d", s->number,
                           (long long)ww_results_count(input, q), WW_DIVERSITY_MAX);
    ww_status status = results_with(p, s->home, fetch, input, &whole);
    s->report.rows_gone += status == WW_OK ? results_hits(input) - results_hits(whole) : 0;
    if (status == WW_OK && s->stage.diversity) {
        ww_diversity how = s->how.diversity;
        how.limit = s->stage.limit > 0 && s->stage.exclude_count == 0 && !s->stage.has_threshold
                        ? min_i64(s->stage.limit, WW_ROWS_MAX) + min_i64(s->stage.offset, WW_ROWS_MAX)
                        : 0;
        status = ww_results_diversify(whole, &how, made);
    } else if (status == WW_OK) {
        status = ww_results_group(whole, &s->how.grouping, made);
    }
    ww_results_destroy(whole);
    return status;
}
