/* /v1/embeddings: the model embeds the texts and tokens of all waiting requests together. */
#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/openai/openai.h"
#include "server/work/documents.h"

typedef struct embedding_plan {
    embedding_inputs inputs;
    bool base64;
    bool bare;          /* the answer is only the list of vectors, as in TEI's API */
    const char *prompt; /* before each text; the model's */
    size_t cut;         /* texts that are longer than the context */
    int32_t dimensions;
} embedding_plan;

static void plan_free(void *plan)
{
    embedding_plan *p = plan;
    embedding_inputs_free(&p->inputs);
    memory_free(p);
}

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

enum { INPUTS_MAX = 1 << 16 }; /* texts of a request, or tokens of one text */

/* Puts the prompt before a text, which it frees. Returns NULL if there is not enough memory. */
static char *with_prompt(const char *prompt, char *text)
{
    const size_t before = strlen(prompt), bytes = strlen(text) + 1;
    char *both = memory_alloc(before + bytes);
    if (both) {
        memcpy(both, prompt, before);
        memcpy(both + before, text, bytes);
    }
    memory_free(text);
    return both;
}

static bool add_text(request *r, const char *value, const served_model *m, embedding_plan *plan)
{
    embedding_inputs *p = &plan->inputs;
    char *text = request_copy_text(r, value, "input");
    if (!text)
        return false;
    const bool empty = text[0] == '\0';
    if (!empty && plan->prompt[0] && !(text = with_prompt(plan->prompt, text)))
        return request_fail_status(r, memory_failed("a text", strlen(plan->prompt)));
    p->texts[p->count] = text;
    p->bytes[p->count++] = strlen(text);
    size_t tokens = 0;
    const ww_status status = ww_model_tokenize(m->model, text, strlen(text), 0, NULL, 0, &tokens);
    if (status != WW_OK)
        return request_fail_status(r, status);
    plan->cut += tokens > (size_t)m->info.context;
    p->token_count += tokens < (size_t)m->info.context ? tokens : (size_t)m->info.context;
    return !empty ? true : request_fail(r, 400, "input: a text is empty");
}

static bool add_tokens(request *r, const char *list, const served_model *m, embedding_inputs *p)
{
    size_t count = 0;
    for (const char *at = json_type_of(list) == JSON_LIST ? json_first(list) : NULL; at; at = json_next(at), count++) {
        const json_number number = json_type_of(at) == JSON_NUMBER ? json_number_of(at) : (json_number){0};
        if (!number.is_integer || number.integer < 0 || number.integer >= m->info.vocabulary)
            return request_fail(r, 400, "input: a token is an integer from 0 to %lld", (long long)m->info.vocabulary - 1);
        p->tokens[p->token_count++] = (int32_t)number.integer;
    }
    if (count == 0 || count > (size_t)m->info.context)
        return request_fail(r, 400, "input: %zu tokens; it must be 1 to %lld", count, (long long)m->info.context);
    p->counts[p->count++] = count;
    return true;
}

/* Reads a text, a list of texts, a list of tokens, or a list of lists of tokens. */
static bool read_input(request *r, const char *input, const served_model *m, embedding_plan *plan)
{
    embedding_inputs *p = &plan->inputs;
    const bool list = input && json_type_of(input) == JSON_LIST;
    const char *first = list ? json_first(input) : input;
    if (!first)
        return request_fail(r, 400, "input: a text, or a list of texts or tokens, is needed");
    const bool texts = json_type_of(first) == JSON_TEXT, flat = list && json_type_of(first) == JSON_NUMBER;
    size_t count = 1;
    for (const char *at = list ? json_first(input) : NULL; at; at = json_next(at))
        count++;
    if (count > INPUTS_MAX)
        return request_fail(r, 400, "input: %zu of them; the maximum is %d", count - 1, INPUTS_MAX);
    const size_t room = (size_t)(json_end(input) - input); /* a token takes at least a byte of text */
    if (texts) {
        p->texts = memory_alloc_zeroed(count, sizeof *p->texts);
        p->bytes = memory_alloc_zeroed(count, sizeof *p->bytes);
    } else {
        p->tokens = memory_alloc(room * sizeof *p->tokens);
        p->counts = memory_alloc_zeroed(count, sizeof *p->counts);
    }
    if (texts ? !p->texts || !p->bytes : !p->tokens || !p->counts)
        return request_fail_status(r, memory_failed("texts", room));
    if (!list || flat)
        return texts ? add_text(r, input, m, plan) : add_tokens(r, input, m, p);
    for (const char *at = json_first(input); at; at = json_next(at))
        if (!(texts ? add_text(r, at, m, plan) : add_tokens(r, at, m, p)))
            return false;
    return true;
}

static embedding_plan *plan_create(request *r, const char *body, const served_model *m)
{
    int64_t dimensions = m->info.width;
    if (!request_read_integer(r, body, "dimensions", 1, &dimensions))
        return NULL;
    if (dimensions > m->info.width) {
        request_fail(r, 400, "dimensions: is %lld; this model has %d", (long long)dimensions, (int)m->info.width);
        return NULL;
    }
    const char *name = json_given(body, "prompt_name");
    char *copy = name ? request_copy_text(r, name, "prompt_name") : NULL;
    if (name && !copy)
        return NULL;
    embedding_plan *p = request_plan_create(r, sizeof *p, plan_free);
    const ww_status status = p ? ww_model_prompt(m->model, copy, &p->prompt) : WW_OK;
    memory_free(copy);
    if (status != WW_OK) {
        request_fail(r, 400, "prompt_name: %s", ww_error_message());
        return NULL;
    }
    if (p)
        p->dimensions = (int32_t)dimensions;
    return p;
}

bool prepare_embeddings(request *r)
{
    const char *body = request_body(r);
    const served_model *m = body ? model_of_request(r, body, TASK_EMBED) : NULL;
    embedding_plan *p = m ? plan_create(r, body, m) : NULL;
    if (!p)
        return false;
    const char *format = json_given(body, "encoding_format");
    p->base64 = format && json_type_of(format) == JSON_TEXT && json_text_is(format, "base64", 6);
    if (format && !p->base64 && (json_type_of(format) != JSON_TEXT || !json_text_is(format, "float", 5)))
        return request_fail(r, 400, "encoding_format: float or base64 is needed");
    return read_input(r, json_given(body, "input"), m, p);
}

bool prepare_embed(request *r)
{
    const char *body = request_body(r);
    const served_model *m = body ? model_for_task(r, body, TASK_EMBED) : NULL;
    embedding_plan *p = m ? plan_create(r, body, m) : NULL;
    bool normalize = true, truncate = true;
    if (!p || !request_read_bool(r, body, "normalize", &normalize) || !request_read_bool(r, body, "truncate", &truncate))
        return false;
    p->bare = true;
    if (!normalize)
        return request_fail(r, 400, "normalize: vectors always have length 1 here");
    if (!read_input(r, json_given(body, "inputs"), m, p))
        return false;
    return truncate || p->cut == 0
               ? true
               : request_fail(r, 413, "inputs: %zu of %zu texts have more than %lld tokens, and truncate is false", p->cut,
                              p->inputs.count, (long long)m->info.context);
}

/* ---- answering ----------------------------------------------------------------------------------------------------------- */

static void put_base64(out *o, const unsigned char *bytes, size_t count)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    out_bytes(o, "\"", 1);
    for (size_t i = 0; i < count; i += 3) {
        const size_t left = count - i;
        const uint32_t word =
            (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) | (left > 2 ? bytes[i + 2] : 0);
        const char text[4] = {letters[word >> 18], letters[word >> 12 & 63], left > 1 ? letters[word >> 6 & 63] : '=',
                              left > 2 ? letters[word & 63] : '='};
        out_bytes(o, text, 4);
    }
    out_bytes(o, "\"", 1);
}

/* [[...], ...] */
static void answer_bare(request *r, const float *vectors, size_t count, size_t width)
{
    r->status = 200;
    out_text(&r->answer, "[");
    for (size_t i = 0; i < count; i++) {
        out_text(&r->answer, i > 0 ? "," : "");
        out_floats(&r->answer, vectors + i * width, (int64_t)width);
    }
    out_text(&r->answer, "]");
}

static void answer(request *r, const served_model *m, float *vectors)
{
    const embedding_plan *plan = r->plan;
    const embedding_inputs *p = &plan->inputs;
    const size_t width = (size_t)plan->dimensions;
    const ww_status status =
        plan->dimensions == m->info.width ? WW_OK : ww_embeddings_shorten(vectors, p->count, m->info.width, plan->dimensions);
    if (status != WW_OK) {
        request_fail_status(r, status);
        return;
    }
    if (plan->bare) {
        answer_bare(r, vectors, p->count, width);
        return;
    }
    r->status = 200;
    out_text(&r->answer, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < p->count; i++) {
        out_format(&r->answer, "%s{\"object\":\"embedding\",\"index\":%zu,\"embedding\":", i > 0 ? "," : "", i);
        if (plan->base64) /* little-endian floats, as on every machine that this runs on */
            put_base64(&r->answer, (const unsigned char *)(vectors + i * width), width * sizeof(float));
        else
            out_floats(&r->answer, vectors + i * width, (int64_t)width);
        out_text(&r->answer, "}");
    }
    out_text(&r->answer, "],\"model\":");
    out_quoted(&r->answer, m->name, strlen(m->name));
    out_format(&r->answer, ",\"usage\":{\"prompt_tokens\":%zu,\"total_tokens\":%zu,\"texts_cut\":%zu}}", p->token_count,
               p->token_count, plan->cut);
}

/* ---- computing ----------------------------------------------------------------------------------------------------------- */

/* The inputs of one kind, texts or tokens, of all requests. */
typedef struct inputs {
    const char **texts;
    size_t *bytes, *counts;
    int32_t *tokens;
    size_t count, token_count;
} inputs;

static void add_inputs(inputs *all, const embedding_inputs *p)
{
    for (size_t i = 0; i < p->count; i++) {
        if (p->texts) {
            all->texts[all->count] = p->texts[i];
            all->bytes[all->count] = p->bytes[i];
        } else {
            all->counts[all->count] = p->counts[i];
        }
        all->count++;
    }
    if (p->tokens)
        memcpy(all->tokens + all->token_count, p->tokens, p->token_count * sizeof *p->tokens);
    all->token_count += p->tokens ? p->token_count : 0;
}

/* What a request wants embedded. */
static const embedding_inputs *inputs_of(const request *r)
{
    return r->documents ? &r->documents->inputs : &((const embedding_plan *)r->plan)->inputs;
}

/* Cancels an embedding whose clients have all left: their answers are for nobody. */
static int all_have_left(int64_t done, int64_t total, void *user)
{
    (void)done;
    (void)total;
    for (const request *r = user; r; r = r->next)
        if (!atomic_load(&r->gone))
            return 0;
    return 1;
}

/* Embeds lists of tokens, some at a time, so that clients that leave are noticed. */
static ww_status embed_tokens(served_model *m, const inputs *all, request *list, float *vectors)
{
    enum { AT_ONCE = 16 };
    const int32_t *tokens = all->tokens;
    ww_status status = WW_OK;
    for (size_t first = 0, count; status == WW_OK && first < all->count; first += count) {
        count = all->count - first < AT_ONCE ? all->count - first : AT_ONCE;
        status = all_have_left(0, 0, list) ? ww_fail(WW_CANCELLED, "the clients have left, or their deadlines have passed")
                                           : ww_model_embed_tokens(m->model, tokens, all->counts + first, count,
                                                                   vectors + first * (size_t)m->info.width);
        for (size_t i = first; i < first + count; i++)
            tokens += all->counts[i];
    }
    return status;
}

/* Embeds the texts, or the tokens, of the requests. */
static ww_status embed(served_model *m, request *list, bool texts, float **vectors)
{
    inputs all = {0};
    for (const request *r = list; r; r = r->next) {
        const embedding_inputs *p = inputs_of(r);
        all.count += (p->texts != NULL) == texts ? p->count : 0;
        all.token_count += !texts && p->tokens ? p->token_count : 0;
    }
    *vectors = memory_alloc((all.count * (size_t)m->info.width + 1) * sizeof **vectors);
    all.texts = memory_alloc((all.count + 1) * sizeof *all.texts);
    all.bytes = memory_alloc((all.count + 1) * sizeof *all.bytes);
    all.counts = memory_alloc((all.count + 1) * sizeof *all.counts);
    all.tokens = memory_alloc((all.token_count + 1) * sizeof *all.tokens);
    ww_status status = WW_OK;
    if (!*vectors || !all.texts || !all.bytes || !all.counts || !all.tokens)
        status = memory_failed("texts to embed", all.count * (size_t)m->info.width * sizeof **vectors);
    all.count = all.token_count = 0;
    for (const request *r = list; status == WW_OK && r; r = r->next)
        if ((inputs_of(r)->texts != NULL) == texts)
            add_inputs(&all, inputs_of(r));
    ww_embedding how = ww_embedding_default();
    how.prompt = ""; /* the texts have theirs */
    how.progress = all_have_left;
    how.progress_user = list;
    if (status == WW_OK && all.count > 0)
        status = texts ? ww_model_embed(m->model, all.texts, all.bytes, all.count, &how, *vectors)
                       : embed_tokens(m, &all, list, *vectors);
    memory_free(all.texts);
    memory_free(all.bytes);
    memory_free(all.counts);
    memory_free(all.tokens);
    return status;
}

/* Copies the vectors of documents to their places, and sends the request on to its collection. */
static void send_on(request *r, const served_model *m, const float *vectors)
{
    documents *d = r->documents;
    const size_t width = (size_t)m->info.width;
    documents_count_cut(d);
    for (size_t i = 0; i < d->inputs.count; i++)
        memcpy(*d->places[i].base + d->places[i].offset, vectors + i * width, width * sizeof *vectors);
    queue_submit(collection_queue(r), r);
}

bool embeddings_run(queue *q, request *taken)
{
    served_model *m = q->owner;
    taken = reranks_run(m, taken);
    float *vectors[2] = {NULL, NULL};
    float *next_vector[2];
    ww_status status[2];
    for (int texts = 0; texts < 2; texts++) {
        status[texts] = embed(m, taken, texts != 0, &vectors[texts]);
        next_vector[texts] = vectors[texts];
    }
    for (request *r = taken, *next; r; r = next) {
        const embedding_inputs *p = inputs_of(r);
        const int texts = p->texts != NULL;
        float *own = next_vector[texts];
        next = r->next;
        if (own)
            next_vector[texts] += p->count * (size_t)m->info.width;
        atomic_fetch_add(&q->server->metrics.tokens_read, (long long)p->token_count);
        const bool embedded = status[texts] == WW_OK && own;
        if (embedded && r->documents) {
            send_on(r, m, own);
            continue;
        }
        if (embedded)
            answer(r, m, own);
        else
            request_fail_status(r, status[texts]);
        request_done(r);
    }
    memory_free(vectors[0]);
    memory_free(vectors[1]);
    return false;
}
