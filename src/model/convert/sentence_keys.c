/* What sentence-transformers keeps beside config.json: 1_Pooling, sentence_bert_config.json and
 * config_sentence_transformers.json. */
#include "model/convert/sentence_keys.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"

/* Older folders have a flag for each pooling, newer ones its name. */
static ww_pooling pooling_of(const json_t *config)
{
    static const struct {
        const char *flag, *name;
        ww_pooling pooling;
    } KNOWN[] = {{"pooling_mode_mean_tokens", "mean", WW_POOLING_MEAN},
                 {"pooling_mode_cls_token", "cls", WW_POOLING_CLS},
                 {"pooling_mode_lasttoken", "lasttoken", WW_POOLING_LAST}};
    const char *name = json_member_text(config, "pooling_mode", "");
    ww_pooling found = WW_POOLING_NONE;
    int count = 0;
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        if (json_member_bool(config, KNOWN[i].flag, false) || strcmp(name, KNOWN[i].name) == 0) {
            found = KNOWN[i].pooling;
            count++;
        }
    return count == 1 ? found : WW_POOLING_NONE;
}

/* Reads one of the files; one that is missing is no failure. */
static json_t *read_file(const conversion *c, const char *name, key_writer *w)
{
    json_t *file = NULL;
    const ww_status found = w->status == WW_OK ? folder_json(c->job->folder, name, &file) : w->status;
    if (found != WW_OK && found != WW_NOT_FOUND)
        w->status = found;
    return file;
}

/* The question of mxbai-rerank-v2, as its program asks it. */
static const char MXBAI_TEMPLATE[] =
    "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n<|im_start|>user\n"
    "query: {query}\ndocument: {document}\nYou are a search relevance expert who evaluates how well documents match search "
    "queries. For each query-document pair, carefully analyze the semantic relationship between them, then provide your binary "
    "relevance judgment (0 for not relevant, 1 for relevant).\nRelevance:<|im_end|>\n<|im_start|>assistant\n";

/* Nothing in its folder tells mxbai-rerank-v2 from a model that continues texts, but its name. */
static bool asks_qwen2(const conversion *c)
{
    const char *name = c->job->name ? c->job->name : c->job->folder;
    return strcmp(c->architecture->name, "qwen2") == 0 && c->job->pooling == WW_POOLING_NONE && strstr(name, "mxbai-rerank");
}

static void write_pooling(conversion *c, key_writer *w)
{
    if (asks_qwen2(c)) {
        key_text(w, "tokenizer.chat_template.rerank", MXBAI_TEMPLATE);
        key_text(w, "warpwave.rerank.yes", "1");
        key_text(w, "warpwave.rerank.no", "0");
        return;
    }
    ww_pooling pooling = c->architecture->ranks ? WW_POOLING_RANK : c->architecture->lookup ? WW_POOLING_MEAN : c->job->pooling;
    json_t *config = pooling == WW_POOLING_NONE ? read_file(c, "1_Pooling/config.json", w) : NULL;
    if (config) {
        pooling = pooling_of(config);
        if (pooling == WW_POOLING_NONE)
            w->status =
                ww_fail(WW_UNSUPPORTED, "%s/1_Pooling/config.json: neither mean nor cls nor last pooling", c->job->folder);
    } else if (pooling == WW_POOLING_NONE && w->status == WW_OK && !config_is_causal(c->architecture, c->config)) {
        pooling = WW_POOLING_MEAN;
        c->report.pooling_assumed = true;
        key_bool(w, "warpwave.pooling_assumed", true);
    }
    if (pooling != WW_POOLING_NONE)
        key_u32(w, ".pooling_type", pooling);
    json_decref(config);
}

static void write_prompts(const conversion *c, key_writer *w)
{
    const char *name;
    json_t *text, *config = read_file(c, "config_sentence_transformers.json", w);
    json_t *prompts = json_object_get(config, "prompts");
    const char *usual = json_member_text(config, "default_prompt_name", NULL);
    json_object_foreach(prompts, name, text)
    {
        char key[128];
        const int length = snprintf(key, sizeof key, "warpwave.prompt.%s", name);
        if (name[0] && length > 0 && (size_t)length < sizeof key && json_is_string(text))
            key_text(w, key, json_string_value(text));
    }
    if (usual && json_is_string(json_object_get(prompts, usual)))
        key_text(w, "warpwave.prompt_default", usual);
    json_decref(config);
}

void keys_of_sentences(conversion *c, key_writer *w)
{
    write_pooling(c, w);
    json_t *limits = read_file(c, "sentence_bert_config.json", w);
    if (json_is_integer(json_object_get(limits, "max_seq_length")))
        key_u32(w, "warpwave.embedding_tokens", json_member_integer(limits, "max_seq_length", -1));
    json_decref(limits);
    write_prompts(c, w);
}
