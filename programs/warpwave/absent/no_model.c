/* Replaces the parts that need src/model in a build without PCRE2 or utf8proc: every function reports that. */
#include <warpwave/text.h>

#include "base/status.h"
#include "base/structs.h"
#include "warpwave/command.h"
#include "warpwave/gguf/gguf.h"

static ww_status say_missing(void)
{
    return ww_fail(WW_UNSUPPORTED, "this command was built without models, since PCRE2 or utf8proc was missing; install "
                                   "libpcre2-dev and libutf8proc-dev and build it again");
}

ww_status gguf_from_safetensors(const gguf_folder *job)
{
    (void)job;
    return say_missing();
}

ww_status gguf_from_safetensors_check(const char *type)
{
    (void)type;
    return WW_OK;
}

/* ---- collections of text (warpwave/text.h) --------------------------------------------------------------------------------
 */

STRUCT_INIT(ww_text_config, {0})
STRUCT_INIT(ww_text_rows, {0})
STRUCT_INIT(ww_chunking, {0})
STRUCT_INIT(ww_documents, {0})
STRUCT_INIT(ww_text_query, {0})

ww_status ww_text_open(ww_store *store, const char *collection, const ww_text_config *config, ww_text **text)
{
    (void)store, (void)collection, (void)config, (void)text;
    return say_missing();
}

void ww_text_close(ww_text *text)
{
    (void)text;
}

ww_status ww_text_add(ww_text *text, const ww_text_rows *rows)
{
    (void)text, (void)rows;
    return say_missing();
}

ww_status ww_text_upsert(ww_text *text, const ww_text_rows *rows)
{
    (void)text, (void)rows;
    return say_missing();
}

ww_status ww_text_add_documents(ww_text *text, const ww_documents *documents, int64_t *chunks)
{
    (void)text, (void)documents, (void)chunks;
    return say_missing();
}

ww_status ww_text_upsert_documents(ww_text *text, const ww_documents *documents, int64_t *chunks)
{
    (void)text, (void)documents, (void)chunks;
    return say_missing();
}

ww_status ww_text_search(ww_text *text, const ww_text_query *query, ww_results **results)
{
    (void)text, (void)query, (void)results;
    return say_missing();
}

static exit_code run(const char *const *arguments, size_t count)
{
    (void)arguments;
    (void)count;
    return command_end(&command_model, say_missing());
}

const command command_model = {
    .name = "model",
    .summary = "Embed texts and generate text with a model from a GGUF file (not in this build)",
    .operand = "ACTION MODEL",
    .run = run,
};
