/* `warpwave model`: what a model file is, its tokens, embeddings, logits, and text that it generates. */
#include "cli/model/model.h"

#include <string.h>

#include "cli/operands.h"
#include "cli/terminal.h"

#define FLAG(...)      OPTION_IS_FLAG(model_settings, __VA_ARGS__)
#define TEXT(...)      OPTION_IS_TEXT(model_settings, __VA_ARGS__)
#define NUMBER(...)    OPTION_IS_NUMBER(model_settings, __VA_ARGS__)
#define INTEGER(...)   OPTION_IS_INTEGER(model_settings, __VA_ARGS__)
#define JSON_OPTION    FLAG(json, "--json", "print JSON")
#define QUIET_OPTION   FLAG(quiet, "--quiet", "show no progress bar and no notes")
#define PRECISE_OPTION FLAG(precise, "--precise", "round no activation to 8 bits: slower, and as near as f32 comes")
#define DEVICE_OPTION  TEXT(device, false, "--device", "D", "auto, cpu, cuda:0, ...")
#define CACHE_OPTION                                                                                                           \
    OPTION_IS_CHOICE(model_settings, cache, false, "--cache", "f16|f32|q8_0", "what keys and values are kept as")
#define PROMPT_OPTION TEXT(prompt, false, "--prompt", "T", "the text")
#define IN_OPTION     TEXT(in, false, "--in", "FILE", "a file of texts")
#define FIELD_OPTION  TEXT(field, false, "--field", "NAME", "the field of JSON lines that has the text; 'text' if not given")
#define PLAIN_OPTION  FLAG(plain, "--plain", "names of special tokens in the text are text")

static const option info_options[] = {DEVICE_OPTION, QUIET_OPTION, JSON_OPTION};
static const option tokenize_options[] = {PROMPT_OPTION, IN_OPTION, FIELD_OPTION, PLAIN_OPTION, JSON_OPTION};
static const option embed_options[] = {TEXT(in, true, "--in", "FILE", "a file of texts"),
                                       TEXT(out, true, "--out", "FILE", "where the vectors go: .npy, .fbin"),
                                       FIELD_OPTION,
                                       PRECISE_OPTION,
                                       DEVICE_OPTION,
                                       QUIET_OPTION,
                                       JSON_OPTION};
static const option logits_options[] = {TEXT(prompt, true, "--prompt", "T", "the text"),
                                        TEXT(out, true, "--out", "FILE", "where the logits go, a .npy"),
                                        PLAIN_OPTION,
                                        CACHE_OPTION,
                                        PRECISE_OPTION,
                                        DEVICE_OPTION,
                                        QUIET_OPTION,
                                        JSON_OPTION};

/* How tokens are chosen; help says "for generate" of them. */
#define SAMPLING_OPTIONS                                                                                                       \
    INTEGER(tokens, false, "-n", "N", 0, INT32_MAX, "for generate: tokens at most (default: 128)"),                            \
        NUMBER(temperature, "--temperature", "X", 0, 1000000, "for generate: 0 takes the likeliest token (default: 0)"),       \
        INTEGER(top_k, false, "--top-k", "N", 0, INT32_MAX, "for generate: choose among the N likeliest; 0: all (default)"),   \
        NUMBER(top_p, "--top-p", "X", 0, 1, "for generate: among the fewest that have X of the probability (default: 1)"),     \
        NUMBER(min_p, "--min-p", "X", 0, 1, "for generate: among those with X times that of the likeliest (default: 0)"),      \
        NUMBER(repetition_penalty, "--repetition-penalty", "X", 0, 1000000,                                                    \
               "for generate: divide logits of tokens that were there (default: 1)"),                                          \
        INTEGER(repetition_window, false, "--repetition-window", "N", -1, INT32_MAX,                                           \
                "for generate: how far back that looks; -1: everywhere (default: 64)"),                                        \
        INTEGER(seed, false, "--seed", "N", 0, INT64_MAX, "for generate: another one draws other tokens (default: 0)"),        \
        FLAG(chat, "--chat", "for generate: the prompt is what a user says, in the model's chat template"),                    \
        TEXT(system, false, "--system", "T", "for generate --chat: what the system says before"),                              \
        FLAG(ignore_eos, "--ignore-eos", "for generate: go on where the model ends its text")
static const option generate_options[] = {TEXT(prompt, true, "--prompt", "T", "the text"),
                                          PLAIN_OPTION,
                                          SAMPLING_OPTIONS,
                                          CACHE_OPTION,
                                          PRECISE_OPTION,
                                          DEVICE_OPTION,
                                          QUIET_OPTION,
                                          JSON_OPTION};
/* All of them, for help. */
static const option all_options[] = {
    TEXT(prompt, false, "--prompt", "T", "for tokenize, logits and generate: the text"),
    TEXT(in, false, "--in", "FILE", "for tokenize and embed: a file of texts, one a line, or a field of .jsonl"),
    FIELD_OPTION,
    TEXT(out, false, "--out", "FILE", "for embed: where vectors go, .npy or .fbin; for logits: a .npy"),
    FLAG(plain, "--plain", "names of special tokens in the text are text, not these tokens"),
    SAMPLING_OPTIONS,
    OPTION_IS_CHOICE(model_settings, cache, false, "--cache", "f16|f32|q8_0",
                     "for logits and generate: what keys and values are kept as (default: f16)"),
    PRECISE_OPTION,
    DEVICE_OPTION,
    QUIET_OPTION,
    FLAG(json, "--json", "print JSON; for tokenize a line for each text"),
};

ww_status model_call_open(model_call *call)
{
    static const ww_quant_type caches[] = {WW_QUANT_F16, WW_QUANT_F32, WW_QUANT_Q8_0};
    ww_model_options options = ww_model_options_default();
    progress bar;
    ww_status status = command_open_device(call->settings.device, &call->device);
    if (status != WW_OK)
        return status;
    progress_begin(&bar, "loading", 0);
    options.activations = call->settings.precise ? WW_ACTIVATIONS_FLOAT : WW_ACTIVATIONS_CODED;
    options.cache = caches[call->settings.cache];
    options.progress = progress_report;
    options.progress_user = &bar;
    status = ww_model_open(call->path, call->device, &options, &call->model);
    progress_end(&bar);
    call->info = ww_model_info_default();
    return status == WW_OK ? ww_model_describe(call->model, &call->info) : status;
}

#define TAKES(options, operands) {(options), sizeof(options) / sizeof *(options), operands, 1}

static const struct {
    const char *name;
    syntax takes;
    ww_status (*run)(model_call *call);
} actions[] = {
    {"info", TAKES(info_options, "info MODEL"), model_info_run},
    {"tokenize", TAKES(tokenize_options, "tokenize MODEL"), model_tokenize_run},
    {"embed", TAKES(embed_options, "embed MODEL"), model_embed_run},
    {"logits", TAKES(logits_options, "logits MODEL"), model_logits_run},
    {"generate", TAKES(generate_options, "generate MODEL"), model_generate_run},
};

static exit_code model_run(const char *const *arguments, size_t count)
{
    for (size_t i = 0; count > 0 && i < sizeof actions / sizeof *actions; i++) {
        model_call call = {.settings = {.tokens = 128, .top_p = 1.0, .repetition_penalty = 1.0, .repetition_window = 64}};
        if (strcmp(arguments[0], actions[i].name) != 0)
            continue;
        const argument_list given = {arguments + 1, count - 1};
        const exit_code code = operands_parse(&command_model, &actions[i].takes, given, &call.path, &call.settings);
        if (code != EXIT_CODE_OK)
            return code;
        if (call.settings.quiet)
            terminal_be_quiet();
        const ww_status status = actions[i].run(&call);
        const exit_code ended = command_end(&command_model, status);
        ww_model_close(call.model);
        ww_device_close(call.device);
        return ended;
    }
    if (count == 0)
        return command_misused(&command_model, "no action given; the actions are info, tokenize, embed, logits and generate");
    return command_misused(&command_model, "unknown action '%s'; the actions are info, tokenize, embed, logits and generate",
                           arguments[0]);
}

const command command_model = {
    .name = "model",
    .summary = "Embed texts and generate text with a model from a GGUF file",
    .notes =
        "Actions:\n"
        "  info MODEL      what it is: architecture, sizes, memory, context, licence\n"
        "  tokenize MODEL  the tokens of a text, or of each text of a file\n"
        "  embed MODEL     a vector for each text of a file, of length 1\n"
        "  logits MODEL    what the model says about the token behind a text: a number for each token\n"
        "  generate MODEL  the text that the model puts behind a text, as it comes\n"
        "\n"
        "MODEL is a GGUF file; `warpwave gguf from-safetensors` makes one of a model's folder. The same text and options give\n"
        "the same tokens, vectors and logits on every device.\n",
    .operand = "ACTION MODEL",
    .options = all_options,
    .option_count = sizeof all_options / sizeof *all_options,
    .run = model_run,
};
