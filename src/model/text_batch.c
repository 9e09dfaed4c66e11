/* Tokenizing many texts. Threads get equal shares; their results are joined in the order of the texts, so that the number of
 * threads changes nothing.
 */
#include "model/text_batch.h"

#include <sched.h>
#include <string.h>

#include "base/integers.h"
#include "base/status.h"
#include "base/system/threads.h"
#include "base/text.h"

enum {
    TEXTS_ALONE = 256, /* up to this many texts a single thread is faster */
    THREADS_MAX = 8,
};

/* A thread's share of the texts. */
typedef struct share {
    text_batch *batch;
    size_t first, count;
    token_list tokens;
    int64_t cut;
    ww_status status;
    char message[512];
    pthread_t thread;
    bool started;
} share;

/* The tokens of the prompt and the text after it, as of one text. */
static ww_status encode_with_prompt(const text_batch *b, const char *text, size_t bytes, token_list *one)
{
    text_buffer whole = {0};
    if (b->prompt[0] == '\0')
        return tokenizer_encode(b->model->tokenizer, text, bytes, 0, one);
    ww_status status = text_buffer_add_text(&whole, b->prompt);
    if (status == WW_OK)
        status = text_buffer_add(&whole, text, bytes);
    if (status == WW_OK)
        status = tokenizer_encode(b->model->tokenizer, whole.text, whole.bytes, 0, one);
    text_buffer_free(&whole);
    return status;
}

/* Unknown words say nothing where no word sees another. A text without any known word is one unknown word, whose row is not
 * added. */
static ww_status drop_unknown(const tokenizer *t, token_list *list)
{
    const int32_t unknown = tokenizer_unknown(t);
    int64_t kept = 0;
    for (int64_t i = 0; i < list->count; i++)
        if (list->ids[i] != unknown)
            list->ids[kept++] = list->ids[i];
    list->count = kept;
    return kept == 0 && unknown >= 0 ? token_list_add(list, unknown) : WW_OK;
}

static ww_status encode_text(share *s, size_t number, token_list *one, size_t *first)
{
    const text_batch *b = s->batch;
    const char *text = b->texts[number];
    const size_t bytes = b->bytes ? b->bytes[number] : strlen(text);
    bool cut = false;
    ww_status status =
        b->pair ? pair_encode(b->pair, text, bytes, &(pair_tokens){one, first, &cut}) : encode_with_prompt(b, text, bytes, one);
    if (status == WW_OK && b->model->architecture->lookup)
        status = drop_unknown(b->model->tokenizer, one);
    if (status == WW_OK && !b->pair) {
        cut = one->count > b->model->context;
        tokenizer_truncate(b->model->tokenizer, 0, b->model->context, one);
    }
    s->cut += status == WW_OK && cut;
    if (status == WW_OK && one->count == 0)
        status = ww_fail(WW_INVALID_ARGUMENT, "%s: text %zu has no tokens", b->call, number);
    return status;
}

static ww_status append(token_list *to, const token_list *from)
{
    ww_status status = WW_OK;
    for (int64_t i = 0; i < from->count && status == WW_OK; i++)
        status = token_list_add(to, from->ids[i]);
    return status;
}

static void *encode_share(void *context)
{
    share *s = context;
    for (size_t i = s->first; i < s->first + s->count && s->status == WW_OK; i++) {
        token_list one = {0};
        size_t first = 0;
        s->status = encode_text(s, s->batch->first + i, &one, &first);
        if (s->status == WW_OK)
            s->status = append(&s->tokens, &one);
        s->batch->counts[i] = (size_t)one.count;
        if (s->batch->firsts)
            s->batch->firsts[i] = first;
        token_list_free(&one);
    }
    if (s->status != WW_OK)
        text_copy(s->message, sizeof s->message, ww_error_message());
    return NULL;
}

static size_t thread_count(size_t texts)
{
    cpu_set_t cores;
    const int here = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
    return texts <= TEXTS_ALONE ? 1 : min_size(min_size((size_t)here, THREADS_MAX), texts);
}

void text_batch_encode(text_batch *b)
{
    share shares[THREADS_MAX];
    const size_t count = thread_count(b->count);
    for (size_t i = 0; i < count; i++) {
        const size_t first = b->count * i / count;
        shares[i] = (share){.batch = b, .first = first, .count = b->count * (i + 1) / count - first};
        if (i > 0)
            shares[i].started = thread_start(&shares[i].thread, "ww-tokens", encode_share, &shares[i]) == 0;
    }
    b->tokens.count = 0;
    b->cut = 0;
    b->status = WW_OK;
    for (size_t i = 0; i < count; i++) {
        if (shares[i].started)
            pthread_join(shares[i].thread, NULL);
        else
            encode_share(&shares[i]);
        if (b->status == WW_OK && shares[i].status != WW_OK) { /* the first text that cannot be tokenized */
            b->status = shares[i].status;
            text_copy(b->message, sizeof b->message, shares[i].message);
        }
        b->cut += shares[i].cut;
        if (b->status == WW_OK)
            b->status = append(&b->tokens, &shares[i].tokens);
        if (b->status != WW_OK && shares[i].status == WW_OK && b->message[0] == '\0')
            text_copy(b->message, sizeof b->message, ww_error_message());
        token_list_free(&shares[i].tokens);
    }
}

static void *run(void *context)
{
    text_batch_encode(context);
    return NULL;
}

void text_batch_start(text_batch_thread *t, text_batch *b)
{
    t->batch = b;
    t->started = b->count > TEXTS_ALONE && thread_start(&t->thread, "ww-tokens", run, b) == 0;
    if (!t->started)
        text_batch_encode(b);
}

void text_batch_join(text_batch_thread *t)
{
    if (t->started)
        pthread_join(t->thread, NULL);
    t->started = false;
}

ww_status text_batch_status(const text_batch *b)
{
    return b->status == WW_OK ? WW_OK : ww_fail(b->status, "%s", b->message);
}
