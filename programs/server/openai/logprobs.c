/* Log probabilities of tokens: over the whole vocabulary at temperature 1, whatever sampling the request asked for. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "server/openai/generation.h"

void logprobs_free(logprob_lists *lists)
{
    out_free(&lists->content);
    out_free(&lists->tokens);
    out_free(&lists->values);
    out_free(&lists->tops);
    out_free(&lists->offsets);
}

/* The token's text as JSON: "fox". */
static ww_status put_token(out *o, const generation *g, int32_t token)
{
    const char *bytes = NULL;
    size_t count = 0;
    const ww_status status = ww_tokenizer_piece(ww_model_tokenizer(g->answer->model->model), token, &bytes, &count);
    out_quoted(o, status == WW_OK ? bytes : "", count);
    return status;
}

/* "token": "fox", "logprob": -0.5, "bytes": [102, 111, 120] */
static ww_status put_entry(out *o, const generation *g, int32_t token, float logprob)
{
    const char *bytes = NULL;
    size_t count = 0;
    ww_status status = ww_tokenizer_piece(ww_model_tokenizer(g->answer->model->model), token, &bytes, &count);
    out_text(o, "\"token\":");
    out_quoted(o, status == WW_OK ? bytes : "", count);
    out_text(o, ",\"logprob\":");
    out_float(o, logprob);
    out_text(o, ",\"bytes\":[");
    for (size_t i = 0; i < count; i++)
        out_format(o, "%s%u", i > 0 ? "," : "", (unsigned char)bytes[i]);
    out_text(o, "]");
    return status;
}

/* Finds the `count` most probable tokens, on ties the smaller one first. Returns how many there are. */
static int32_t find_top(const float *logits, int64_t vocabulary, int32_t *top, int32_t count)
{
    int32_t found = 0;
    for (int64_t i = 0; i < vocabulary && count > 0; i++) {
        if (found == count && !(logits[i] > logits[top[count - 1]]))
            continue;
        int32_t at = found < count ? found++ : count - 1;
        for (; at > 0 && logits[i] > logits[top[at - 1]]; at--)
            top[at] = top[at - 1];
        top[at] = (int32_t)i;
    }
    return found;
}

/* The logarithm of the sum of the exponentials. */
static double log_sum(const float *logits, int64_t vocabulary)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < vocabulary; i++)
        largest = (double)logits[i] > largest ? (double)logits[i] : largest;
    for (int64_t i = 0; i < vocabulary; i++)
        sum += exp((double)logits[i] - largest);
    return largest + log(sum);
}

/* One element of "content". */
static ww_status add_content(generation *g, int32_t token, const float *logits, double whole)
{
    out *o = &g->logprobs.content;
    int32_t top[TOP_LOGPROBS_MAX] = {0};
    const int32_t count = find_top(logits, g->answer->model->info.vocabulary, top, g->answer->plan->top_logprobs);
    out_text(o, g->logprobs.begun ? ",{" : "{");
    ww_status status = put_entry(o, g, token, (float)((double)logits[token] - whole));
    out_text(o, ",\"top_logprobs\":[");
    for (int32_t i = 0; status == WW_OK && i < count; i++) {
        out_text(o, i > 0 ? ",{" : "{");
        status = put_entry(o, g, top[i], (float)((double)logits[top[i]] - whole));
        out_text(o, "}");
    }
    out_text(o, "]}");
    return status;
}

/* One element of each list of a completion. */
static ww_status add_columns(generation *g, int32_t token, const float *logits, double whole)
{
    logprob_lists *l = &g->logprobs;
    const char *comma = l->begun ? "," : "";
    int32_t top[TOP_LOGPROBS_MAX] = {0};
    const int32_t count = find_top(logits, g->answer->model->info.vocabulary, top, g->answer->plan->top_logprobs);
    out_text(&l->tokens, comma);
    out_text(&l->values, comma);
    out_text(&l->tops, l->begun ? ",{" : "{");
    out_format(&l->offsets, "%s%zu", comma, g->text.length);
    ww_status status = put_token(&l->tokens, g, token);
    out_float(&l->values, (float)((double)logits[token] - whole));
    for (int32_t i = 0; status == WW_OK && i < count; i++) {
        out_text(&l->tops, i > 0 ? "," : "");
        status = put_token(&l->tops, g, top[i]);
        out_text(&l->tops, ":");
        out_float(&l->tops, (float)((double)logits[top[i]] - whole));
    }
    out_text(&l->tops, "}");
    return status;
}

ww_status logprobs_add(generation *g, int32_t token)
{
    const int64_t vocabulary = g->answer->model->info.vocabulary;
    float *logits = memory_alloc((size_t)vocabulary * sizeof *logits);
    ww_status status =
        logits ? ww_session_logits(g->session, logits) : memory_failed("logits", (size_t)vocabulary * sizeof *logits);
    if (status == WW_OK)
        status = (g->answer->plan->chat ? add_content : add_columns)(g, token, logits, log_sum(logits, vocabulary));
    g->logprobs.begun = true;
    memory_free(logits);
    return status;
}

static void put_list(out *o, const char *name, out *list)
{
    out_format(o, "\"%s\":[", name);
    if (list->length > 0)
        out_bytes(o, list->bytes, list->length);
    out_text(o, "]");
    o->failed = o->failed || list->failed;
    list->length = 0;
}

void logprobs_put(out *o, generation *g)
{
    logprob_lists *l = &g->logprobs;
    if (!g->answer->plan->logprobs || !l->begun) {
        out_text(o, ",\"logprobs\":null");
        return;
    }
    out_text(o, ",\"logprobs\":{");
    if (g->answer->plan->chat) {
        put_list(o, "content", &l->content);
        out_text(o, ",\"refusal\":null");
    } else {
        put_list(o, "tokens", &l->tokens);
        out_text(o, ",");
        put_list(o, "token_logprobs", &l->values);
        out_text(o, ",");
        put_list(o, "top_logprobs", &l->tops);
        out_text(o, ",");
        put_list(o, "text_offset", &l->offsets);
    }
    out_text(o, "}");
    l->begun = false;
}
