/* Imports rows: from JSON Lines, or from a file of vectors with ids and payloads in separate files. resume.c tells how far an
 * interrupted import has come. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warpwave/sparse.h>

#include "base/integers.h"
#include "base/memory.h"
#include "base/text.h"
#include "warpwave/command.h"
#include "warpwave/file_rows.h"
#include "warpwave/ids.h"
#include "warpwave/store/store.h"
#include "warpwave/terminal.h"
#include "warpwave/text/csv_payloads.h"

enum { BATCH_BYTES = 64 << 20, BATCH_ROWS_MAX = 65536, HANDLE_BYTES = 24 };

/* Rows that wait to be added as one batch. */
typedef struct import {
    store_call *call;
    bool make; /* create the collection if it does not exist */
    row_batches batches;
    import_mark mark;
    int64_t read; /* rows or lines of the file that have been read, the waiting ones included */
    int32_t dim;
    int64_t count, room;
    float *vectors;
    bool as_stored;                  /* `vectors` has elements of the collection's type, unconverted */
    char **ids, **payloads, **texts; /* `room` pointers each; the struct owns the texts */
    ww_sparse_vector *sparse;        /* of `room` rows; the struct owns the numbers */
    bool with_texts;                 /* a waiting row has a text */
    bool with_sparse;                /* a waiting row has a sparse vector */
    bool with_ids;                   /* the waiting rows have ids */
} import;

/* ---- batches --------------------------------------------------------------------------------------------------------------
 */

static ww_status open_collection(import *in)
{
    store_call *call = in->call;
    ww_collection_config config = ww_collection_config_default();
    if (call->collection)
        return WW_OK;
    ww_status status = ww_store_collection(call->store, call->operands[1], &call->collection);
    if (status == WW_NOT_FOUND && in->make) {
        config.name = call->operands[1];
        config.dim = in->dim;
        config.metric = (ww_metric)call->settings.metric;
        config.type = (ww_vector_type)call->settings.type;
        status = ww_store_create(call->store, &config, &call->collection);
    }
    return status == WW_OK ? ww_collection_describe(call->collection, &call->info) : status;
}

/* A collection that does not exist yet has no mark. */
static ww_status read_mark(import *in)
{
    ww_collection *there = in->call->collection;
    ww_status status = mark_begin(in->call, &in->mark);
    if (status == WW_OK && !there)
        status = ww_store_collection(in->call->store, in->call->operands[1], &there);
    if (status == WW_OK)
        status = mark_read(in->call, &in->mark);
    if (there != in->call->collection)
        ww_collection_destroy(there);
    return status == WW_NOT_FOUND && in->make ? WW_OK : status;
}

/* Opens the collection once the dimension is known, and allocates a batch. */
static ww_status begin_batches(import *in, int64_t dim)
{
    if (dim > WW_DIM_MAX)
        return ww_fail(WW_UNSUPPORTED, "%s: the vectors have dimension %lld; the maximum is %d", in->call->operands[2],
                       (long long)dim, WW_DIM_MAX);
    in->dim = (int32_t)dim;
    ww_status status = open_collection(in);
    if (status == WW_OK && in->call->info.dim != in->dim)
        status =
            ww_fail(WW_DIMENSION_MISMATCH, "%s has vectors of dimension %d, the collection of dimension %d; they must be equal",
                    in->call->operands[2], in->dim, in->call->info.dim);
    if (status != WW_OK)
        return status;
    in->room = min_i64(max_i64(BATCH_BYTES / ((int64_t)sizeof(float) * in->dim), 1), BATCH_ROWS_MAX);
    in->vectors = memory_alloc((size_t)(in->room * in->dim) * sizeof *in->vectors);
    in->ids = memory_alloc_zeroed((size_t)in->room, sizeof *in->ids);
    in->payloads = memory_alloc_zeroed((size_t)in->room, sizeof *in->payloads);
    in->texts = memory_alloc_zeroed((size_t)in->room, sizeof *in->texts);
    in->sparse = memory_alloc_zeroed((size_t)in->room, sizeof *in->sparse);
    const bool made = in->vectors && in->ids && in->payloads && in->texts && in->sparse;
    return made ? WW_OK : memory_failed("rows of the file", BATCH_BYTES);
}

static void forget_batch(import *in)
{
    for (int64_t i = 0; i < in->count; i++) {
        memory_free(in->ids[i]);
        memory_free(in->payloads[i]);
        memory_free(in->texts[i]);
        in->ids[i] = in->payloads[i] = in->texts[i] = NULL;
        memory_free((void *)(uintptr_t)in->sparse[i].indices);
        memory_free((void *)(uintptr_t)in->sparse[i].values);
        in->sparse[i] = (ww_sparse_vector){0};
    }
    in->count = 0;
    in->with_texts = in->with_sparse = false;
}

static ww_status add_batch(import *in)
{
    if (in->count == 0)
        return WW_OK;
    ww_rows rows = ww_rows_default();
    rows.count = in->count;
    rows.dim = in->dim;
    const file_rows from = {.type = in->call->info.type, .room = in->vectors, .as_stored = in->as_stored};
    file_rows_give(&from, &rows);
    rows.ids = in->with_ids ? (const char *const *)in->ids : NULL;
    rows.payloads = (const char *const *)in->payloads;
    rows.texts = in->with_texts ? (const char *const *)in->texts : NULL;
    rows.sparse = in->with_sparse ? in->sparse : NULL;
    in->mark.done = in->read;
    in->batches.mark = in->mark.key[0] ? &in->mark : NULL;
    const ww_status status = batches_add(&in->batches, &rows);
    forget_batch(in);
    return status;
}

static ww_status copy_text(char **copy, const char *text)
{
    const size_t bytes = strlen(text) + 1;
    *copy = memory_alloc(bytes);
    if (!*copy)
        return memory_failed("a row of the file", bytes);
    memcpy(*copy, text, bytes);
    return WW_OK;
}

/* ---- JSON lines -----------------------------------------------------------------------------------------------------------
 */

/* An id is a string or an integer. */
static ww_status read_id(char **id, const json_t *value, const char *place)
{
    char digits[HANDLE_BYTES];
    if (json_is_string(value))
        return copy_text(id, json_string_value(value));
    if (!json_is_integer(value))
        return ww_fail(WW_CORRUPT_FILE, "%s: the id is neither a text nor an integer", place);
    snprintf(digits, sizeof digits, "%lld", (long long)json_integer_value(value));
    return copy_text(id, digits);
}

static ww_status read_payload(char **payload, const json_t *value, const char *place)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(17));
    if (!text)
        return ww_fail(WW_OUT_OF_MEMORY, "%s: no memory for the payload", place);
    const ww_status status = copy_text(payload, text);
    free(text);
    return status;
}

/* Reads {"indices": [...], "values": [...]}; the library checks what they are. */
static ww_status read_sparse(ww_sparse_vector *sparse, const json_t *value, const char *place)
{
    const json_t *indices = json_object_get(value, "indices"), *values = json_object_get(value, "values");
    const size_t count = json_array_size(indices);
    if (!json_is_array(indices) || !json_is_array(values) || count != json_array_size(values) || count > WW_SPARSE_MAX)
        return ww_fail(WW_CORRUPT_FILE,
                       "%s: its \"sparse\" is not {\"indices\": [...], \"values\": [...]} of equal length, at most %d", place,
                       WW_SPARSE_MAX);
    uint32_t *own_indices = memory_alloc((count + 1) * sizeof *own_indices);
    float *own_values = memory_alloc((count + 1) * sizeof *own_values);
    *sparse = (ww_sparse_vector){(int64_t)count, own_indices, own_values};
    if (!own_indices || !own_values)
        return memory_failed("a sparse vector", count * sizeof *own_indices);
    for (size_t i = 0; i < count; i++) {
        const json_t *index = json_array_get(indices, i), *number = json_array_get(values, i);
        const json_int_t at = json_integer_value(index);
        if (!json_is_integer(index) || at < 0 || at > UINT32_MAX || !json_is_number(number))
            return ww_fail(WW_CORRUPT_FILE,
                           "%s: its \"sparse\" has an index that is not 0 to 4294967295, or a value that is not a number",
                           place);
        own_indices[i] = (uint32_t)at;
        own_values[i] = (float)json_number_value(number);
    }
    return WW_OK;
}

static ww_status read_object(import *in, const json_t *object, const char *place)
{
    const json_t *id = json_object_get(object, "id"), *payload = json_object_get(object, "payload"),
                 *vector = json_object_get(object, "vector"), *text = json_object_get(object, "text"),
                 *sparse = json_object_get(object, "sparse");
    int32_t dim = in->dim;
    float *numbers = NULL;
    if (!json_is_object(object) || !vector)
        return ww_fail(WW_CORRUPT_FILE, "%s: it is not an object with a \"vector\"", place);
    if (text && !json_is_string(text) && !json_is_null(text))
        return ww_fail(WW_CORRUPT_FILE, "%s: its \"text\" is not a string", place);
    ww_status status = vector_of_json(vector, place, &dim, &numbers);
    if (status == WW_OK && in->dim == 0)
        status = begin_batches(in, dim);
    if (status == WW_OK && in->count > 0 && in->with_ids != (id != NULL))
        status = add_batch(in);
    if (status == WW_OK) {
        const int64_t at = in->count++;
        memcpy(in->vectors + at * dim, numbers, (size_t)dim * sizeof *numbers);
        in->with_ids = id != NULL;
        if (id)
            status = read_id(&in->ids[at], id, place);
        if (status == WW_OK && payload && !json_is_null(payload))
            status = read_payload(&in->payloads[at], payload, place);
        if (status == WW_OK && json_is_string(text)) {
            status = copy_text(&in->texts[at], json_string_value(text));
            in->with_texts = true;
        }
        if (status == WW_OK && sparse && !json_is_null(sparse)) {
            status = read_sparse(&in->sparse[at], sparse, place);
            in->with_sparse = true;
        }
    }
    memory_free(numbers);
    return status;
}

static ww_status read_line(import *in, const line_reader *line)
{
    char place[4096 + 32];
    json_error_t problem;
    snprintf(place, sizeof place, "%.4096s, line %lld", line->name, (long long)line->number);
    json_t *object = json_loadb(line->text, line->length, JSON_REJECT_DUPLICATES, &problem);
    const ww_status status = object ? read_object(in, object, place) : ww_fail(WW_CORRUPT_FILE, "%s: %s", place, problem.text);
    json_decref(object);
    return status;
}

static ww_status read_lines(import *in)
{
    line_reader lines;
    progress bar;
    bool end = false;
    ww_status status = lines_open(&lines, in->call->operands[2]);
    progress_begin(&bar, "adding rows", in->mark.bytes);
    while (status == WW_OK && !end) {
        status = lines_next(&lines, &end);
        if (status != WW_OK || end || lines.number <= in->mark.done)
            continue;
        if (strspn(lines.text, " \t") < lines.length)
            status = read_line(in, &lines);
        in->read = lines.number;
        if (status == WW_OK && in->count == in->room)
            status = add_batch(in);
        if (progress_report(ftello(lines.file), in->mark.bytes, &bar) != 0 && status == WW_OK)
            status = interrupt_check();
    }
    progress_end(&bar);
    lines_close(&lines);
    return status == WW_OK ? add_batch(in) : status;
}

/* ---- vectors --------------------------------------------------------------------------------------------------------------
 */

typedef struct vector_source {
    ww_matrix *matrix;
    ww_matrix_info info;
    ids ids;
    bool csv; /* payloads are records of CSV, not lines of JSON */
    csv_payloads records;
    line_reader lines;
} vector_source;

static ww_status open_payloads(const store_settings *s, vector_source *from)
{
    from->csv = path_ends_in(s->payloads, ".csv");
    return from->csv ? csv_payloads_open(&from->records, s->payloads) : lines_open(&from->lines, s->payloads);
}

/* Reads the next payload: NULL if there is none for the row. */
static ww_status next_payload(vector_source *from, const char **payload, bool *end)
{
    const ww_status status = from->csv ? csv_payloads_next(&from->records, end) : lines_next(&from->lines, end);
    *payload = from->csv ? from->records.payload.text : from->lines.length > 0 ? from->lines.text : NULL;
    return status;
}

static ww_status open_vectors(const import *in, vector_source *from)
{
    const store_settings *s = &in->call->settings;
    const char *path = in->call->operands[2];
    ww_matrix_options options = ww_matrix_options_default();
    options.format = s->format;
    options.id_column = s->id_column;
    options.streams = 1;
    from->info = ww_matrix_info_default();
    ww_status status = WW_OK;
    if (s->ids && s->id_column)
        status = command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--ids and --id-column both give the ids; leave one out"));
    if (status == WW_OK)
        status = ww_matrix_open_with(path, &options, &from->matrix);
    if (status == WW_INVALID_ARGUMENT)
        status = command_line_wrong(status);
    if (status == WW_OK)
        status = ww_matrix_describe(from->matrix, &from->info);
    if (status == WW_OK && s->id_column)
        status = ids_of_matrix(from->matrix, from->info.rows, path, &from->ids);
    if (status == WW_OK && s->ids)
        status = ids_read(s->ids, &from->ids);
    if (status == WW_OK && s->ids && from->ids.count != from->info.rows)
        status = ww_fail(WW_DIMENSION_MISMATCH, "%s has %lld ids, %s has %lld rows; there must be one id per row", s->ids,
                         (long long)from->ids.count, path, (long long)from->info.rows);
    return status == WW_OK && s->payloads ? open_payloads(s, from) : status;
}

static ww_status payload_of_row(const import *in, vector_source *from, int64_t row, const char **payload)
{
    bool end = false;
    const ww_status status = next_payload(from, payload, &end);
    if (status != WW_OK || !end)
        return status;
    return ww_fail(WW_DIMENSION_MISMATCH, "%s has %lld payloads; there must be one for each of the %lld rows",
                   in->call->settings.payloads, (long long)row, (long long)from->info.rows);
}

static ww_status read_row_texts(import *in, vector_source *from, int64_t row)
{
    const int64_t at = in->count++;
    const char *payload = NULL;
    ww_status status = from->ids.lines ? copy_text(&in->ids[at], from->ids.lines[row]) : WW_OK;
    if (status == WW_OK && in->call->settings.payloads)
        status = payload_of_row(in, from, row, &payload);
    return status == WW_OK && payload ? copy_text(&in->payloads[at], payload) : status;
}

/* Passes over the payloads of rows that are in the collection. */
static ww_status skip_payloads(const import *in, vector_source *from)
{
    const char *payload = NULL;
    ww_status status = WW_OK;
    for (int64_t row = 0; status == WW_OK && in->call->settings.payloads && row < in->mark.done; row++)
        status = payload_of_row(in, from, row, &payload);
    return status;
}

static ww_status check_payloads_end(const import *in, vector_source *from)
{
    bool end = true;
    const char *payload = NULL;
    const ww_status status = in->call->settings.payloads ? next_payload(from, &payload, &end) : WW_OK;
    if (status != WW_OK || end)
        return status;
    return ww_fail(WW_DIMENSION_MISMATCH, "%s has more payloads than there are rows; all %lld rows are in the store",
                   in->call->settings.payloads, (long long)from->info.rows);
}

static ww_status read_batch(import *in, vector_source *from, int64_t first)
{
    const int64_t count = min_i64(in->room, from->info.rows - first);
    file_rows rows = {.file = from->matrix, .type = in->call->info.type, .room = in->vectors};
    ww_status status = file_rows_read(&rows, first, count);
    in->as_stored = rows.as_stored;
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        status = read_row_texts(in, from, first + i);
    in->read = first + count;
    return status == WW_OK ? add_batch(in) : status;
}

static ww_status read_vectors(import *in)
{
    vector_source from = {0};
    progress bar;
    ww_status status = open_vectors(in, &from);
    if (status == WW_OK)
        status = begin_batches(in, from.info.dim);
    if (status == WW_OK)
        status = skip_payloads(in, &from);
    in->with_ids = from.ids.lines != NULL;
    progress_begin(&bar, "adding rows", from.info.rows);
    for (int64_t first = in->mark.done; status == WW_OK && first < from.info.rows; first += in->room) {
        status = read_batch(in, &from, first);
        if (progress_report(first, from.info.rows, &bar) != 0 && status == WW_OK)
            status = interrupt_check();
    }
    progress_end(&bar);
    if (status == WW_OK)
        status = check_payloads_end(in, &from);
    lines_close(&from.lines);
    csv_payloads_close(&from.records);
    ids_free(&from.ids);
    ww_matrix_close(from.matrix);
    return status;
}

/* ---- files ----------------------------------------------------------------------------------------------------------------
 */

static bool is_lines(const store_settings *s, const char *path)
{
    return s->format ? strcmp(s->format, "jsonl") == 0 : path_ends_in(path, ".jsonl");
}

/* Tells who reads the files that this command does not. */
static ww_status refuse_foreign(const char *path)
{
    static const char *const endings[] = {".parquet", ".arrow", ".feather", ".ipc"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (path_ends_in(path, endings[i]))
            return ww_fail(WW_UNSUPPORTED,
                           "%s: Python reads such files, with pyarrow: python3 -c 'import warpwave; "
                           "warpwave.Store(\"STORE\").get_or_create(\"NAME\", dim).add_file(\"FILE\", vector=\"COLUMN\")'",
                           path);
    return WW_OK;
}

ww_status store_add_file(store_call *call, bool make)
{
import in = {.call = call, .make = make, .batches = {.call = call } };
    ww_status status = refuse_foreign(call->operands[2]);
    if (status == WW_OK)
        status = read_mark(&in);
    if (status != WW_OK)
        return status;
    if (is_lines(&call->settings, call->operands[2])) {
        const store_settings *s = &call->settings;
        if (s->ids || s->id_column || s->payloads)
            status = command_line_wrong(
                ww_fail(WW_INVALID_ARGUMENT,
                        "JSON lines have their ids and payloads; --ids, --id-column and --payloads are for vectors"));
        if (status == WW_OK)
            status = read_lines(&in);
        if (status == WW_OK && in.dim == 0 && in.mark.done == 0)
            status = ww_fail(WW_CORRUPT_FILE, "%s: the file has no rows", call->operands[2]);
    } else {
        status = read_vectors(&in);
    }
    if (in.ids && in.payloads && in.texts && in.sparse)
        forget_batch(&in);
    memory_free(in.vectors);
    memory_free(in.ids);
    memory_free(in.payloads);
    memory_free(in.texts);
    memory_free(in.sparse);
    return status;
}
