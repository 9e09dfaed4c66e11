/* `warpwave gguf`: what is in a GGUF file, whether it is sound, the same with smaller weights, and how two differ. */
#include "cli/gguf/gguf.h"

#include <stdio.h>
#include <string.h>

#include "cli/operands.h"

typedef struct gguf_settings {
    bool json;
    const char *type;
    const char *device;
} gguf_settings;

#define DEVICE_OPTION OPTION_IS_TEXT(gguf_settings, device, false, "--device", "D", "auto, cpu, cuda:0, ...; default: auto")
static const option info_options[] = {OPTION_IS_FLAG(gguf_settings, json, "--json", "print JSON")};
static const option device_options[] = {DEVICE_OPTION};
static const option quantize_options[] = {
    OPTION_IS_TEXT(gguf_settings, type, true, "--type", "T", "what weights become: q4_K, q8_0, f16, ..."), DEVICE_OPTION};
/* All of them, for help. */
static const option all_options[] = {
    OPTION_IS_FLAG(gguf_settings, json, "--json", "for info: print JSON"),
    OPTION_IS_TEXT(gguf_settings, type, false, "--type", "T", "for quantize: the type of the weights, q4_K, q8_0, f16, ..."),
    OPTION_IS_TEXT(gguf_settings, device, false, "--device", "D",
                   "for quantize and verify: auto, cpu, cuda:0, ...; default: auto"),
};

static ww_status info_run(const char **files, const gguf_settings *s)
{
    ww_gguf *g = NULL;
    ww_status status = ww_gguf_open(files[0], &g);
    if (status == WW_OK)
        status = s->json ? gguf_print_json(g) : gguf_print(g, files[0]);
    ww_gguf_close(g);
    return status;
}

static ww_status verify_run(const char **files, const gguf_settings *s)
{
    ww_gguf *g = NULL;
    ww_device *device = NULL;
    ww_status status = ww_gguf_open(files[0], &g);
    if (status == WW_OK)
        status = ww_device_open(s->device ? s->device : "cpu", &device);
    if (status == WW_OK)
        status = gguf_verify(g, device);
    ww_device_close(device);
    ww_gguf_close(g);
    return status;
}

static ww_status quantize_run(const char **files, const gguf_settings *s)
{
    ww_gguf *g = NULL;
    ww_device *device = NULL;
    ww_quant_type type = WW_QUANT_F32;
    ww_status status = ww_quant_find(s->type, &type);
    if (status == WW_OK && (type == WW_QUANT_Q8_1 || type == WW_QUANT_Q8_K))
        status = ww_fail(WW_INVALID_ARGUMENT, "%s is for activations, not for weights", ww_quant_name(type));
    if (status != WW_OK)
        return status;
    status = ww_gguf_open(files[0], &g);
    if (status == WW_OK)
        status = ww_device_open(s->device, &device);
    if (status == WW_OK)
        status = gguf_quantize(g, files[1], type, device);
    ww_device_close(device);
    ww_gguf_close(g);
    return status;
}

static ww_status diff_run(const char **files, const gguf_settings *s)
{
    (void)s;
    ww_gguf *a = NULL, *b = NULL;
    int64_t differences = 0;
    ww_status status = ww_gguf_open(files[0], &a);
    if (status == WW_OK)
        status = ww_gguf_open(files[1], &b);
    if (status == WW_OK)
        status = gguf_compare(a, b, &differences);
    ww_gguf_close(a);
    ww_gguf_close(b);
    if (status == WW_OK && differences > 0)
        status = ww_fail(WW_NOT_FOUND, "%s and %s differ in %lld places", files[0], files[1], (long long)differences);
    return status;
}

static const struct {
    const char *name;
    syntax takes;
    ww_status (*run)(const char **files, const gguf_settings *s);
} actions[] = {
    {"info", {info_options, sizeof info_options / sizeof *info_options, "info FILE", 1}, info_run},
    {"verify", {device_options, sizeof device_options / sizeof *device_options, "verify FILE", 1}, verify_run},
    {"quantize", {quantize_options, sizeof quantize_options / sizeof *quantize_options, "quantize IN OUT", 2}, quantize_run},
    {"diff", {NULL, 0, "diff A B", 2}, diff_run},
};

static exit_code gguf_run(const char *const *arguments, size_t count)
{
    for (size_t i = 0; count > 0 && i < sizeof actions / sizeof *actions; i++) {
        gguf_settings settings = {0};
        const char *files[2] = {NULL, NULL};
        if (strcmp(arguments[0], actions[i].name) != 0)
            continue;
        const argument_list given = {arguments + 1, count - 1};
        const exit_code code = operands_parse(&command_gguf, &actions[i].takes, given, files, &settings);
        return code == EXIT_CODE_OK ? command_end(&command_gguf, actions[i].run(files, &settings)) : code;
    }
    if (count == 0)
        return command_misused(&command_gguf, "no action given; the actions are info, verify, quantize and diff");
    return command_misused(&command_gguf, "unknown action '%s'; the actions are info, verify, quantize and diff", arguments[0]);
}

const command command_gguf = {
    .name = "gguf",
    .summary = "Inspect, verify, quantize and compare GGUF model files",
    .notes = "Actions:\n"
             "  info FILE        list keys and tensors\n"
             "  verify FILE      read everything and count weights that are not finite\n"
             "  quantize IN OUT  write the model with its weights as --type. Vectors, norms and biases become f32; a tensor\n"
             "                   whose rows are not a multiple of the type's block becomes q8_0, or f16 if that does not fit\n"
             "                   either\n"
             "  diff A B         list keys and tensors that differ between two files; exit code 1 if any do\n"
             "For a model that is split into several files, name the first.\n",
    .operand = "ACTION FILE...",
    .options = all_options,
    .option_count = sizeof all_options / sizeof *all_options,
    .run = gguf_run,
};
