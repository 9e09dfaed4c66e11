/* Texts in a store: embedded by a model, which is kept with the collection, and found by questions in words. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/store/store.h"
#include "cli/terminal.h"
#include "cli/text/text_model.h"
#include "files/matrix.h"

enum { TEXTS_BATCH = 1024 };

/* ---- the model ------------------------------------------------------------------------------------------------------------
 */

static ww_store_model model_record(const text_model *m, const char *path)
{
    ww_store_model record = ww_store_model_default();
    char whole[PATH_MAX];
    text_copy(record.name, sizeof record.name, text_model_name(m));
    text_copy(record.fingerprint, sizeof record.fingerprint, text_model_fingerprint(m));
    const char *absolute = realpath(path, whole);
    if (absolute && strlen(absolute) < sizeof record.path && utf8_check(absolute, strlen(absolute)))
        text_copy(record.path, sizeof record.path, absolute);
    return record;
}

ww_status store_open_text_model(store_call *call, text_model **model)
{
    ww_store_model kept = ww_store_model_default();
    ww_status status = ww_store_get_model(call->store, call->operands[1], &kept);
    if (status == WW_NOT_FOUND)
        return ww_fail(
            WW_NOT_FOUND,
            "%s; its rows were not added as texts (`warpwave store add --text`), so no text can be compared with them",
            ww_error_message());
    const char *path = call->settings.model ? call->settings.model : kept.path;
    if (status == WW_OK && path[0] == '\0')
        return command_line_wrong(
            ww_fail(WW_INVALID_ARGUMENT, "--model is missing: the collection's model, '%s', was read from a pipe", kept.name));
    if (status == WW_OK)
        status = text_model_open(path, call->device, model);
    if (status == WW_OK && strcmp(text_model_fingerprint(*model), kept.fingerprint) != 0)
        status = ww_fail(
            WW_INVALID_ARGUMENT,
            "the vectors of '%s' are of the model '%s' (%.16s...); %s is '%s' (%.16s...), and its vectors cannot be compared "
            "with them",
            call->operands[1], kept.name, kept.fingerprint, path, text_model_name(*model), text_model_fingerprint(*model));
    return status;
}

/* The collection, which is made if it is not there; then the model is kept with it. */
static ww_status prepare_collection(store_call *call, const text_model *m)
{
    const store_settings *s = &call->settings;
    ww_collection_config config = ww_collection_config_default();
    ww_store_model record = model_record(m, s->model), kept = ww_store_model_default();
    ww_status status = ww_store_collection(call->store, call->operands[1], &call->collection);
    if (status == WW_NOT_FOUND) {
        config.name = call->operands[1];
        config.dim = text_model_width(m);
        status = ww_store_create(call->store, &config, &call->collection);
    }
    if (status == WW_OK)
        status = ww_collection_describe(call->collection, &call->info);
    if (status == WW_OK && call->info.dim != text_model_width(m))
        return ww_fail(WW_DIMENSION_MISMATCH, "the model makes vectors of dimension %d, the collection's have %d",
                       text_model_width(m), call->info.dim);
    if (status == WW_OK && call->info.rows_live > 0 &&
        ww_store_get_model(call->store, call->operands[1], &kept) == WW_NOT_FOUND)
        return ww_fail(WW_INVALID_ARGUMENT,
                       "the collection has %lld rows that no model is kept for; add texts to a collection of their own",
                       (long long)call->info.rows_live);
    return status == WW_OK ? ww_store_set_model(call->store, call->operands[1], &record) : status;
}

/* ---- adding ---------------------------------------------------------------------------------------------------------------
 */

typedef struct text_rows {
    store_call *call;
    text_model *model;
    row_batches batches;
    bool objects; /* the file has JSON lines */
    bool with_ids;
    int64_t count;
    char *texts[TEXTS_BATCH], *ids[TEXTS_BATCH], *payloads[TEXTS_BATCH];
    float *vectors;
} text_rows;

static void forget_texts(text_rows *r)
{
    for (int64_t i = 0; i < TEXTS_BATCH; i++) {
        memory_free(r->texts[i]);
        memory_free(r->ids[i]);
        memory_free(r->payloads[i]);
        r->texts[i] = r->ids[i] = r->payloads[i] = NULL;
    }
    r->count = 0;
}

static ww_status add_texts(text_rows *r)
{
    ww_rows rows = ww_rows_default();
    if (r->count == 0)
        return WW_OK;
    ww_status status = text_model_embed(r->model, (const char *const *)r->texts, (size_t)r->count, r->vectors, NULL);
    rows.count = r->count;
    rows.dim = text_model_width(r->model);
    rows.vectors = r->vectors;
    rows.ids = r->with_ids ? (const char *const *)r->ids : NULL;
    rows.payloads = (const char *const *)r->payloads;
    if (status == WW_OK)
        status = batches_add(&r->batches, &rows);
    forget_texts(r);
    return status;
}

static ww_status take_text(char **to, const char *text)
{
    *to = memory_copy_text(text, strlen(text));
    return *to ? WW_OK : memory_failed("a text", strlen(text) + 1);
}

/* A value of JSON as text. */
static ww_status take_json(char **to, const json_t *value)
{
    char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    if (!text)
        return ww_fail(WW_OUT_OF_MEMORY, "no memory for a payload");
    const ww_status status = take_text(to, text);
    free(text);
    return status;
}

/* The row of a text: without a payload of its own it has the text as payload. */
static ww_status take_row(text_rows *r, const char *text, const char *id, const json_t *payload)
{
    json_t *own = payload ? NULL : json_pack("{s:s}", "text", text);
    const int64_t at = r->count++;
    ww_status status = take_text(&r->texts[at], text);
    if (status == WW_OK && id)
        status = take_text(&r->ids[at], id);
    if (status == WW_OK && !json_is_null(payload))
        status = take_json(&r->payloads[at], payload ? payload : own);
    json_decref(own);
    return status;
}

static ww_status take_object(text_rows *r, const line_reader *lines)
{
    json_error_t problem;
    json_t *object = json_loadb(lines->text, lines->length, JSON_REJECT_DUPLICATES, &problem);
    const char *text = json_string_value(json_object_get(object, "text"));
    const json_t *id = json_object_get(object, "id");
    ww_status status = WW_OK;
    if (!object)
        status = ww_fail(WW_CORRUPT_FILE, "%s, line %lld: %s", lines->name, (long long)lines->number, problem.text);
    else if (!text || (id && !json_is_string(id)))
        status = ww_fail(WW_CORRUPT_FILE, "%s, line %lld: it is no object with a \"text\", or its \"id\" is no text",
                         lines->name, (long long)lines->number);
    if (status == WW_OK && r->count > 0 && r->with_ids != (id != NULL))
        status = add_texts(r);
    if (status == WW_OK) {
        r->with_ids = id != NULL;
        status = take_row(r, text, json_string_value(id), json_object_get(object, "payload"));
    }
    json_decref(object);
    return status;
}

/* How many lines there are, for the bar; 0 where that cannot be known. */
static int64_t count_lines(const char *path)
{
    int64_t count = 0;
    FILE *file = strcmp(path, "-") == 0 ? NULL : fopen(path, "re");
    for (int c = file ? getc(file) : EOF; c != EOF; c = getc(file))
        count += c == '\n';
    if (file)
        fclose(file);
    return count;
}

static ww_status read_texts(text_rows *r, const char *path)
{
    line_reader lines;
    bool end = false;
    progress bar;
    const int64_t total = count_lines(path);
    ww_status status = lines_open(&lines, path);
    progress_begin(&bar, "embedding texts", total);
    while (status == WW_OK && !end) {
        status = lines_next(&lines, &end);
        if (status != WW_OK || end || strspn(lines.text, " \t") == lines.length)
            continue;
        if (!utf8_check(lines.text, lines.length))
            status = ww_fail(WW_CORRUPT_FILE, "%s, line %lld is no UTF-8", lines.name, (long long)lines.number);
        if (status == WW_OK)
            status = r->objects ? take_object(r, &lines) : take_row(r, lines.text, NULL, NULL);
        if (status == WW_OK && r->count == TEXTS_BATCH)
            status = add_texts(r);
        if (progress_report(lines.number, total, &bar) != 0 && status == WW_OK)
            status = interrupt_check();
    }
    if (status == WW_OK)
        status = add_texts(r);
    progress_end(&bar);
    lines_close(&lines);
    return status;
}

static ww_status check_options(const store_settings *s)
{
    if (s->vector || s->queries || s->payload || s->id.count > 0 || s->ids || s->payloads || s->id_column)
        return command_line_wrong(
            ww_fail(WW_INVALID_ARGUMENT,
                    "beside --text only --model, --device, --format, --upsert and --synchronous go; ids and payloads are "
                    "in .jsonl files"));
    if (!s->model)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--model M is missing: the model that embeds the texts"));
    if (s->format && strcmp(s->format, "jsonl") != 0 && strcmp(s->format, "text") != 0)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--format '%s': files of texts are text or jsonl", s->format));
    return WW_OK;
}

ww_status store_add_texts(store_call *call, int64_t *before)
{
    const store_settings *s = &call->settings;
    text_rows *r = memory_alloc_zeroed(1, sizeof *r);
    if (!r)
        return memory_failed("texts", sizeof *r);
    r->call = call;
    r->batches.call = call;
    ww_status status = check_options(s);
    if (status == WW_OK)
        r->objects = s->format ? strcmp(s->format, "jsonl") == 0 : path_ends_in(s->text, ".jsonl");
    if (status == WW_OK)
        status = text_model_open(s->model, call->device, &r->model);
    if (status == WW_OK)
        status = prepare_collection(call, r->model);
    if (status == WW_OK) {
        const size_t bytes = (size_t)TEXTS_BATCH * (size_t)text_model_width(r->model) * sizeof *r->vectors;
        *before = call->info.rows_live;
        r->vectors = memory_alloc(bytes);
        status = r->vectors ? read_texts(r, s->text) : memory_failed("vectors of texts", bytes);
    }
    forget_texts(r);
    memory_free(r->vectors);
    text_model_close(r->model);
    memory_free(r);
    return status;
}
