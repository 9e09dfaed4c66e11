/* Exports a collection: to one JSON Lines or CSV file, or to a file of vectors with ids and payloads in separate files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic/row_values.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/text.h"
#include "files/matrix.h"
#include "warpwave/command.h"
#include "warpwave/file_rows.h"
#include "warpwave/file_uses.h"
#include "warpwave/store/sparse.h"
#include "warpwave/store/store.h"
#include "warpwave/terminal.h"

enum { BATCH_BYTES = 16 << 20, BATCH_ROWS_MAX = 4096 };

typedef enum export_format { EXPORT_JSONL, EXPORT_CSV, EXPORT_NPY, EXPORT_BIN } export_format;

typedef struct export
{
    const store_call *call;
    export_format format;
    ww_element element;               /* element type of a vector file */
    char *narrow;                     /* room for one vector if the element is not f32 */
    output *vectors, *ids, *payloads; /* ids and payloads are NULL if they were not asked for */
}
export;

/* ---- one row --------------------------------------------------------------------------------------------------------------
 */

static void put_json_line(FILE *to, const hit_of *h)
{
    json_writer w = {.to = to, .digits = JSON_DIGITS_F32, .compact = true};
    const float *vector = ww_results_vector(h->results, 0, h->hit);
    ww_sparse_vector sparse;
    json_open(&w, NULL, '{');
    json_put_text(&w, "id", ww_results_id(h->results, 0, h->hit));
    json_open(&w, "vector", '[');
    for (int32_t i = 0; i < h->dim; i++)
        json_put_real(&w, NULL, (double)vector[i]);
    json_close(&w);
    if (ww_results_payload(h->results, 0, h->hit))
        json_put_json(&w, "payload", ww_results_payload(h->results, 0, h->hit));
    if (ww_results_text(h->results, 0, h->hit))
        json_put_text(&w, "text", ww_results_text(h->results, 0, h->hit));
    if (ww_results_sparse(h->results, 0, h->hit, &sparse))
        sparse_put(&w, &sparse);
    json_close(&w); /* also ends the line */
}

static void put_csv_line(FILE *to, const hit_of *h)
{
    const char *id = ww_results_id(h->results, 0, h->hit);
    const float *vector = ww_results_vector(h->results, 0, h->hit);
    putc('"', to);
    for (const char *c = id; *c != '\0'; c++) {
        if (*c == '"')
            putc('"', to);
        putc(*c, to);
    }
    putc('"', to);
    for (int32_t i = 0; i < h->dim; i++)
        fprintf(to, ",%.9g", (double)vector[i]);
    putc('\n', to);
}

/* Refuses an id that is not UTF-8, which only stores of earlier versions have: JSON cannot represent it and no import accepts
 * it. */
static ww_status check_id(const hit_of *h)
{
    const char *id = ww_results_id(h->results, 0, h->hit);
    if (utf8_check(id, strlen(id)))
        return WW_OK;
    return ww_fail(WW_UNSUPPORTED,
                   "the id of the row with handle %lld is not UTF-8, so no file can hold it: '%s'. Remove the row, or give it "
                   "another id in SQL (UPDATE ... SET id = ... WHERE rowid = %lld)",
                   (long long)ww_results_handles(h->results, 0)[h->hit], id,
                   (long long)ww_results_handles(h->results, 0)[h->hit]);
}

/* Refuses an id with a line break, which would read as two ids. In a payload, line breaks can only be between JSON values,
 * where a space is equivalent. */
static ww_status put_texts(const hit_of *h, FILE *ids, FILE *payloads)
{
    const char *id = ww_results_id(h->results, 0, h->hit), *payload = ww_results_payload(h->results, 0, h->hit);
    if (ids && strpbrk(id, "\r\n"))
        return ww_fail(WW_UNSUPPORTED,
                       "an id has a line end in it, which a file of one id per line cannot hold; export to .jsonl");
    if (ids)
        fprintf(ids, "%s\n", id);
    for (const char *c = payloads && payload ? payload : ""; *c != '\0'; c++)
        putc(*c == '\n' || *c == '\r' ? ' ' : *c, payloads);
    if (payloads)
        putc('\n', payloads);
    return WW_OK;
}

/* ---- batches --------------------------------------------------------------------------------------------------------------
 */

/* Text in memory that waits to be written to a file. */
typedef struct pending {
    char *text;
    size_t length;
    FILE *to;
} pending;

static ww_status pending_write(pending *p, output *to)
{
    const bool lost = fclose(p->to) != 0;
    p->to = NULL;
    const ww_status status = lost ? memory_failed("rows of the file", p->length) : output_write(to, p->text, p->length);
    free(p->text);
    p->text = NULL;
    return status;
}

static ww_status write_texts(const export *e, const ww_results *rows)
{
    pending parts[3] = {{0}};
    output *const outputs[3] = {e->format <= EXPORT_CSV ? e->vectors : NULL, e->ids, e->payloads};
    ww_status status = WW_OK;
    for (int i = 0; i < 3 && status == WW_OK; i++)
        if (outputs[i] && !(parts[i].to = open_memstream(&parts[i].text, &parts[i].length)))
            status = memory_failed("rows of the file", 0);
    for (int64_t i = 0; status == WW_OK && i < ww_results_count(rows, 0); i++) {
        const hit_of hit = {.results = rows, .hit = i, .dim = e->call->info.dim};
        if (ww_results_rows(rows, 0)[i] < 0)
            continue;
        status = e->format <= EXPORT_CSV || e->ids ? check_id(&hit) : WW_OK;
        if (status != WW_OK)
            break;
        if (e->format == EXPORT_JSONL)
            put_json_line(parts[0].to, &hit);
        else if (e->format == EXPORT_CSV)
            put_csv_line(parts[0].to, &hit);
        status = put_texts(&hit, parts[1].to, parts[2].to);
    }
    for (int i = 0; i < 3; i++) {
        if (!parts[i].to)
            continue;
        const ww_status written = pending_write(&parts[i], outputs[i]);
        status = status == WW_OK ? written : status;
    }
    return status;
}

/* The numbers have that type already, so nothing is lost. */
static ww_status write_vector(const export *e, const float *vector)
{
    const int32_t dim = e->call->info.dim;
    const void *row = vector;
    if (e->element != WW_ELEMENT_F32) {
        (void)row_narrow((int32_t)e->call->info.type, vector, dim, e->narrow);
        row = e->narrow;
    }
    return output_write(e->vectors, row, (size_t)(dim * ww_element_bytes(e->element)));
}

static ww_status write_batch(const export *e, const int64_t *handles, int64_t count)
{
    const bool binary = e->format >= EXPORT_NPY;
    ww_get get = ww_get_default();
    ww_results *rows = NULL;
    get.count = count;
    get.handles = handles;
    get.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS;
    if (e->format == EXPORT_JSONL)
        get.fetch |= WW_FETCH_TEXTS | WW_FETCH_SPARSE;
    ww_status status = ww_collection_get(e->call->collection, &get, &rows);
    for (int64_t i = 0; binary && status == WW_OK && i < count; i++) {
        if (ww_results_rows(rows, 0)[i] < 0)
            status = ww_fail(WW_BUSY, "rows were removed while they were written; try again, or export a backup");
        else
            status = write_vector(e, ww_results_vector(rows, 0, i));
    }
    if (status == WW_OK)
        status = write_texts(e, rows);
    ww_results_destroy(rows);
    return status == WW_OK ? interrupt_check() : status;
}

/* ---- files ----------------------------------------------------------------------------------------------------------------
 */

static ww_status write_header(const export *e, const char *path, int64_t rows)
{
    if (e->format >= EXPORT_NPY) {
        const matrix_write m = {.rows = rows, .dim = e->call->info.dim, .element = e->element, .npy = e->format == EXPORT_NPY};
        return matrix_write_begin(e->vectors, output_path(path), &m);
    }
    ww_status status = output_open(e->vectors, output_path(path));
    if (status == WW_OK && e->format == EXPORT_CSV)
        status = output_write(e->vectors, "id", 2);
    for (int32_t i = 0; status == WW_OK && e->format == EXPORT_CSV && i < e->call->info.dim; i++) {
        char name[16];
        status = output_write(e->vectors, name, (size_t)snprintf(name, sizeof name, ",v%d", i));
    }
    return status == WW_OK && e->format == EXPORT_CSV ? output_write(e->vectors, "\n", 1) : status;
}

static ww_status write_rows(const export *e)
{
    const int64_t fit = min_i64(max_i64(BATCH_BYTES / ((int64_t)sizeof(float) * e->call->info.dim), 1), BATCH_ROWS_MAX);
    ww_get all = ww_get_default();
    ww_results *rows = NULL;
    progress bar;
    all.count = WW_ROWS_MAX;
    ww_status status = ww_collection_get(e->call->collection, &all, &rows);
    const int64_t count = ww_results_count(rows, 0);
    if (status == WW_OK)
        status = write_header(e, e->call->operands[2], count);
    progress_begin(&bar, "writing rows", count);
    for (int64_t first = 0; status == WW_OK && first < count; first += fit) {
        status = write_batch(e, ww_results_handles(rows, 0) + first, min_i64(fit, count - first));
        (void)progress_report(first, count, &bar);
    }
    progress_end(&bar);
    ww_results_destroy(rows);
    return status;
}

/* Chooses the format by --format or the file's name. A .npy has the collection's type, except for bf16, which .npy does not
 * support. */
static ww_status choose_format(export *e)
{
    static const struct {
        const char *ending;
        export_format format;
        ww_element element;
    } formats[] = {{".jsonl", EXPORT_JSONL, WW_ELEMENT_F32}, {".csv", EXPORT_CSV, WW_ELEMENT_F32},
                   {".npy", EXPORT_NPY, WW_ELEMENT_F32},     {".fbin", EXPORT_BIN, WW_ELEMENT_F32},
                   {".f16bin", EXPORT_BIN, WW_ELEMENT_F16},  {".i8bin", EXPORT_BIN, WW_ELEMENT_I8},
                   {".u8bin", EXPORT_BIN, WW_ELEMENT_U8}};
    const store_call *call = e->call;
    const char *given = call->settings.format, *path = call->operands[2];
    const ww_vector_type type = call->info.type;
    size_t i = 0;
    while (i < sizeof formats / sizeof *formats &&
           !(given ? strcmp(given, formats[i].ending + 1) == 0 : path_ends_in(path, formats[i].ending)))
        i++;
    if (i == sizeof formats / sizeof *formats)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT,
                                          "'%s': the file to export to must end in .jsonl, .csv, .npy, .fbin, .f16bin, .i8bin "
                                          "or .u8bin, or --format must say which of them it is",
                                          path));
    e->format = formats[i].format;
    e->element = formats[i].element;
    if (e->element != WW_ELEMENT_F32 && e->element != row_element(type))
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "'%s' would hold %s; the rows of '%s' are %s: export to .fbin",
                                          path, ww_element_name(e->element), call->operands[1], ww_vector_type_name(type)));
    if (e->format == EXPORT_NPY && type != WW_VECTOR_BF16)
        e->element = row_element(type);
    return WW_OK;
}

static ww_status check_files(const store_call *call, export_format format)
{
    const store_settings *s = &call->settings;
    const file_use uses[] = {{.what = "STORE", .path = call->operands[0]},
                             {.what = "FILE", .path = call->operands[2], .output = true},
                             {.what = "--ids", .path = s->ids, .output = true},
                             {.what = "--payloads", .path = s->payloads, .output = true}};
    if (format == EXPORT_JSONL && (s->ids || s->payloads))
        return command_line_wrong(
            ww_fail(WW_INVALID_ARGUMENT, "JSON lines have their ids and payloads; --ids and --payloads are for vectors"));
    if (s->json && (strcmp(call->operands[2], "-") == 0))
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--json and the rows both go to standard output"));
    return file_uses_check(uses, sizeof uses / sizeof *uses);
}

/* Writes all files before any is renamed. */
ww_status store_export(store_call *call)
{
    const store_settings *s = &call->settings;
    output *outputs = memory_alloc_zeroed(3, sizeof *outputs);
    if (!outputs)
        return memory_failed("writing rows", 3 * sizeof *outputs);
    export e = {
        .call = call, .vectors = &outputs[0], .ids = s->ids ? &outputs[1] : NULL, .payloads = s->payloads ? &outputs[2] : NULL};
    for (int i = 0; i < 3; i++)
        outputs[i].descriptor = -1;
    ww_status status = choose_format(&e);
    if (status == WW_OK)
        status = check_files(call, e.format);
    e.narrow = memory_alloc((size_t)call->info.dim * sizeof(float));
    if (status == WW_OK && !e.narrow)
        status = memory_failed("writing rows", (size_t)call->info.dim * sizeof(float));
    if (status == WW_OK && e.ids)
        status = output_open(e.ids, output_path(s->ids));
    if (status == WW_OK && e.payloads)
        status = output_open(e.payloads, output_path(s->payloads));
    if (status == WW_OK)
        status = write_rows(&e);
    output *const all[3] = {e.vectors, e.ids, e.payloads};
    for (int i = 0; status == WW_OK && i < 3; i++)
        status = all[i] ? output_finish(all[i]) : WW_OK;
    for (int i = 0; i < 3; i++)
        output_discard(&outputs[i]);
    memory_free(outputs);
    memory_free(e.narrow);
    const int64_t rows = call->info.rows_live;
    const bool told = status == WW_OK && strcmp(call->operands[2], "-") != 0;
    if (told && s->json)
        printf("{\"rows\": %lld}\n", (long long)rows);
    else if (told && terminal_notes())
        printf("wrote %lld row%s\n", (long long)rows, plural(rows));
    return status;
}
