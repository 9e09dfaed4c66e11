/* Queries and texts as pairs of tokens. */
#include "model/pair.h"

#include <string.h>

#include "base/integers.h"
#include "base/memory.h"
#include "model/tokenizer/unicode.h"

/* Qwen3-Reranker's own template, for files without one. */
static const char RERANK_TEMPLATE[] =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. Note "
    "that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n<Instruct>: Given a web search query, "
    "retrieve "
    "relevant passages that answer the query\n<Query>: {query}\n<Document>: {document}<|im_end|>\n<|im_start|>assistant\n"
    "<think>\n\n</think>\n\n";
static const char QUERY_MARK[] = "{query}", DOCUMENT_MARK[] = "{document}";

bool pair_has_types(const pair_query *pair)
{
    return pair && pair->model->weights.token_types && strcmp(tokenizer_model(pair->model->tokenizer), "bert") == 0;
}

void pair_query_free(pair_query *pair)
{
    token_list_free(&pair->query);
    token_list_free(&pair->after);
    text_buffer_free(&pair->before);
    *pair = (pair_query){0};
}

static ww_status add_all(token_list *to, const int32_t *ids, int64_t count)
{
    ww_status status = WW_OK;
    for (int64_t i = 0; i < count && status == WW_OK; i++)
        status = token_list_add(to, ids[i]);
    return status;
}

/* ---- a decoder's template ------------------------------------------------------------------------------------------------ */

/* Splits the template at its two marks; the query must come first. */
static ww_status fill_template(const char *template, const char *query, pair_query *pair)
{
    const char *at = strstr(template, QUERY_MARK);
    const char *document = at ? strstr(at, DOCUMENT_MARK) : NULL;
    if (!document)
        return ww_fail(WW_UNSUPPORTED, "the model's template for reranking has no %s followed by %s", QUERY_MARK,
                       DOCUMENT_MARK);
    const char *behind = at + strlen(QUERY_MARK), *rest = document + strlen(DOCUMENT_MARK);
    ww_status status = text_buffer_add(&pair->before, template, (size_t)(at - template));
    pair->quoted.from = pair->before.bytes;
    if (status == WW_OK)
        status = unicode_repair(query, strlen(query), &pair->before);
    pair->quoted.to = pair->before.bytes;
    if (status == WW_OK && pair->model->rerank_apart) {
        const quoted_text first = {
            .text = pair->before.text, .bytes = pair->before.bytes, .quotes = &pair->quoted, .quote_count = 1};
        status = tokenizer_encode_quotes(pair->model->tokenizer, &first, &pair->query);
        pair->before.bytes = 0;
        pair->quoted = (text_span){0, 0};
    }
    if (status == WW_OK)
        status = text_buffer_add(&pair->before, behind, (size_t)(document - behind));
    if (status == WW_OK)
        status = tokenizer_encode(pair->model->tokenizer, rest, strlen(rest), TOKENIZE_NO_ADD, &pair->after);
    return status;
}

static ww_status encode_in_template(const pair_query *pair, const char *text, size_t bytes, const pair_tokens *to)
{
    token_list *out = to->list;
    const tokenizer *t = pair->model->tokenizer;
    text_buffer all = {0};
    ww_status status = add_all(out, pair->query.ids, pair->query.count);
    if (status == WW_OK)
        status = text_buffer_add(&all, pair->before.text, pair->before.bytes);
    if (status == WW_OK)
        status = unicode_repair(text, bytes, &all);
    const text_span quotes[] = {pair->quoted, {pair->before.bytes, all.bytes}};
    const quoted_text whole = {.text = all.text, .bytes = all.bytes, .quotes = quotes, .quote_count = 2};
    if (status == WW_OK)
        status = tokenizer_encode_quotes(t, &whole, out);
    text_buffer_free(&all);
    if (status != WW_OK)
        return status;
    if (pair->after.count >= pair->model->context)
        return ww_fail(WW_OUT_OF_RANGE, "a context of %lld tokens is too small for a query", (long long)pair->model->context);
    *to->cut = out->count > pair->model->context - pair->after.count;
    out->count = min_i64(out->count, pair->model->context - pair->after.count);
    *to->first = (size_t)out->count;
    for (int64_t i = 0; i < pair->after.count && status == WW_OK; i++)
        status = token_list_add(out, pair->after.ids[i]);
    return status;
}

/* ---- an encoder's tokens ------------------------------------------------------------------------------------------------- */

ww_status pair_query_make(const ww_model *model, const char *query, pair_query *out)
{
    pair_query made = {.model = model};
    ww_status status;
    if (model->architecture->kind == WW_MODEL_DECODER) {
        status = fill_template(model->rerank_template ? model->rerank_template : RERANK_TEMPLATE, query, &made);
    } else {
        made.between_count = tokenizer_between(model->tokenizer, made.between);
        status = tokenizer_encode(model->tokenizer, query, strlen(query), TOKENIZE_NO_ADD | TOKENIZE_PLAIN, &made.query);
    }
    if (status == WW_OK)
        *out = made;
    else
        pair_query_free(&made);
    return status;
}

/* Truncates the longer one to the length of the other, then both equally. Returns false if both fit. */
static bool cut_pair(int64_t room, int64_t *query, int64_t *text)
{
    const int64_t half = room / 2;
    if (*query + *text <= room)
        return false;
    if (*query <= half)
        *text = room - *query;
    else if (*text <= room - half)
        *query = room - *text;
    else
        *query = half, *text = room - half;
    return true;
}

ww_status pair_encode(const pair_query *pair, const char *text, size_t bytes, const pair_tokens *to)
{
    token_list *out = to->list;
    const tokenizer *t = pair->model->tokenizer;
    token_list second = {0};
    if (pair->model->architecture->kind == WW_MODEL_DECODER)
        return encode_in_template(pair, text, bytes, to);
    const int32_t bos = tokenizer_bos(t), eos = tokenizer_eos(t);
    const int64_t added = (bos >= 0) + (int64_t)pair->between_count + (eos >= 0), room = pair->model->context - added;
    ww_status status = tokenizer_encode(t, text ? text : "", bytes, TOKENIZE_NO_ADD | TOKENIZE_PLAIN, &second);
    int64_t query_count = pair->query.count, text_count = second.count;
    if (status == WW_OK && room < 2)
        status = ww_fail(WW_OUT_OF_RANGE, "a context of %lld tokens is too small for a query and a text",
                         (long long)pair->model->context);
    *to->cut = cut_pair(room, &query_count, &text_count);
    if (status == WW_OK && bos >= 0)
        status = token_list_add(out, bos);
    if (status == WW_OK)
        status = add_all(out, pair->query.ids, query_count);
    if (status == WW_OK)
        status = add_all(out, pair->between, (int64_t)pair->between_count);
    *to->first = (size_t)out->count;
    if (status == WW_OK)
        status = add_all(out, second.ids, text_count);
    if (status == WW_OK && eos >= 0)
        status = token_list_add(out, eos);
    token_list_free(&second);
    return status;
}
