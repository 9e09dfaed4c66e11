/* Reranking: /v1/rerank as in Cohere's and Jina's APIs, and TEI's /rerank. A request has one query and is one library call.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/openai/openai.h"

typedef struct rerank_plan {
    char *query;
    char **texts;
    size_t count;
    int64_t top;    /* results in the answer */
    bool tei, raw;  /* raw: the model's own scores, not probabilities */
    bool with_text; /* the answer has the texts */
} rerank_plan;

static void plan_free(void *plan)
{
    rerank_plan *p = plan;
    for (size_t i = 0; i < p->count; i++)
        memory_free(p->texts[i]);
    memory_free(p->texts);
    memory_free(p->query);
    memory_free(p);
}

enum { TEXTS_MAX = 1 << 16 };

/* A list of texts, or of {"text": ...}. */
static bool read_texts(request *r, const char *list, const char *what, rerank_plan *p)
{
    size_t count = 0;
    if (!list || json_type_of(list) != JSON_LIST || !json_first(list))
        return request_fail(r, 400, "%s: a list of texts is needed", what);
    for (const char *at = json_first(list); at; at = json_next(at))
        count++;
    if (count > TEXTS_MAX)
        return request_fail(r, 400, "%s: %zu of them; the maximum is %d", what, count, TEXTS_MAX);
    p->texts = memory_alloc_zeroed(count, sizeof *p->texts);
    if (!p->texts)
        return request_fail_status(r, memory_failed("texts", count * sizeof *p->texts));
    for (const char *at = json_first(list); at; at = json_next(at)) {
        const char *text = json_type_of(at) == JSON_OBJECT ? json_given(at, "text") : at;
        p->texts[p->count] = request_copy_text(r, text, what);
        if (!p->texts[p->count++])
            return false;
    }
    return true;
}

static rerank_plan *plan_create(request *r, const char *body, const char *texts)
{
    rerank_plan *p = request_plan_create(r, sizeof *p, plan_free);
    if (!p)
        return NULL;
    p->top = INT64_MAX;
    p->query = request_copy_text(r, json_given(body, "query"), "query");
    return p->query && read_texts(r, json_given(body, texts), texts, p) ? p : NULL;
}

bool prepare_rerank(request *r)
{
    const char *body = request_body(r);
    rerank_plan *p = body && model_of_request(r, body, TASK_RERANK) ? plan_create(r, body, "documents") : NULL;
    return p && request_read_integer(r, body, "top_n", 1, &p->top) &&
           request_read_bool(r, body, "return_documents", &p->with_text);
}

bool prepare_rerank_tei(request *r)
{
    const char *body = request_body(r);
    rerank_plan *p = body && model_for_task(r, body, TASK_RERANK) ? plan_create(r, body, "texts") : NULL;
    bool truncate = true;
    if (!p)
        return false;
    p->tei = true;
    if (!request_read_bool(r, body, "raw_scores", &p->raw) || !request_read_bool(r, body, "return_text", &p->with_text) ||
        !request_read_bool(r, body, "truncate", &truncate))
        return false;
    return truncate ? true : request_fail(r, 400, "truncate: texts that are too long are always cut here; leave it out");
}

typedef struct ranked {
    size_t number;
    float score;
} ranked;

static int compare_ranked(const void *first, const void *second)
{
    const ranked *a = first, *b = second;
    if (a->score != b->score)
        return (a->score < b->score) - (a->score > b->score);
    return (a->number > b->number) - (a->number < b->number);
}

static void put_results(request *r, const rerank_plan *p, const ranked *order)
{
    out *o = &r->answer;
    out_text(o, "[");
    for (size_t i = 0; i < p->count && (int64_t)i < p->top; i++) {
        const char *text = p->texts[order[i].number];
        const float score = p->raw ? order[i].score : (float)(1 / (1 + exp(-(double)order[i].score)));
        out_format(o, "%s{\"index\":%zu,\"%s\":", i > 0 ? "," : "", order[i].number, p->tei ? "score" : "relevance_score");
        out_float(o, score);
        if (p->with_text) {
            out_text(o, p->tei ? ",\"text\":" : ",\"document\":{\"text\":");
            out_quoted(o, text, strlen(text));
            out_text(o, p->tei ? "" : "}");
        }
        out_text(o, "}");
    }
    out_text(o, "]");
}

static void answer(request *r, const served_model *m, const ranked *order)
{
    const rerank_plan *p = r->plan;
    out *o = &r->answer;
    size_t tokens = 0;
    r->status = 200;
    if (p->tei) {
        put_results(r, p, order);
        return;
    }
    size_t query = 0;
    (void)ww_model_tokenize(m->model, p->query, strlen(p->query), WW_TOKENS_NO_ADD, NULL, 0, &query);
    for (size_t i = 0; i < p->count; i++) {
        size_t text = 0;
        (void)ww_model_tokenize(m->model, p->texts[i], strlen(p->texts[i]), WW_TOKENS_NO_ADD, NULL, 0, &text);
        tokens += query + text;
    }
    out_text(o, "{\"model\":");
    out_quoted(o, m->name, strlen(m->name));
    out_text(o, ",\"results\":");
    put_results(r, p, order);
    out_format(o, ",\"usage\":{\"prompt_tokens\":%zu,\"total_tokens\":%zu}}", tokens, tokens);
}

/* Cancels the work for a client that has left. */
static int has_left(int64_t done, int64_t total, void *user)
{
    (void)done;
    (void)total;
    return atomic_load(&((const request *)user)->gone);
}

static void rerank(served_model *m, request *r)
{
    const rerank_plan *p = r->plan;
    float *scores = memory_alloc(p->count * sizeof *scores);
    ranked *order = memory_alloc(p->count * sizeof *order);
    ww_status status = !scores || !order ? memory_failed("scores", p->count * sizeof *order)
                                         : ww_model_rerank(m->model, p->query, (const char *const *)p->texts, NULL, p->count,
                                                           scores, has_left, r);
    if (status == WW_OK) {
        for (size_t i = 0; i < p->count; i++)
            order[i] = (ranked){i, scores[i]};
        qsort(order, p->count, sizeof *order, compare_ranked);
        answer(r, m, order);
    } else {
        request_fail_status(r, status);
    }
    memory_free(scores);
    memory_free(order);
    request_done(r);
}

request *reranks_run(served_model *m, request *taken)
{
    request *others = NULL, **end = &others;
    for (request *r = taken, *next; r; r = next) {
        next = r->next;
        r->next = NULL;
        if (r->plan_free == plan_free) {
            rerank(m, r);
            continue;
        }
        *end = r;
        end = &r->next;
    }
    return others;
}
