/* `warpwave safetensors`: what is in a .safetensors file. */
#include <stdio.h>
#include <string.h>
#include <warpwave/arrays.h>

#include "base/text.h"
#include "warpwave/json.h"
#include "warpwave/operands.h"
#include "warpwave/terminal.h"

typedef struct safetensors_settings {
    bool json;
} safetensors_settings;

static const option options[] = {OPTION_IS_FLAG(safetensors_settings, json, "--json", "print one JSON object")};

static ww_status print_json(const ww_safetensors *file)
{
    json_writer w = {.to = stdout, .digits = JSON_DIGITS_F32};
    ww_status status = WW_OK;
    json_open(&w, NULL, '{');
    json_open(&w, "metadata", '{');
    for (int64_t i = 0; status == WW_OK && i < ww_safetensors_metadata_count(file); i++) {
        const char *key, *value;
        status = ww_safetensors_metadata_at(file, i, &key, &value);
        if (status == WW_OK)
            json_put_text(&w, key, value);
    }
    json_close(&w);
    json_open(&w, "tensors", '[');
    for (int64_t i = 0; status == WW_OK && i < ww_safetensors_count(file); i++) {
        ww_array_info info = ww_array_info_default();
        status = ww_safetensors_at(file, i, &info);
        json_open(&w, NULL, '{');
        json_put_text(&w, "name", info.name);
        json_put_text(&w, "type", info.type);
        json_open(&w, "shape", '[');
        for (int32_t d = 0; d < info.rank; d++)
            json_put_integer(&w, NULL, info.shape[d]);
        json_close(&w);
        json_put_integer(&w, "offset", info.offset);
        json_put_integer(&w, "bytes", info.bytes);
        json_close(&w);
    }
    json_close(&w);
    json_close(&w);
    return status;
}

static ww_status print_text(const ww_safetensors *file, const char *path)
{
    int64_t total = 0;
    char bytes[32];
    const int64_t count = ww_safetensors_count(file);
    ww_array_info info = ww_array_info_default();
    ww_status status = WW_OK;
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        status = ww_safetensors_at(file, i, &info);
        total += info.bytes; /* cannot overflow: the sum is at most the file's size */
    }
    print_plain(stdout, path);
    printf(": %lld tensor%s, %s\n", (long long)count, plural(count), human_bytes(bytes, total));
    for (int64_t i = 0; status == WW_OK && i < ww_safetensors_metadata_count(file); i++) {
        const char *key, *value;
        status = ww_safetensors_metadata_at(file, i, &key, &value);
        if (status != WW_OK)
            break;
        printf("  ");
        print_plain(stdout, key);
        printf(" = ");
        print_plain(stdout, value);
        putchar('\n');
    }
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        char shape[WW_ARRAY_RANK_MAX * 24] = "";
        status = ww_safetensors_at(file, i, &info);
        if (status != WW_OK)
            break;
        for (int32_t d = 0; d < info.rank; d++)
            snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%lld", d ? " x " : "", (long long)info.shape[d]);
        printf("  ");
        print_plain(stdout, info.type);
        printf("%*s %-24s %10s  ", (int)strlen(info.type) < 8 ? 8 - (int)strlen(info.type) : 0, "", shape,
               human_bytes(bytes, info.bytes));
        print_plain(stdout, info.name);
        putchar('\n');
    }
    return status;
}

static const action actions[] = {
    {"info", "FILE", "list metadata and tensors", options, sizeof options / sizeof *options, NULL},
};

static exit_code safetensors_run(const char *const *arguments, size_t count)
{
    safetensors_settings settings = {0};
    const char *path = NULL;
    const action *asked = command_action(&command_safetensors, arguments, count);
    if (!asked)
        return EXIT_CODE_USAGE;
    const exit_code code =
        operands_parse(&command_safetensors, asked, (argument_list){arguments + 1, count - 1}, &path, &settings);
    if (code != EXIT_CODE_OK)
        return code;
    ww_safetensors *file = NULL;
    ww_status status = ww_safetensors_open_stream(path, &file);
    if (status == WW_OK)
        status = settings.json ? print_json(file) : print_text(file, path);
    ww_safetensors_close(file);
    return command_end(&command_safetensors, status);
}

const command command_safetensors = {
    .name = "safetensors",
    .summary = "Inspect .safetensors files",
    .actions = actions,
    .action_count = sizeof actions / sizeof *actions,
    .run = safetensors_run,
};
