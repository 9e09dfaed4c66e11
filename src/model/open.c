/* Opening a model (reading and checking metadata, weights and tokenizer), and closing it with its last user. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "arithmetic/attention.h"
#include "base/float_guard.h"
#include "base/memory.h"
#include "base/structs.h"
#include "base/text.h"
#include "gguf/gguf.h"
#include "model/convert/convert.h"
#include "model/fingerprint.h"
#include "model/model.h"
#include "tensor/tensor.h"

STRUCT_INIT(ww_model_options, {.cache = WW_QUANT_F16})
STRUCT_INIT(ww_model_info, {0})

ww_status model_check(const ww_model *model, const char *call)
{
    if (!model)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: model is NULL", call);
    return process_check(model->opened_in, "model");
}

void model_retain(ww_model *model)
{
    atomic_fetch_add(&model->users, 1);
}

void model_release(ww_model *model)
{
    if (atomic_fetch_sub(&model->users, 1) != 1)
        return;
    workspace_free(&model->work);
    page_pool_trim(&model->pool);
    token_order_free(model->token_order);
    tokenizer_destroy(model->tokenizer);
    template_free(model->chat);
    memory_free(model->chat_template);
    memory_free(model->rerank_template);
    prompts_free(&model->prompts);
    weights_free(&model->weights);
    pthread_mutex_destroy(&model->lock);
    memory_free(model);
}

void ww_model_close(ww_model *model)
{
    if (model && process_is_ours(model->opened_in))
        model_release(model);
}

/* ---- what can be wrong before anything is loaded ------------------------------------------------------------------------- */

static ww_status check_options(const ww_model *model, const ww_model_options *options)
{
    const model_sizes *s = &model->sizes;
    if (options->activations != WW_ACTIVATIONS_CODED && options->activations != WW_ACTIVATIONS_FLOAT)
        return ww_fail(WW_INVALID_ARGUMENT,
                       "ww_model_open: activations is %d; it must be WW_ACTIVATIONS_CODED or WW_ACTIVATIONS_FLOAT",
                       (int)options->activations);
    if (options->cache != WW_QUANT_F16 && options->cache != WW_QUANT_F32 && options->cache != WW_QUANT_Q8_0)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_model_open: cache is %d; it must be f16, f32 or q8_0", (int)options->cache);
    if (options->context < 0 || options->context > s->context)
        return ww_fail(WW_OUT_OF_RANGE, "ww_model_open: a context of %lld tokens was asked for; the model has %lld",
                       (long long)options->context, (long long)s->context);
    return WW_OK;
}

static ww_status make_pool(ww_model *model, const ww_model_options *options)
{
    const model_sizes *s = &model->sizes;
    const bool decoder = model->architecture->kind == WW_MODEL_DECODER;
    const int32_t type = !decoder || options->cache == WW_QUANT_F32 ? ATTENTION_F32
                         : options->cache == WW_QUANT_F16           ? ATTENTION_F16
                                                                    : ATTENTION_Q8_0;
    if (!has_pages(model->architecture))
        return WW_OK;
    if (!tensors_of(model->device)->attention)
        return ww_fail(WW_UNSUPPORTED, "attention does not run on devices of backend %s", model->device->info.backend);
    const int32_t multiple = type == ATTENTION_Q8_0 ? ATTENTION_BLOCK : ATTENTION_LANES;
    if (s->head_size < ATTENTION_HEAD_MIN || s->head_size > ATTENTION_HEAD_MAX || s->head_size % multiple)
        return ww_fail(WW_UNSUPPORTED, "heads of %d elements are not supported; %d to %d are, in multiples of %d%s",
                       (int)s->head_size, (int)ATTENTION_HEAD_MIN, (int)ATTENTION_HEAD_MAX, (int)multiple,
                       type == ATTENTION_Q8_0 ? " with a cache of q8_0" : "");
    const int64_t bytes = attention_layer_bytes(type, s->key_heads, s->head_size);
    model->pool = (page_pool){.device = model->device,
                              .type = type,
                              .key_heads = s->key_heads,
                              .head_size = s->head_size,
                              .layer_bytes = bytes,
                              .bytes = bytes * (decoder ? s->layers : 1)};
    return WW_OK;
}

/* ---- text ---------------------------------------------------------------------------------------------------------------- */

static ww_status make_chat(const char *text, size_t bytes, ww_model *model)
{
    model->chat_template = memory_copy_text(text, bytes);
    return model->chat_template ? template_parse(text, bytes, &model->chat) : memory_failed("chat template", bytes + 1);
}

/* A bad template does not prevent opening the file: ww_model_chat() reports what is wrong with it. */
static ww_status make_file_chat(const ww_gguf *gguf, ww_model *model)
{
    const char *text;
    size_t bytes;
    if (model->chat || ww_gguf_text(gguf, "tokenizer.chat_template", &text, &bytes) != WW_OK)
        return WW_OK;
    return make_chat(text, bytes, model) == WW_OUT_OF_MEMORY ? WW_OUT_OF_MEMORY : WW_OK;
}

static ww_status no_tokenizer(const ww_model *model)
{
    return model->chat ? ww_fail(WW_UNSUPPORTED, "the model has no tokenizer, so it takes no chat template") : WW_OK;
}

/* A file for timing may have no tokenizer. If there is one, it must be known and have a piece for each row. */
static ww_status make_tokenizer(const ww_gguf *gguf, ww_model *model)
{
    const char *name;
    int64_t index;
    if (ww_gguf_find_value(gguf, "tokenizer.ggml.model", &index) != WW_OK)
        return no_tokenizer(model);
    ww_status status = ww_gguf_text(gguf, "tokenizer.ggml.model", &name, NULL);
    if (status != WW_OK || strcmp(name, "none") == 0)
        return status == WW_OK ? no_tokenizer(model) : status;
    status = tokenizer_create(gguf, &model->tokenizer);
    if (status == WW_OK && tokenizer_size(model->tokenizer) != model->sizes.vocabulary)
        status = ww_fail(WW_CORRUPT_FILE, "the tokenizer has %d tokens, the embedding %lld rows",
                         (int)tokenizer_size(model->tokenizer), (long long)model->sizes.vocabulary);
    return status == WW_OK ? make_file_chat(gguf, model) : status;
}

/* ---- what it can be asked ------------------------------------------------------------------------------------------------ */

/* Finds the answer tokens of a decoder that can be asked whether a text answers a query: the file's, or yes and no. */
static bool find_answers(const ww_gguf *gguf, ww_model *model, int32_t ids[2])
{
    const char *yes = "yes", *no = "no";
    model->rerank_apart = ww_gguf_text(gguf, "warpwave.rerank.yes", &yes, NULL) == WW_OK &&
                          ww_gguf_text(gguf, "warpwave.rerank.no", &no, NULL) == WW_OK;
    if (!(model->architecture->answers || model->rerank_apart) || model->sizes.pooling != WW_POOLING_NONE || !model->tokenizer)
        return false;
    ids[0] = tokenizer_find(model->tokenizer, yes);
    ids[1] = tokenizer_find(model->tokenizer, no);
    return ids[0] >= 0 && ids[1] >= 0;
}

static ww_status make_rerank(const ww_gguf *gguf, ww_model *model)
{
    const model_sizes *s = &model->sizes;
    const char *text;
    size_t bytes;
    int32_t ids[2];
    ww_status status = WW_OK;
    const bool answers = find_answers(gguf, model, ids);
    model->info.embeds = s->pooling != WW_POOLING_NONE && s->pooling != WW_POOLING_RANK;
    model->info.reranks = (s->pooling == WW_POOLING_RANK && model->tokenizer) || answers;
    if (answers)
        status = weights_load_answers(&model->weights, ids, &model->weights.head);
    if (status != WW_OK || !model->info.reranks || ww_gguf_text(gguf, "tokenizer.chat_template.rerank", &text, &bytes) != WW_OK)
        return status;
    model->rerank_template = memory_copy_text(text, bytes);
    return model->rerank_template ? WW_OK : memory_failed("template", bytes + 1);
}

static void text_of(const ww_gguf *gguf, const char *key, char *to, size_t capacity)
{
    const char *text;
    if (ww_gguf_text(gguf, key, &text, NULL) == WW_OK)
        text_plain_copy(to, capacity, text);
}

static bool file_assumes_pooling(const ww_gguf *gguf)
{
    int32_t assumed = 0;
    return ww_gguf_bool(gguf, "warpwave.pooling_assumed", &assumed) == WW_OK && assumed == 1;
}

static const char *const POOLING_MARKS[] = {"", "-mean", "-cls", "-last", ""};

static ww_status fill_info(const ww_gguf *gguf, ww_model *model)
{
    ww_model_info *info = &model->info;
    const model_sizes *s = &model->sizes;
    ww_device_info device = ww_device_info_default();
    ww_status status = ww_device_describe(model->device, &device);
    if (status != WW_OK)
        return status; /* with its own message: keys that are missing would have theirs */
    *info = (ww_model_info){.struct_size = sizeof *info,
                            .kind = model->architecture->kind,
                            .parameters = model->weights.parameters,
                            .weight_bytes = model->weights.bytes,
                            .mapped_bytes = model->weights.bytes_mapped,
                            .cache_bytes = model->architecture->kind == WW_MODEL_DECODER ? model->pool.bytes : 0,
                            .vocabulary = s->vocabulary,
                            .context = model->context,
                            .layers = s->layers,
                            .width = s->vector,
                            .hidden = s->hidden,
                            .heads = s->heads,
                            .key_heads = s->key_heads,
                            .head_size = s->head_size,
                            .window = s->window,
                            .pooling = s->pooling,
                            .bos = model->tokenizer ? tokenizer_bos(model->tokenizer) : -1,
                            .eos = model->tokenizer ? tokenizer_eos(model->tokenizer) : -1,
                            .embeds = info->embeds,
                            .reranks = info->reranks};
    info->has_chat = model->chat != NULL;
    text_copy(info->architecture, sizeof info->architecture, model->architecture->name);
    text_copy(info->tokenizer, sizeof info->tokenizer, model->tokenizer ? tokenizer_model(model->tokenizer) : "none");
    text_copy(info->device, sizeof info->device, device.id);
    text_of(gguf, "general.name", info->name, sizeof info->name);
    text_of(gguf, "general.license", info->licence, sizeof info->licence);
    for (size_t i = 0; i < model->prompts.count; i++) {
        text_append(info->prompts, sizeof info->prompts, i > 0 ? ", " : "");
        text_append(info->prompts, sizeof info->prompts, model->prompts.list[i].name);
    }
    info->pooling_assumed = !s->pooling_given && file_assumes_pooling(gguf);
    if (model->prompts.usual)
        text_copy(info->default_prompt, sizeof info->default_prompt, model->prompts.usual->name);
    status = fingerprint_of(gguf, info->fingerprint);
    if (s->pooling_given) /* vectors of another pooling must not be compared with the file's */
        text_append(info->fingerprint, sizeof info->fingerprint, POOLING_MARKS[s->pooling]);
    return status;
}

/* ---- opening ------------------------------------------------------------------------------------------------------------- */

static bool is_folder(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

/* Encoders may have been trained to embed fewer tokens than they have positions for; longer texts are truncated. */
static int64_t embedding_tokens(const ww_gguf *gguf, int64_t context)
{
    int64_t tokens = 0;
    if (ww_gguf_i64(gguf, "warpwave.embedding_tokens", &tokens) != WW_OK || tokens < 1)
        return context;
    return tokens < context ? tokens : context;
}

static ww_status open_file(ww_gguf *gguf, const ww_model_options *options, ww_model *model)
{
    ww_status status = check_options(model, options);
    model->context = options->context ? options->context : model->sizes.context;
    if (status == WW_OK && !options->context && model->architecture->kind == WW_MODEL_ENCODER)
        model->context = embedding_tokens(gguf, model->context);
    const weights_source source = {.gguf = gguf,
                                   .device = model->device,
                                   .architecture = model->architecture,
                                   .sizes = &model->sizes,
                                   .context = model->context,
                                   .progress = options->progress,
                                   .progress_user = options->progress_user};
    model->activations = options->activations;
    if (status == WW_OK)
        status = make_pool(model, options);
    if (status == WW_OK)
        status = weights_load(&source, &model->weights);
    if (status == WW_OK)
        status = make_tokenizer(gguf, model);
    if (status == WW_OK)
        status = make_rerank(gguf, model);
    if (status == WW_OK)
        status = prompts_read(gguf, &model->prompts);
    return status == WW_OK ? fill_info(gguf, model) : status;
}

/* Puts the file's path in front of a failure's message. */
static ww_status name_file(ww_status status, const char *path)
{
    char message[1024];
    text_copy(message, sizeof message, ww_error_message());
    return strstr(message, path) ? status : ww_fail(status, "%s: %s", path, message);
}

/* Says which formats are read if a file has another one. */
static ww_status name_formats(ww_status status)
{
    char message[1024];
    text_copy(message, sizeof message, ww_error_message());
    if (status != WW_CORRUPT_FILE || !strstr(message, "not a GGUF file"))
        return status;
    return ww_fail(status, "%s; models are read from GGUF files, and from folders with config.json and model.safetensors",
                   message);
}

ww_status ww_model_open(const char *path, ww_device *device, const ww_model_options *options, ww_model **model)
{
    FLOAT_GUARD();
    ww_model_options asked = ww_model_options_default();
    ww_gguf *gguf = NULL;
    if (!path || !device || !model)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_model_open: %s is NULL", !path ? "path" : device ? "model" : "device");
    ww_status status = options ? struct_read(&asked, sizeof asked, options, "ww_model_open", "ww_model_options") : WW_OK;
    if (status != WW_OK)
        return status;
    if ((int)asked.pooling < WW_POOLING_NONE || asked.pooling > WW_POOLING_RANK)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_model_open: pooling is %d; it must be none, mean, cls, last or rank",
                       (int)asked.pooling);
    ww_model *made = memory_alloc_zeroed(1, sizeof *made);
    if (!made)
        return memory_failed("model", sizeof *made);
    made->opened_in = process_here();
    made->device = made->work.device = device;
    atomic_init(&made->users, 1);
    pthread_mutex_init(&made->lock, NULL);
    if (asked.chat_template)
        status = make_chat(asked.chat_template, strlen(asked.chat_template), made);
    if (status != WW_OK) {
        model_release(made);
        return status;
    }
    status = is_folder(path) ? convert_open(path, device, &gguf) : name_formats(ww_gguf_open(path, &gguf));
    if (status == WW_OK && !asked.copy_weights)
        status = gguf_map(gguf);
    if (status == WW_OK)
        status = architecture_find(gguf, &made->architecture);
    if (status == WW_OK)
        status = sizes_read(gguf, made->architecture, asked.pooling, &made->sizes);
    if (status == WW_OK)
        status = open_file(gguf, &asked, made);
    if (status != WW_OK)
        status = name_file(status, path);
    ww_gguf_close(gguf);
    if (status == WW_OK)
        *model = made;
    else
        model_release(made);
    return status;
}

ww_status ww_model_describe(const ww_model *model, ww_model_info *info)
{
    FLOAT_GUARD();
    const ww_status status = model_check(model, "ww_model_describe");
    if (status != WW_OK)
        return status;
    ww_model_info now = model->info;
    now.texts_cut = (int64_t)atomic_load(&model->texts_cut);
    return struct_write(info, &now, sizeof now, "ww_model_describe", "ww_model_info");
}
