/* `warpwave gguf from-safetensors`: turns a folder from a model hub into one GGUF file. */
#include <stdio.h>

#include <warpwave/model.h>
#include <warpwave/quant.h>

#include "base/text.h"
#include "warpwave/gguf/gguf.h"
#include "warpwave/json.h"
#include "warpwave/terminal.h"

ww_status gguf_from_safetensors_check(const char *type)
{
    ww_quant_type found;
    return type ? ww_quant_find(type, &found) : WW_OK;
}

static ww_status print_json(const gguf_folder *job, const ww_conversion_report *r)
{
    json_kept kept;
    const ww_status status = json_keep(&kept, JSON_DIGITS_F32);
    if (status != WW_OK)
        return status;
    json_open(&kept.writer, NULL, '{');
    json_put_text(&kept.writer, "architecture", r->architecture);
    json_put_text(&kept.writer, "type", job->type ? job->type : "");
    json_put_integer(&kept.writer, "tensors", r->tensors);
    json_put_bool(&kept.writer, "pooling_assumed", r->pooling_assumed);
    json_put_integer(&kept.writer, "bytes_before", r->bytes_before);
    json_put_integer(&kept.writer, "bytes_after", r->bytes_after);
    json_close(&kept.writer);
    const ww_status checked = json_kept_check(&kept);
    if (checked == WW_OK)
        json_kept_print(&kept);
    json_kept_free(&kept);
    return checked;
}

static void print(const gguf_folder *job, const ww_conversion_report *r)
{
    char before[32], after[32];
    if (r->other > 0 && terminal_notes())
        fprintf(stderr, "warpwave gguf: %lld %s rows that are not a multiple of %s's block; it became q8_0, or f16\n",
                (long long)r->other, r->other == 1 ? "matrix has" : "matrices have", job->type);
    if (r->pooling_assumed && terminal_notes())
        fprintf(stderr,
                "warpwave gguf: the folder names no pooling, so the mean is used, as in sentence-transformers; --pooling "
                "chooses another\n");
    if (!terminal_notes())
        return;
    print_plain(stdout, job->out_path);
    printf(": %s, %lld tensor%s, %s in the folder, %s written\n", r->architecture, (long long)r->tensors, plural(r->tensors),
           human_bytes(before, r->bytes_before), human_bytes(after, r->bytes_after));
}

ww_status gguf_from_safetensors(const gguf_folder *job)
{
    progress bar;
    ww_conversion_report report = ww_conversion_report_default();
    ww_conversion work = ww_conversion_default();
    progress_begin(&bar, "converting", 0);
    work.folder = job->folder;
    work.out_path = job->out_path;
    work.type = job->type;
    work.pooling = (ww_pooling)job->pooling;
    work.device = job->device;
    work.progress = progress_report;
    work.progress_user = &bar;
    const ww_status status = ww_model_convert(&work, &report);
    progress_end(&bar);
    if (status != WW_OK)
        return status;
    if (job->json)
        return print_json(job, &report);
    print(job, &report);
    return WW_OK;
}
