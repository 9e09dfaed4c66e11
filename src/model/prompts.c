/* Reading and finding a model's prompts. */
#include "model/prompts.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"

static const char KEY[] = "warpwave.prompt.", DEFAULT_KEY[] = "warpwave.prompt_default";

void prompts_free(model_prompts *prompts)
{
    for (size_t i = 0; i < prompts->count; i++) {
        memory_free(prompts->list[i].name);
        memory_free(prompts->list[i].text);
    }
    memory_free(prompts->list);
    *prompts = (model_prompts){0};
}

static ww_status add_prompt(const ww_gguf *gguf, const char *key, model_prompts *out)
{
    const char *text, *name = key + strlen(KEY);
    ww_status status = ww_gguf_text(gguf, key, &text, NULL);
    if (status == WW_OK && (out->count == PROMPTS_MAX || name[0] == '\0' || strlen(text) > PROMPT_BYTES_MAX))
        status = ww_fail(WW_CORRUPT_FILE, "%s: a model has at most %d prompts with a name, of at most %d bytes", key,
                         PROMPTS_MAX, PROMPT_BYTES_MAX);
    if (status != WW_OK)
        return status;
    model_prompt *p = &out->list[out->count++];
    p->name = memory_copy_text(name, strlen(name));
    p->text = memory_copy_text(text, strlen(text));
    return p->name && p->text ? WW_OK : memory_failed("prompts of a model", strlen(name) + strlen(text) + 2);
}

static const model_prompt *find(const model_prompts *prompts, const char *name)
{
    for (size_t i = 0; i < prompts->count; i++)
        if (strcmp(prompts->list[i].name, name) == 0)
            return &prompts->list[i];
    return NULL;
}

static ww_status read_default(const ww_gguf *gguf, model_prompts *out)
{
    const char *name;
    const ww_status status = ww_gguf_text(gguf, DEFAULT_KEY, &name, NULL);
    if (status != WW_OK)
        return status == WW_NOT_FOUND ? WW_OK : status;
    out->usual = find(out, name);
    return out->usual ? WW_OK
                      : ww_fail(WW_CORRUPT_FILE, "%s is '%.60s', which is not a prompt of the model", DEFAULT_KEY, name);
}

ww_status prompts_read(const ww_gguf *gguf, model_prompts *out)
{
    ww_gguf_info info = ww_gguf_info_default();
    ww_status status = ww_gguf_describe(gguf, &info);
    *out = (model_prompts){0};
    for (int64_t i = 0; status == WW_OK && i < info.keys; i++) {
        ww_gguf_value value = ww_gguf_value_default();
        status = ww_gguf_value_at(gguf, i, &value);
        if (status != WW_OK || strncmp(value.key, KEY, strlen(KEY)) != 0)
            continue;
        if (!out->list && !(out->list = memory_alloc_zeroed(PROMPTS_MAX, sizeof *out->list)))
            status = memory_failed("prompts of a model", PROMPTS_MAX * sizeof *out->list);
        if (status == WW_OK)
            status = add_prompt(gguf, value.key, out);
    }
    if (status == WW_OK)
        status = read_default(gguf, out);
    if (status != WW_OK)
        prompts_free(out);
    return status;
}

ww_status prompts_find(const model_prompts *prompts, const char *name, const char **text)
{
    static const char *const DOCUMENT[] = {"document", "passage", "corpus"};
    const bool document = name && strcmp(name, DOCUMENT[0]) == 0;
    const model_prompt *found = name ? find(prompts, name) : prompts->usual;
    char known[256] = "";
    for (size_t i = 1; document && !found && i < sizeof DOCUMENT / sizeof *DOCUMENT; i++)
        found = find(prompts, DOCUMENT[i]);
    *text = found ? found->text : "";
    if (found || !name || name[0] == '\0' || document || strcmp(name, "query") == 0)
        return WW_OK;
    for (size_t i = 0; i < prompts->count; i++) {
        text_append(known, sizeof known, i > 0 ? ", " : "");
        text_append(known, sizeof known, prompts->list[i].name);
    }
    return ww_fail(WW_NOT_FOUND, "the model has no prompt '%.60s'; it has %s", name, known[0] ? known : "none");
}
