/* `warpwave model info`: what a model is. */
#include <stdio.h>

#include "base/text.h"
#include "warpwave/json.h"
#include "warpwave/model/model.h"
#include "warpwave/terminal.h"

static const char *pooling_name(ww_pooling pooling)
{
    static const char *const NAMES[] = {[WW_POOLING_NONE] = "none",
                                        [WW_POOLING_MEAN] = "mean",
                                        [WW_POOLING_CLS] = "cls",
                                        [WW_POOLING_LAST] = "last",
                                        [WW_POOLING_RANK] = "rank"};
    return (unsigned)pooling < sizeof NAMES / sizeof *NAMES ? NAMES[pooling] : "none";
}

static void print_json(const ww_model_info *i)
{
    json_writer w = {.to = stdout, .digits = JSON_DIGITS_F64};
    json_open(&w, NULL, '{');
    json_put_text(&w, "architecture", i->architecture);
    json_put_text(&w, "kind", i->kind == WW_MODEL_ENCODER ? "encoder" : "decoder");
    json_put_text(&w, "name", i->name);
    json_put_text(&w, "licence", i->licence);
    json_put_text(&w, "tokenizer", i->tokenizer);
    json_put_text(&w, "device", i->device);
    json_put_text(&w, "fingerprint", i->fingerprint);
    json_put_integer(&w, "parameters", i->parameters);
    json_put_integer(&w, "weight_bytes", i->weight_bytes);
    json_put_integer(&w, "mapped_bytes", i->mapped_bytes);
    json_put_integer(&w, "cache_bytes", i->cache_bytes);
    json_put_integer(&w, "vocabulary", i->vocabulary);
    json_put_integer(&w, "context", i->context);
    json_put_integer(&w, "layers", i->layers);
    json_put_integer(&w, "width", i->width);
    json_put_integer(&w, "hidden", i->hidden);
    json_put_integer(&w, "heads", i->heads);
    json_put_integer(&w, "key_heads", i->key_heads);
    json_put_integer(&w, "head_size", i->head_size);
    json_put_integer(&w, "window", i->window);
    json_put_text(&w, "pooling", pooling_name(i->pooling));
    json_put_bool(&w, "pooling_assumed", i->pooling_assumed != 0);
    json_put_text(&w, "prompts", i->prompts);
    json_put_text(&w, "default_prompt", i->default_prompt);
    json_put_integer(&w, "bos", i->bos);
    json_put_integer(&w, "eos", i->eos);
    json_put_bool(&w, "chat", i->has_chat != 0);
    json_put_bool(&w, "embeds", i->embeds != 0);
    json_put_bool(&w, "reranks", i->reranks != 0);
    json_close(&w);
}

static void print_text(const char *what, const char *text)
{
    printf("%-14s", what);
    print_plain(stdout, text[0] ? text : "not said");
    putchar('\n');
}

static void print(const ww_model_info *i)
{
    char weights[32], cache[32], mapped[32];
    print_text("architecture", i->architecture);
    print_text("name", i->name);
    print_text("licence", i->licence);
    printf("%-14s%d layers, width %d, hidden %d, %d heads of %d", "shape", (int)i->layers, (int)i->width, (int)i->hidden,
           (int)i->heads, (int)i->head_size);
    if (i->key_heads != i->heads)
        printf(" (%d of keys)", (int)i->key_heads);
    if (i->window)
        printf(", window %d", (int)i->window);
    printf("\n%-14s%.1f million, %s on %s", "parameters", (double)i->parameters / 1e6, human_bytes(weights, i->weight_bytes),
           i->device);
    if (i->mapped_bytes > 0)
        printf(", %s of them in the file's own pages", human_bytes(mapped, i->mapped_bytes));
    printf("\n");
    printf("%-14s%lld tokens", "context", (long long)i->context);
    if (i->kind == WW_MODEL_DECODER)
        printf(", %s for each 256 of a session", human_bytes(cache, i->cache_bytes));
    printf("\n%-14s%lld tokens, %s", "vocabulary", (long long)i->vocabulary, i->tokenizer);
    if (i->pooling != WW_POOLING_NONE)
        printf("\n%-14s%s%s", "pooling", pooling_name(i->pooling),
               i->pooling_assumed ? ", assumed: its folder names none" : "");
    else
        printf("\n%-14s%s", "chat", i->has_chat ? "has a template" : "has no template that can be read");
    if (i->prompts[0]) {
        printf("\n%-14s", "prompts");
        print_plain(stdout, i->prompts);
        printf(i->default_prompt[0] ? "; default: " : "; none by default");
        print_plain(stdout, i->default_prompt);
    }
    printf("\n%-14s%s\n", "fingerprint", i->fingerprint);
}

ww_status model_info_run(model_call *call)
{
    const ww_status status = model_call_open(call);
    if (status == WW_OK && call->settings.json)
        print_json(&call->info);
    else if (status == WW_OK)
        print(&call->info);
    return status;
}
