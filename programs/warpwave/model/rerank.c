/* `warpwave model rerank`: sorts the texts of a file by how well they answer a query. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "warpwave/command.h"
#include "warpwave/file_uses.h"
#include "warpwave/json.h"
#include "warpwave/model/model.h"
#include "warpwave/terminal.h"
#include "warpwave/text/lines.h"

typedef struct scored {
    size_t line; /* from 0 */
    float score;
} scored;

/* Best first; equal scores in the order of the file. */
static int compare(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->line < y->line ? -1 : 1;
}

static void print_json(const scored *list, size_t count, const text_file *file)
{
    json_writer w = {.to = stdout, .digits = JSON_DIGITS_F32};
    json_open(&w, NULL, '[');
    for (size_t i = 0; i < count; i++) {
        json_open(&w, NULL, '{');
        json_put_integer(&w, "index", (int64_t)list[i].line);
        json_put_real(&w, "score", (double)list[i].score);
        json_put_text(&w, "text", file->texts[list[i].line]);
        json_close(&w);
    }
    json_close(&w);
}

static ww_status score(model_call *call, const text_file *file, scored *list)
{
    progress bar;
    float *scores = memory_alloc((file->count + 1) * sizeof *scores);
    if (!scores)
        return memory_failed("scores", file->count * sizeof *scores);
    progress_begin(&bar, "reranking texts", (int64_t)file->count);
    const ww_status status =
        ww_model_rerank(call->model, call->settings.query, file->texts, NULL, file->count, scores, progress_report, &bar);
    progress_end(&bar);
    for (size_t i = 0; i < file->count && status == WW_OK; i++)
        list[i] = (scored){i, scores[i]};
    memory_free(scores);
    return status;
}

static ww_status rerank(model_call *call, const text_file *file)
{
    const model_settings *s = &call->settings;
    scored *list = memory_alloc((file->count + 1) * sizeof *list);
    if (!list)
        return memory_failed("scores", file->count * sizeof *list);
    const ww_status status = score(call, file, list);
    if (status == WW_OK) {
        const size_t count = s->top > 0 && (size_t)s->top < file->count ? (size_t)s->top : file->count;
        qsort(list, file->count, sizeof *list, compare);
        if (s->json)
            print_json(list, count, file);
        for (size_t i = 0; i < count && !s->json; i++)
            printf("%9.4f  %s\n", (double)list[i].score, file->texts[list[i].line]);
    }
    memory_free(list);
    return status;
}

ww_status model_rerank_run(model_call *call)
{
    const model_settings *s = &call->settings;
    const file_use uses[] = {{.what = "MODEL", .path = call->path}, {.what = "--in", .path = s->in}};
    text_file file = {0};
    call->settings.pooling = WW_POOLING_RANK; /* files of rerankers need not say it */
    ww_status status = file_uses_check(uses, sizeof uses / sizeof *uses);
    if (status == WW_OK)
        status = text_file_read(&file, s->in, s->field);
    if (status == WW_OK)
        status = model_call_open(call);
    if (status == WW_OK)
        status = rerank(call, &file);
    text_file_free(&file);
    return status;
}
