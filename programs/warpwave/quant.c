/* `warpwave quant`: converts raw floats to raw blocks and back, for data that is not in a GGUF file. */
#include <stdio.h>
#include <string.h>
#include <warpwave/quant.h>

#include "base/files/output.h"
#include "base/integers.h"
#include "base/memory.h"
#include "warpwave/file_uses.h"
#include "warpwave/operands.h"
#include "warpwave/terminal.h"

typedef struct quant_settings {
    const char *type;
    int64_t cols;
    const char *device;
    bool quiet;
} quant_settings;

static const option quant_options[] = {
    OPTION_IS_TEXT(quant_settings, type, true, "--type", "T", "the block type: q4_0, q4_K, q8_0, f16, ..."),
    OPTION_IS_INTEGER(quant_settings, cols, true, "--cols", "N", 1, 2147483647, "numbers per row"),
    OPTION_IS_TEXT(quant_settings, device, false, "--device", "D", "auto, cpu, cuda:0, ...; default: auto"),
    OPTION_IS_FLAG(quant_settings, quiet, "--quiet", "show no progress bar and no notes"),
};

enum { PIECE_BYTES = 16 << 20 };

typedef struct quant_run {
    file_source in;
    output *out;
    ww_device *device;
    ww_quant_type type;
    int64_t cols, rows, row_bytes, in_row_bytes, out_row_bytes;
    bool encode;
} quant_run;

static ww_status convert_piece(const quant_run *run, int64_t first, int64_t count, void *from, void *to)
{
    ww_quant *q = NULL;
    ww_status status = source_read(&run->in, first * run->in_row_bytes, from, (size_t)(count * run->in_row_bytes));
    if (status == WW_OK && run->encode)
        status = ww_quant_from_f32(run->device, run->type, from, count, run->cols, 0, &q);
    else if (status == WW_OK)
        status = ww_quant_load(run->device, run->type, from, (size_t)(count * run->row_bytes), count, run->cols, &q);
    if (status == WW_OK)
        status = run->encode ? ww_quant_read_blocks(q, 0, count, to) : ww_quant_read_f32(q, 0, count, to);
    ww_quant_destroy(q);
    return status == WW_OK ? output_write(run->out, to, (size_t)(count * run->out_row_bytes)) : status;
}

static ww_status convert(quant_run *run)
{
    const int64_t piece = PIECE_BYTES / (run->cols * (int64_t)sizeof(float)) + 1;
    void *from = memory_alloc((size_t)(piece * run->in_row_bytes)), *to = memory_alloc((size_t)(piece * run->out_row_bytes));
    ww_status status = WW_OK;
    if (!from || !to)
        status = memory_failed("rows to convert", (size_t)(piece * (run->in_row_bytes + run->out_row_bytes)));
    progress bar;
    progress_begin(&bar, run->encode ? "encoding" : "decoding", run->rows);
    for (int64_t done = 0; status == WW_OK && done < run->rows; done += piece) {
        const int64_t now = min_i64(run->rows - done, piece);
        status = convert_piece(run, done, now, from, to);
        if (status == WW_OK && progress_report(done + now, run->rows, &bar) != 0)
            status = interrupt_check();
    }
    progress_end(&bar);
    memory_free(from);
    memory_free(to);
    return status;
}

static ww_status prepare(quant_run *run, const char **files, const quant_settings *s)
{
    const file_use uses[] = {{.what = "IN", .path = files[0]}, {.what = "OUT", .path = files[1], .output = true}};
    ww_status status = command_line_wrong(ww_quant_find(s->type, &run->type));
    if (status == WW_OK)
        status = command_line_wrong(ww_quant_row_bytes(run->type, s->cols, &run->row_bytes));
    if (status == WW_OK)
        status = file_uses_check(uses, 2);
    if (status == WW_OK)
        status = source_open_stream(&run->in, files[0]);
    if (status != WW_OK)
        return status;
    run->cols = s->cols;
    run->in_row_bytes = run->encode ? s->cols * (int64_t)sizeof(float) : run->row_bytes;
    run->out_row_bytes = run->encode ? run->row_bytes : s->cols * (int64_t)sizeof(float);
    run->rows = run->in.size / run->in_row_bytes;
    if (run->in.size % run->in_row_bytes != 0)
        return ww_fail(WW_CORRUPT_FILE, "%s: offset %lld: a row has %lld bytes, but only %lld are left", files[0],
                       (long long)(run->rows * run->in_row_bytes), (long long)run->in_row_bytes,
                       (long long)(run->in.size % run->in_row_bytes));
    status = command_open_device(s->device, &run->device);
    if (status != WW_OK)
        return status;
    run->out = memory_alloc_zeroed(1, sizeof *run->out);
    return run->out ? output_open(run->out, output_path(files[1])) : memory_failed("writing a file", sizeof *run->out);
}

static const action actions[] = {
    {"encode", "IN OUT", "read contiguous rows of little-endian f32 and write their blocks", quant_options,
     sizeof quant_options / sizeof *quant_options, NULL},
    {"decode", "IN OUT", "read blocks and write the f32 numbers that they stand for", quant_options,
     sizeof quant_options / sizeof *quant_options, NULL},
};

static exit_code quant_run_command(const char *const *arguments, size_t count)
{
    quant_settings settings = {0};
    quant_run run = {.in = {.descriptor = -1}};
    const char *operands[2] = {NULL, NULL};
    const action *asked = command_action(&command_quant, arguments, count);
    if (!asked)
        return EXIT_CODE_USAGE;
    const exit_code code =
        operands_parse(&command_quant, asked, (argument_list){arguments + 1, count - 1}, operands, &settings);
    if (code != EXIT_CODE_OK)
        return code;
    if (settings.quiet)
        terminal_be_quiet();
    run.encode = strcmp(asked->name, "encode") == 0;
    ww_status status = prepare(&run, operands, &settings);
    if (status == WW_OK)
        status = convert(&run);
    if (status == WW_OK)
        status = output_finish(run.out);
    if (run.out)
        output_discard(run.out);
    memory_free(run.out);
    ww_device_close(run.device);
    source_close(&run.in);
    return command_end(&command_quant, status);
}

const command command_quant = {
    .name = "quant",
    .summary = "Encode raw f32 numbers as blocks of a quantized type, or decode them",
    .notes = "IN and OUT may be pipes, or -, standard input and output; OUT may not be IN.\n",
    .actions = actions,
    .action_count = sizeof actions / sizeof *actions,
    .run = quant_run_command,
};
