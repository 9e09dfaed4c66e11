/* `warpwave gguf`: prints, verifies, quantizes and compares GGUF files. */
#include "warpwave/gguf/gguf.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "warpwave/file_uses.h"
#include "warpwave/operands.h"
#include "warpwave/terminal.h"

typedef struct gguf_settings {
    bool json, pure, quiet;
    int pooling; /* a ww_pooling */
    const char *type;
    const char *device;
    int64_t differences; /* differences that `diff` found */
} gguf_settings;

#define FLAG(...)    OPTION_IS_FLAG(gguf_settings, __VA_ARGS__)
#define JSON_OPTION  FLAG(json, "--json", "print one JSON object")
#define QUIET_OPTION FLAG(quiet, "--quiet", "show no progress bar and no notes")
#define DEVICE_IS(which)                                                                                                       \
    OPTION_IS_TEXT(gguf_settings, device, false, "--device", "D", "auto, cpu, cuda:0, ...; default: " which)
#define DEVICE_OPTION DEVICE_IS("cpu")
static const option info_options[] = {JSON_OPTION};
static const option verify_options[] = {DEVICE_OPTION, QUIET_OPTION, JSON_OPTION};
static const option quantize_options[] = {
    OPTION_IS_TEXT(gguf_settings, type, true, "--type", "T", "a mix or a type for the weights: Q4_K_M, Q6_K, q8_0, f16, ..."),
    FLAG(pure, "--pure", "give every matrix the type itself, without the mix's exceptions"), DEVICE_IS("auto"), QUIET_OPTION,
    JSON_OPTION};
static const option from_options[] = {OPTION_IS_TEXT(gguf_settings, type, false, "--type", "T",
                                                     "type of the matrices: f32, f16, q8_0, ...; default: as in the folder"),
                                      OPTION_IS_CHOICE(gguf_settings, pooling, false, "--pooling", "folder|mean|cls|last",
                                                       "of an embedder; default: as in the folder, and mean if it names none"),
                                      DEVICE_OPTION, QUIET_OPTION, JSON_OPTION};
static const option diff_options[] = {DEVICE_OPTION, JSON_OPTION};
static ww_status info_run(const char **files, gguf_settings *s)
{
    ww_gguf *g = NULL;
    ww_status status = ww_gguf_open_stream(files[0], &g);
    if (status == WW_OK)
        status = s->json ? gguf_print_json(g) : gguf_print(g, files[0]);
    ww_gguf_close(g);
    return status;
}

static ww_status verify_run(const char **files, gguf_settings *s)
{
    ww_gguf *g = NULL;
    ww_device *device = NULL;
    ww_status status = ww_gguf_open_stream(files[0], &g);
    if (status == WW_OK)
        status = command_open_device(s->device ? s->device : "cpu", &device);
    if (status == WW_OK)
        status = gguf_verify(g, device, s->json);
    ww_device_close(device);
    ww_gguf_close(g);
    return status;
}

/* Refuses an output that is one of the model's own files. */
static ww_status check_output(const ww_gguf *g, const char **files)
{
    ww_gguf_info info = ww_gguf_info_default();
    char other[PATH_MAX];
    ww_status status = ww_gguf_describe(g, &info);
    for (int64_t i = 0; status == WW_OK && i < info.files; i++) {
        if (i > 0)
            status = ww_gguf_file_path(g, i, other, sizeof other);
        const file_use uses[] = {{.what = "IN", .path = i == 0 ? files[0] : other},
                                 {.what = "OUT", .path = files[1], .output = true}};
        if (status == WW_OK)
            status = file_uses_check(uses, 2);
    }
    return status;
}

static ww_status quantize_run(const char **files, gguf_settings *s)
{
    ww_gguf *g = NULL;
    gguf_quantization q = {.in_path = files[0], .out_path = files[1], .type = s->type, .pure = s->pure, .json = s->json};
    ww_status status = command_line_wrong(gguf_quantize_check(s->type));
    if (status == WW_OK && s->json && strcmp(files[1], "-") == 0)
        status = command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--json and the model both go to standard output"));
    if (status == WW_OK)
        status = ww_gguf_open_stream(files[0], &g);
    if (status == WW_OK)
        status = check_output(g, files);
    if (status == WW_OK)
        status = command_open_device(s->device, &q.device);
    q.in = g;
    if (status == WW_OK)
        status = gguf_quantize(&q);
    ww_device_close(q.device);
    ww_gguf_close(g);
    return status;
}

static ww_status from_run(const char **files, gguf_settings *s)
{
    gguf_folder job = {.folder = files[0], .out_path = files[1], .type = s->type, .pooling = s->pooling, .json = s->json};
    ww_status status = command_line_wrong(gguf_from_safetensors_check(s->type));
    if (status == WW_OK)
        status = command_open_device(s->device ? s->device : "cpu", &job.device);
    if (status == WW_OK)
        status = gguf_from_safetensors(&job);
    ww_device_close(job.device);
    return status;
}

static ww_status diff_run(const char **files, gguf_settings *s)
{
    ww_gguf *a = NULL, *b = NULL;
    gguf_comparison c = {.json = s->json};
    ww_status status = WW_OK;
    if (strcmp(files[0], "-") == 0 && strcmp(files[1], "-") == 0)
        status = command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "only one of A and B can be standard input"));
    if (status == WW_OK)
        status = ww_gguf_open_stream(files[0], &a);
    if (status == WW_OK)
        status = ww_gguf_open_stream(files[1], &b);
    if (status == WW_OK)
        status = command_open_device(s->device ? s->device : "cpu", &c.device);
    c.a = a;
    c.b = b;
    if (status == WW_OK)
        status = gguf_diff(&c, &s->differences);
    ww_device_close(c.device);
    ww_gguf_close(a);
    ww_gguf_close(b);
    if (status == WW_OK && s->differences > 0 && !s->json)
        status = ww_fail(WW_NOT_FOUND, "%s and %s differ in %lld places", files[0], files[1], (long long)s->differences);
    return status;
}

typedef struct gguf_way {
    ww_status (*run)(const char **files, gguf_settings *s);
} gguf_way;

#define TAKES(options, function)                                                                                               \
    (options), sizeof(options) / sizeof *(options), &(const gguf_way)                                                          \
    {                                                                                                                          \
        function                                                                                                               \
    }

static const action actions[] = {
    {"info", "FILE", "list keys and tensors", TAKES(info_options, info_run)},
    {"verify", "FILE", "read everything and count weights that are not finite", TAKES(verify_options, verify_run)},
    {"quantize", "IN OUT", "write the model with its weights as --type, and print the sizes before and after",
     TAKES(quantize_options, quantize_run)},
    {"from-safetensors", "DIR OUT",
     "write the model of a folder with config.json, tokenizer.json and safetensors as one GGUF file",
     TAKES(from_options, from_run)},
    {"diff", "A B", "list keys and tensors that differ between two files, with the error of B's numbers; exit code 1 if any do",
     TAKES(diff_options, diff_run)},
};

static exit_code gguf_run(const char *const *arguments, size_t count)
{
    gguf_settings settings = {0};
    const char *files[2] = {NULL, NULL};
    const action *asked = command_action(&command_gguf, arguments, count);
    if (!asked)
        return EXIT_CODE_USAGE;
    exit_code code = operands_parse(&command_gguf, asked, (argument_list){arguments + 1, count - 1}, files, &settings);
    if (code != EXIT_CODE_OK)
        return code;
    if (settings.quiet)
        terminal_be_quiet();
    const gguf_way *way = asked->way;
    code = command_end(&command_gguf, way->run(files, &settings));
    /* With --json the report has the differences, and the command succeeds. */
    return code == EXIT_CODE_OK && settings.differences > 0 ? EXIT_CODE_OTHER : code;
}

const command command_gguf = {
    .name = "gguf",
    .summary = "Inspect, verify, quantize, convert and compare GGUF model files",
    .notes =
        "Types of quantize: the mixes Q2_K, Q3_K_S, Q3_K_M, Q3_K_L, Q4_K_S, Q4_K_M, Q5_K_S and Q5_K_M (Q3_K, Q4_K and\n"
        "Q5_K mean their M), which give the output, attention's values and other tensors more bits; f32, f16, bf16,\n"
        "q4_0, q4_1, q5_0, q5_1, q6_K, q8_0, iq4_nl, iq4_xs and mxfp4. Vectors, norms and biases become f32; a tensor whose\n"
        "rows are not a multiple of the type's block becomes q8_0, or f16 if that does not fit either.\n"
        "For a model that is split into several files, name the first. IN and OUT may be pipes, or -, standard input and\n"
        "output; OUT may not be IN.\n",
    .actions = actions,
    .action_count = sizeof actions / sizeof *actions,
    .run = gguf_run,
};
