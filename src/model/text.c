/* Text and tokens: the public calls around the tokenizer. */
#include <string.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "model/chat.h"
#include "model/model.h"

static ww_status check_tokenizer(const ww_model *model, const char *call)
{
    const ww_status status = model_check(model, call);
    if (status == WW_OK && !model->tokenizer)
        return ww_fail(WW_UNSUPPORTED, "%s: the model has no tokenizer", call);
    return status;
}

/* Copies a token list to the caller's memory. */
static ww_status give_tokens(const char *call, const token_list *list, int32_t *ids, size_t capacity, size_t *count)
{
    *count = (size_t)list->count;
    if (ids && (size_t)list->count > capacity)
        return ww_fail(WW_OUT_OF_RANGE, "%s: the text has %lld tokens; there is room for %zu", call, (long long)list->count,
                       capacity);
    if (ids && list->count > 0)
        memcpy(ids, list->ids, (size_t)list->count * sizeof *ids);
    return WW_OK;
}

typedef struct plain_text {
    const char *text;
    size_t bytes;
} plain_text;

/* What tokens are written to. */
typedef struct token_room {
    int32_t *ids;
    size_t capacity;
    size_t *count;
} token_room;

static ww_status check_room(const char *call, const token_room *room)
{
    return (!room->ids && room->capacity > 0) || !room->count
               ? ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", call, room->count ? "ids" : "count")
               : WW_OK;
}

/* Gives what was read, if it was, and frees it. */
static ww_status end_tokens(const char *call, ww_status status, token_list *list, const token_room *room)
{
    if (status == WW_OK)
        status = give_tokens(call, list, room->ids, room->capacity, room->count);
    token_list_free(list);
    return status;
}

static ww_status encode(const char *call, const tokenizer *t, plain_text text, uint32_t flags, token_room room)
{
    token_list list = {0};
    ww_status status =
        !text.text && text.bytes > 0 ? ww_fail(WW_INVALID_ARGUMENT, "%s: text is NULL", call) : check_room(call, &room);
    if (status == WW_OK && flags & ~(uint32_t)(WW_TOKENS_PLAIN | WW_TOKENS_NO_ADD))
        status = ww_fail(WW_INVALID_ARGUMENT, "%s: flags is %u; it must be 0 to 3", call, (unsigned)flags);
    if (status == WW_OK)
        status = tokenizer_encode(t, text.text ? text.text : "", text.bytes, flags, &list);
    return end_tokens(call, status, &list, &room);
}

ww_status ww_model_tokenize(const ww_model *model, const char *text, size_t bytes, uint32_t flags, int32_t *ids,
                            size_t capacity, size_t *count)
{
    FLOAT_GUARD();
    const char *const call = "ww_model_tokenize";
    const ww_status status = check_tokenizer(model, call);
    return status == WW_OK
               ? encode(call, model->tokenizer, (plain_text){text, bytes}, flags, (token_room){ids, capacity, count})
               : status;
}

ww_status ww_tokenizer_create(const ww_gguf *gguf, ww_tokenizer **made)
{
    FLOAT_GUARD();
    if (!gguf || !made)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_tokenizer_create: %s is NULL", gguf ? "tokenizer" : "gguf");
    return tokenizer_create(gguf, made);
}

void ww_tokenizer_destroy(ww_tokenizer *t)
{
    tokenizer_destroy(t);
}

const ww_tokenizer *ww_model_tokenizer(const ww_model *model)
{
    return model ? model->tokenizer : NULL;
}

ww_status ww_tokenizer_encode(const ww_tokenizer *t, const char *text, size_t bytes, uint32_t flags, int32_t *ids,
                              size_t capacity, size_t *count)
{
    FLOAT_GUARD();
    const char *const call = "ww_tokenizer_encode";
    if (!t)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: tokenizer is NULL", call);
    return encode(call, t, (plain_text){text, bytes}, flags, (token_room){ids, capacity, count});
}

ww_status ww_tokenizer_piece(const ww_tokenizer *t, int32_t token, const char **piece, size_t *bytes)
{
    FLOAT_GUARD();
    if (!t || !piece || !bytes)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_tokenizer_piece: %s is NULL", !t ? "tokenizer" : piece ? "bytes" : "piece");
    return tokenizer_piece(t, token, piece, bytes);
}

int32_t ww_tokenizer_is_special(const ww_tokenizer *t, int32_t token)
{
    return t && tokenizer_is_special(t, token);
}

/* Copies a text to the caller's memory. */
static ww_status give_text(const char *call, const char *from, size_t bytes, char *to, size_t capacity)
{
    if (to && bytes > capacity)
        return ww_fail(WW_OUT_OF_RANGE, "%s: the text has %zu bytes; there is room for %zu", call, bytes, capacity);
    if (to && bytes > 0)
        memcpy(to, from, bytes);
    return WW_OK;
}

ww_status ww_model_detokenize(const ww_model *model, const int32_t *ids, size_t count, char *text, size_t capacity,
                              size_t *bytes)
{
    FLOAT_GUARD();
    const char *const call = "ww_model_detokenize";
    char *made = NULL;
    size_t made_bytes = 0;
    ww_status status = check_tokenizer(model, call);
    if (status != WW_OK)
        return status;
    if ((!ids && count > 0) || (!text && capacity > 0) || !bytes)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", call, !bytes ? "bytes" : !ids && count > 0 ? "ids" : "text");
    status = tokenizer_decode(model->tokenizer, ids, (int64_t)count, &made, &made_bytes);
    if (status == WW_OK) {
        *bytes = made_bytes;
        status = give_text(call, made, made_bytes, text, capacity);
    }
    memory_free(made);
    return status;
}

int32_t ww_model_token_ends(const ww_model *model, int32_t token)
{
    return model && model->tokenizer && tokenizer_is_end(model->tokenizer, token);
}

enum { TOKEN_NAME_BYTES = 128 };

/* The name of a token, NUL-terminated; "" if there is none, or it is too long for any template. */
static const char *token_name(const tokenizer *t, int32_t id, char name[TOKEN_NAME_BYTES])
{
    const char *bytes;
    size_t count;
    name[0] = 0;
    if (id >= 0 && tokenizer_piece(t, id, &bytes, &count) == WW_OK && count < TOKEN_NAME_BYTES) {
        memcpy(name, bytes, count);
        name[count] = 0;
    }
    return name;
}

/* Does the model have a usable template? */
static ww_status check_template(const ww_model *model)
{
    if (!model->chat_template)
        return ww_fail(WW_UNSUPPORTED, "the model has no chat template; give one (`chat_template`, --chat-template)");
    if (model->chat)
        return WW_OK;
    template_program *program = NULL; /* parsing it again gives the message */
    const ww_status wrong = template_parse(model->chat_template, strlen(model->chat_template), &program);
    template_free(program);
    return wrong != WW_OK ? wrong : ww_fail(WW_INTERNAL, "the chat template was not read");
}

const char *ww_model_chat_template(const ww_model *model)
{
    return model ? model->chat_template : NULL;
}

ww_status ww_model_chat_json_tokens(const ww_model *model, const char *json, const char *behind, int32_t *ids, size_t capacity,
                                    size_t *token_count)
{
    FLOAT_GUARD();
    const char *const call = "ww_model_chat_json_tokens";
    const token_room room = {ids, capacity, token_count};
    char bos[TOKEN_NAME_BYTES], eos[TOKEN_NAME_BYTES];
    text_buffer made = {0};
    template_quotes quotes = {0};
    token_list list = {0};
    ww_status status = check_tokenizer(model, call);
    if (status == WW_OK)
        status = check_template(model);
    if (status == WW_OK)
        status = !json || !behind ? ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", call, json ? "behind" : "json")
                                  : check_room(call, &room);
    if (status != WW_OK)
        return status;
    const tokenizer *t = model->tokenizer;
    const template_input input = {.json = json,
                                  .bos = token_name(t, tokenizer_bos(t), bos),
                                  .eos = token_name(t, tokenizer_eos(t), eos),
                                  .add_generation = true};
    status = template_render(model->chat, &input, &made, &quotes);
    if (status == WW_OK)
        status = text_buffer_add_text(&made, behind);
    const quoted_text text = {made.text, made.bytes, quotes.spans, quotes.count, model->chat_template};
    if (status == WW_OK)
        status = tokenizer_encode_quotes(t, &text, &list);
    template_quotes_free(&quotes);
    text_buffer_free(&made);
    return end_tokens(call, status, &list, &room);
}

static ww_status render(const ww_model *model, const ww_chat_message *messages, size_t count, text_buffer *out,
                        template_quotes *quotes)
{
    const tokenizer *t = model->tokenizer;
    char bos[TOKEN_NAME_BYTES], eos[TOKEN_NAME_BYTES];
    const ww_status ready = check_template(model);
    if (ready != WW_OK)
        return ready;
    const chat_format format = {.program = model->chat,
                                .bos = token_name(t, tokenizer_bos(t), bos),
                                .eos = token_name(t, tokenizer_eos(t), eos),
                                .quotes = quotes};
    chat_message *ours = memory_alloc_zeroed(count, sizeof *ours);
    if (!ours)
        return memory_failed("conversation", count * sizeof *ours);
    for (size_t i = 0; i < count; i++)
        ours[i] = (chat_message){messages[i].role, messages[i].text};
    const ww_status status = chat_render(&format, ours, count, true, out);
    memory_free(ours);
    return status;
}

static ww_status check_messages(const char *call, const ww_chat_message *messages, size_t count)
{
    if (!messages && count > 0)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: messages is NULL", call);
    for (size_t i = 0; i < count; i++)
        if (!messages[i].role || !messages[i].text)
            return ww_fail(WW_INVALID_ARGUMENT, "%s: %s of message %zu is NULL", call, messages[i].role ? "text" : "role", i);
    return WW_OK;
}

ww_status ww_model_chat_tokens(const ww_model *model, const ww_chat_message *messages, size_t count, uint32_t flags,
                               int32_t *ids, size_t capacity, size_t *token_count)
{
    FLOAT_GUARD();
    const char *const call = "ww_model_chat_tokens";
    text_buffer made = {0};
    template_quotes quotes = {0};
    token_list list = {0};
    ww_status status = check_tokenizer(model, call);
    if (status == WW_OK)
        status = check_messages(call, messages, count);
    if (status != WW_OK)
        return status;
    const token_room room = {ids, capacity, token_count};
    status = check_room(call, &room);
    if (status != WW_OK)
        return status;
    if (flags & ~(uint32_t)WW_TOKENS_PLAIN)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: flags is %u; it must be 0 or WW_TOKENS_PLAIN", call, (unsigned)flags);
    status = render(model, messages, count, &made, &quotes);
    const quoted_text text = {made.text, made.bytes, quotes.spans, flags & WW_TOKENS_PLAIN ? quotes.count : 0,
                              model->chat_template};
    if (status == WW_OK)
        status = tokenizer_encode_quotes(model->tokenizer, &text, &list);
    template_quotes_free(&quotes);
    text_buffer_free(&made);
    return end_tokens(call, status, &list, &room);
}

ww_status ww_model_chat(const ww_model *model, const ww_chat_message *messages, size_t count, char *text, size_t capacity,
                        size_t *bytes)
{
    FLOAT_GUARD();
    const char *const call = "ww_model_chat";
    text_buffer made = {0};
    ww_status status = check_tokenizer(model, call);
    if (status != WW_OK)
        return status;
    status = check_messages(call, messages, count);
    if (status != WW_OK)
        return status;
    if ((!text && capacity > 0) || !bytes)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", call, bytes ? "text" : "bytes");
    status = render(model, messages, count, &made, NULL);
    if (status == WW_OK) {
        *bytes = made.bytes;
        status = give_text(call, made.text, made.bytes, text, capacity);
    }
    text_buffer_free(&made);
    return status;
}
