/* Text and tokens: the public calls around the tokenizer. */
#include <string.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "model/model.h"

static ww_status check_tokenizer(const ww_model *model, const char *call)
{
    const ww_status status = model_check(model, call);
    if (status == WW_OK && !model->tokenizer)
        return ww_fail(WW_UNSUPPORTED, "%s: the model has no tokenizer", call);
    return status;
}

ww_status ww_model_tokenize(const ww_model *model, const char *text, size_t bytes, uint32_t flags, int32_t *ids, size_t capacity,
                            size_t *count)
{
    FLOAT_GUARD();
    const char *const call = "ww_model_tokenize";
    token_list list = {0};
    ww_status status = check_tokenizer(model, call);
    if (status != WW_OK)
        return status;
    if ((!text && bytes > 0) || (!ids && capacity > 0) || !count)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", call, !count ? "count" : !text && bytes > 0 ? "text" : "ids");
    if (flags & ~(uint32_t)(WW_TOKENS_PLAIN | WW_TOKENS_NO_ADD))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: flags is %u; 0 to 3 are known", call, (unsigned)flags);
    status = tokenizer_encode(model->tokenizer, text ? text : "", bytes, flags, &list);
    if (status == WW_OK) {
        *count = (size_t)list.count;
        if (ids && (size_t)list.count > capacity)
            status = ww_fail(WW_OUT_OF_RANGE, "%s: the text has %lld tokens; there is room for %zu", call,
                             (long long)list.count, capacity);
        else if (ids && list.count > 0)
            memcpy(ids, list.ids, (size_t)list.count * sizeof *ids);
    }
    token_list_free(&list);
    return status;
}

/* A text of ours to the caller's room. */
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
