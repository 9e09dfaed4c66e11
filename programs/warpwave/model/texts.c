/* `warpwave model tokenize` and `embed`: texts from the command line or from a file. */
#include <stdio.h>
#include <string.h>

#include <warpwave/files.h>

#include "base/memory.h"
#include "files/matrix.h"
#include "warpwave/command.h"
#include "warpwave/file_uses.h"
#include "warpwave/json.h"
#include "warpwave/model/model.h"
#include "warpwave/terminal.h"
#include "warpwave/text/lines.h"

/* ---- tokenize --------------------------------------------------------------------------------------------------------------
 */

static void print_tokens(const int32_t *ids, size_t count, bool json)
{
    json_writer w = {.to = stdout, .digits = JSON_DIGITS_F64, .compact = true};
    if (json) {
        json_open(&w, NULL, '{');
        json_open(&w, "ids", '[');
        for (size_t i = 0; i < count; i++)
            json_put_integer(&w, NULL, ids[i]);
        json_close(&w);
        json_close(&w);
        return;
    }
    for (size_t i = 0; i < count; i++)
        printf(i ? " %d" : "%d", (int)ids[i]);
    putchar('\n');
}

static ww_status tokenize_one(const ww_tokenizer *t, const char *text, const model_settings *s)
{
    const uint32_t flags = s->plain ? WW_TOKENS_PLAIN : 0;
    size_t count = 0;
    ww_status status = ww_tokenizer_encode(t, text, strlen(text), flags, NULL, 0, &count);
    int32_t *ids = status == WW_OK ? memory_alloc((count + 1) * sizeof *ids) : NULL;
    if (status == WW_OK)
        status = ids ? ww_tokenizer_encode(t, text, strlen(text), flags, ids, count, &count)
                     : memory_failed("tokens", count * sizeof *ids);
    if (status == WW_OK)
        print_tokens(ids, count, s->json);
    memory_free(ids);
    return status;
}

/* Tokenizing needs only the file's keys, so no weights are loaded. */
static ww_status tokenize_all(const model_call *call, const char *const *texts, size_t count)
{
    ww_gguf *gguf = NULL;
    ww_tokenizer *t = NULL;
    ww_status status = ww_gguf_open(call->path, &gguf);
    if (status == WW_OK)
        status = ww_tokenizer_create(gguf, &t);
    for (size_t i = 0; i < count && status == WW_OK; i++) {
        status = tokenize_one(t, texts[i], &call->settings);
        if (status == WW_OK)
            status = interrupt_check();
    }
    ww_tokenizer_destroy(t);
    ww_gguf_close(gguf);
    return status;
}

ww_status model_tokenize_run(model_call *call)
{
    const model_settings *s = &call->settings;
    text_file file = {0};
    if ((s->prompt != NULL) == (s->in != NULL))
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "tokenize takes --prompt or --in, one of them"));
    if (s->field && !s->in)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--field is for --in"));
    ww_status status = s->in ? text_file_read(&file, s->in, s->field) : WW_OK;
    if (status == WW_OK)
        status = tokenize_all(call, s->in ? file.texts : &s->prompt, s->in ? file.count : 1);
    text_file_free(&file);
    return status;
}

/* ---- embed -----------------------------------------------------------------------------------------------------------------
 */

ww_status model_report_to(const model_settings *s, FILE **report)
{
    const bool standard = s->out && strcmp(s->out, "-") == 0;
    *report = standard ? stderr : stdout;
    if (standard && s->json)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--json and --out - both go to standard output"));
    return WW_OK;
}

/* Standard output gets a .npy, whose header says what it is. */
static ww_status write_vectors(const char *path, const float *vectors, int64_t count, int64_t width)
{
    output file = {.descriptor = -1};
    if (strcmp(path, "-") != 0)
        return ww_matrix_write_f32(path, vectors, count, width);
    const matrix_write m = {vectors, count, width, WW_ELEMENT_F32, true};
    ww_status status = matrix_write_begin(&file, output_path(path), &m);
    if (status == WW_OK)
        status = output_finish(&file);
    output_discard(&file);
    return status;
}

/* What a user may not expect of the vectors. */
static void print_notes(const model_call *call, size_t texts, int64_t cut)
{
    const ww_model_info *info = &call->info;
    if (!terminal_notes())
        return;
    if (cut > 0)
        fprintf(stderr, "warpwave: note: %lld of %zu texts are longer than %lld tokens; their vectors leave out the rest\n",
                (long long)cut, texts, (long long)info->context);
    if (info->pooling_assumed)
        fprintf(stderr,
                "warpwave: note: the model's folder names no pooling, so the mean is used; --pooling chooses another\n");
    if (info->prompts[0] && !info->default_prompt[0] && !call->settings.prompt_name)
        fprintf(stderr, "warpwave: note: no prompt was put before the texts; --prompt chooses one of the model's: %s\n",
                info->prompts);
}

static ww_status embed(model_call *call, const text_file *file, FILE *report)
{
    const size_t width = (size_t)call->info.width;
    size_t elements = 0;
    int64_t cut = 0;
    progress bar;
    ww_embedding how = ww_embedding_default();
    how.prompt = call->settings.prompt_name;
    how.progress = progress_report;
    how.progress_user = &bar;
    how.cut = &cut;
    if (!size_multiply(file->count ? file->count : 1, width, &elements) || elements > SIZE_MAX / sizeof(float))
        return memory_failed("vectors", SIZE_MAX);
    float *vectors = memory_alloc(elements * sizeof *vectors);
    if (!vectors)
        return memory_failed("vectors", elements * sizeof *vectors);
    const double begun = seconds_now();
    progress_begin(&bar, "embedding texts", (int64_t)file->count);
    ww_status status = ww_model_embed(call->model, file->texts, NULL, file->count, &how, vectors);
    progress_end(&bar);
    const double seconds = seconds_now() - begun;
    const int32_t size = call->settings.dimensions ? (int32_t)call->settings.dimensions : call->info.width;
    if (status == WW_OK && size != call->info.width)
        status = ww_embeddings_shorten(vectors, file->count, call->info.width, size);
    if (status == WW_OK)
        status = write_vectors(call->settings.out, vectors, (int64_t)file->count, size);
    memory_free(vectors);
    if (status == WW_OK)
        print_notes(call, file->count, cut);
    if (status == WW_OK && call->settings.json) {
        json_writer w = {.to = stdout, .digits = JSON_DIGITS_F32};
        json_open(&w, NULL, '{');
        json_put_integer(&w, "texts", (int64_t)file->count);
        json_put_integer(&w, "cut", cut);
        json_put_integer(&w, "dim", size);
        json_put_text(&w, "fingerprint", call->info.fingerprint);
        json_put_real(&w, "seconds", seconds);
        json_close(&w);
    } else if (status == WW_OK && terminal_notes()) {
        fprintf(report, "%zu text%s, %d numbers each, in %.2f s\n", file->count, plural((int64_t)file->count), (int)size,
                seconds);
    }
    return status;
}

ww_status model_embed_run(model_call *call)
{
    const model_settings *s = &call->settings;
    const file_use uses[] = {{.what = "MODEL", .path = call->path},
                             {.what = "--in", .path = s->in},
                             {.what = "--out", .path = s->out, .output = true}};
    text_file file = {0};
    FILE *report = NULL;
    ww_status status = file_uses_check(uses, sizeof uses / sizeof *uses);
    if (status == WW_OK)
        status = model_report_to(s, &report);
    if (status == WW_OK)
        status = text_file_read(&file, s->in, s->field);
    if (status == WW_OK)
        status = model_call_open(call);
    if (status == WW_OK)
        status = embed(call, &file, report);
    text_file_free(&file);
    return status;
}
