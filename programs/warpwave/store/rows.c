/* Adds, gets and removes single rows and lists of ids. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "warpwave/command.h"
#include "warpwave/ids.h"
#include "warpwave/store/sparse.h"
#include "warpwave/store/store.h"
#include "warpwave/terminal.h"

/* ---- what the command line gives ------------------------------------------------------------------------------------------
 */

ww_status vector_of_json(const json_t *array, const char *what, int32_t *dim, float **vector)
{
    const size_t count = json_array_size(array);
    if (!json_is_array(array) || count == 0 || count > WW_DIM_MAX)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: a vector is a JSON array of 1 to %d numbers", what, WW_DIM_MAX);
    if (*dim != 0 && count != (size_t)*dim)
        return ww_fail(WW_DIMENSION_MISMATCH, "%s: the vector has %zu numbers; the collection's have %d", what, count, *dim);
    *vector = memory_alloc(count * sizeof **vector);
    if (!*vector)
        return memory_failed("a vector", count * sizeof **vector);
    *dim = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        const json_t *number = json_array_get(array, i);
        (*vector)[i] = (float)json_number_value(number);
        if (!json_is_number(number) || !isfinite((*vector)[i]))
            return ww_fail(WW_INVALID_ARGUMENT, "%s: number %zu of the vector does not fit an f32", what, i);
    }
    return WW_OK;
}

ww_status vector_parse(const char *text, const char *what, int32_t *dim, float **vector)
{
    json_t *array = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    *vector = NULL;
    if (!array)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: '%s' is not JSON", what, text);
    const ww_status status = vector_of_json(array, what, dim, vector);
    json_decref(array);
    return status;
}

/* Collects `--id` and `--ids` into one list; free it with named_ids_free(). */
typedef struct named_ids {
    const char **texts;
    int64_t count;
    ids *file; /* the file of --ids */
} named_ids;

static ww_status named_ids_read(const store_settings *s, named_ids *list)
{
    *list = (named_ids){0};
    if ((s->id.count > 0) == (s->ids != NULL))
        return command_line_wrong(ww_fail(
            WW_INVALID_ARGUMENT, "give either --id, once or several times, or --ids, or conditions: --where, --filter"));
    ids *file = memory_alloc_zeroed(1, sizeof *file);
    if (!file)
        return memory_failed("ids", sizeof *file);
    list->file = file;
    const ww_status status = s->ids ? ids_read(s->ids, file) : WW_OK;
    list->count = s->ids ? file->count : s->id.count;
    list->texts = s->ids ? file->lines : (const char **)s->id.texts;
    if (status == WW_OK && (list->count == 0 || !list->texts))
        return ww_fail(WW_CORRUPT_FILE, "%s: the file has no ids", s->ids);
    return status;
}

static void named_ids_free(named_ids *list)
{
    if (list->file)
        ids_free(list->file);
    memory_free(list->file);
    *list = (named_ids){0};
}

/* ---- rows -----------------------------------------------------------------------------------------------------------------
 */

static ww_status add_rows(const store_call *call, const ww_rows *rows)
{
    return call->settings.upsert ? ww_collection_upsert(call->collection, rows) : ww_collection_add(call->collection, rows);
}

static ww_status add_marked(const store_call *call, const ww_rows *rows, const import_mark *mark)
{
    ww_status status = ww_store_begin(call->store);
    if (status != WW_OK)
        return status;
    status = add_rows(call, rows);
    if (status == WW_OK)
        status = mark_write(call, mark);
    if (status == WW_OK)
        return ww_store_commit(call->store);
    (void)ww_store_rollback(call->store);
    return status;
}

ww_status batches_add(row_batches *batches, const ww_rows *rows)
{
    store_call *call = batches->call;
    const ww_status status = batches->mark ? add_marked(call, rows, batches->mark) : add_rows(call, rows);
    if (status != WW_OK)
        return batches->added == 0 ? status
                                   : ww_fail(status, "%s (the store has the %lld row%s before this batch)", ww_error_message(),
                                             (long long)batches->added, plural(batches->added));
    batches->added += rows->count;
    return interrupt_check();
}

static ww_status add_one(store_call *call)
{
    const store_settings *s = &call->settings;
    row_batches batches = {.call = call};
    ww_rows rows = ww_rows_default();
    int32_t dim = call->info.dim;
    float *vector = NULL;
    json_sparse sparse = {0};
    if (s->id.count > 1)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--vector is one row; give one --id"));
    ww_status status = command_line_wrong(vector_parse(s->vector, "--vector", &dim, &vector));
    if (status == WW_OK && s->sparse)
        status = sparse_parse(s->sparse, &sparse);
    const ww_sparse_vector given = {sparse.count, sparse.indices, sparse.values};
    rows.sparse = s->sparse ? &given : NULL;
    rows.count = 1;
    rows.dim = dim;
    rows.vectors = vector;
    rows.ids = s->id.count == 1 ? (const char *const *)s->id.texts : NULL;
    rows.payloads = s->payload ? &s->payload : NULL;
    if (status == WW_OK)
        status = batches_add(&batches, &rows);
    json_sparse_free(&sparse);
    memory_free(vector);
    return status;
}

static void say_added(const store_call *call, int64_t before)
{
    const int64_t now = ww_collection_count(call->collection);
    if (call->settings.json)
        printf("{\"rows\": %lld, \"rows_before\": %lld}\n", (long long)now, (long long)before);
    else if (terminal_notes() && before > 0)
        printf("%lld row%s (%lld before)\n", (long long)now, plural(now), (long long)before);
    else if (terminal_notes())
        printf("%lld row%s (the collection was empty)\n", (long long)now, plural(now));
}

ww_status store_add(store_call *call)
{
    const store_settings *s = &call->settings;
    int64_t before = call->info.rows_live;
    if (s->sparse && !s->vector)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--sparse goes with --vector, which every row has"));
    if (s->text && s->resume)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--resume goes with --in"));
    if (s->text) {
        const ww_status added = store_add_texts(call, &before);
        if (added == WW_OK)
            say_added(call, before);
        return added;
    }
    if (s->model || s->chunk > 0 || s->overlap >= 0 || s->query_prefix || s->document_prefix)
        return command_line_wrong(
            ww_fail(WW_INVALID_ARGUMENT, "--model, --chunk, --overlap, --query-prefix and --document-prefix go with --text"));
    if ((s->vector != NULL) == (s->queries != NULL))
        return command_line_wrong(ww_fail(
            WW_INVALID_ARGUMENT, "give one of --vector, for one row, --in, for those of a file, and --text, for texts"));
    if (s->queries && (s->payload || s->id.count > 0))
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT,
                                          "--id and --payload go with --vector; beside --in give --ids and "
                                          "--payloads"));
    if (s->vector && (s->ids || s->payloads || s->id_column || s->format))
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT,
                                          "--ids, --id-column, --payloads and --format go with --in; beside --vector give --id "
                                          "and --payload"));
    if (s->resume && !s->queries)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--resume goes with --in"));
    call->operands[2] = s->queries;
    const ww_status status = s->vector ? add_one(call) : store_add_file(call, false);
    if (status == WW_OK)
        say_added(call, before);
    return status;
}

ww_status store_import(store_call *call)
{
    int64_t before = 0;
    ww_collection *there = NULL;
    if (ww_store_collection(call->store, call->operands[1], &there) == WW_OK)
        before = ww_collection_count(there);
    ww_collection_destroy(there);
    const ww_status status = store_add_file(call, true);
    if (status == WW_OK)
        say_added(call, before);
    return status;
}

ww_status store_remove(store_call *call)
{
    named_ids list;
    int64_t missing = 0;
    if (selection_is_given(&call->settings))
        return store_remove_selected(call);
    ww_status status = named_ids_read(&call->settings, &list);
    if (status == WW_OK)
        status = call->settings.missing_ok ? ww_collection_discard(call->collection, list.texts, list.count, &missing)
                                           : ww_collection_remove(call->collection, list.texts, list.count);
    if (status == WW_OK && call->settings.json)
        printf("{\"removed\": %lld, \"missing\": %lld}\n", (long long)(list.count - missing), (long long)missing);
    else if (status == WW_OK && terminal_notes())
        printf("removed %lld row%s%s\n", (long long)(list.count - missing), plural(list.count - missing),
               missing > 0 ? "; the others do not exist" : "");
    named_ids_free(&list);
    return status;
}

/* ---- hits -----------------------------------------------------------------------------------------------------------------
 */

void hit_put(json_writer *w, const hit_of *h)
{
    const float *vector = h->dim > 0 ? ww_results_vector(h->results, h->query, h->hit) : NULL;
    json_open(w, NULL, '{');
    json_put_id(w, "id", ww_results_id(h->results, h->query, h->hit));
    json_put_integer(w, "handle", ww_results_handles(h->results, h->query)[h->hit]);
    if (h->scored)
        json_put_real(w, "score", (double)ww_results_scores(h->results, h->query)[h->hit]);
    json_put_json(w, "payload", ww_results_payload(h->results, h->query, h->hit));
    if (ww_results_text(h->results, h->query, h->hit))
        json_put_text(w, "text", ww_results_text(h->results, h->query, h->hit));
    const ww_hit_parts *parts = ww_results_parts(h->results, h->query);
    ww_sparse_vector sparse;
    if (ww_results_sparse(h->results, h->query, h->hit, &sparse))
        sparse_put(w, &sparse);
    if (parts && parts[h->hit].ranks[0] > 0)
        json_put_integer(w, h->ranks[0], parts[h->hit].ranks[0]);
    if (parts && parts[h->hit].ranks[1] > 0)
        json_put_integer(w, h->ranks[1], parts[h->hit].ranks[1]);
    if (vector) {
        json_open(w, "vector", '[');
        for (int32_t i = 0; i < h->dim; i++)
            json_put_real(w, NULL, (double)vector[i]);
        json_close(w);
    }
    json_close(w);
}

void hit_print(const hit_of *h)
{
    const char *payload = ww_results_payload(h->results, h->query, h->hit);
    const float *vector = h->dim > 0 ? ww_results_vector(h->results, h->query, h->hit) : NULL;
    print_plain(stdout, ww_results_id(h->results, h->query, h->hit));
    if (payload) {
        printf("  ");
        print_plain(stdout, payload);
    }
    const char *text = ww_results_text(h->results, h->query, h->hit);
    if (text) {
        printf("  ");
        print_plain(stdout, text);
    }
    for (int32_t i = 0; vector && i < h->dim; i++)
        printf("%s%.9g", i == 0 ? "  [" : ", ", (double)vector[i]);
    printf(vector ? "]\n" : "\n");
}

int64_t print_found(const store_call *call, const ww_results *found, int64_t *first)
{
    const bool json = call->settings.json;
    json_writer w = {.to = stdout, .digits = JSON_DIGITS_F32};
    int64_t missing = 0;
    if (json)
        json_open(&w, NULL, '[');
    w.compact = true;
    for (int64_t i = 0; i < ww_results_count(found, 0); i++) {
        const hit_of hit = {.results = found, .hit = i, .dim = call->settings.vectors ? call->info.dim : 0};
        if (ww_results_rows(found, 0)[i] < 0) {
            *first = missing++ == 0 ? i : *first;
            continue;
        }
        if (json)
            hit_put(&w, &hit);
        else
            hit_print(&hit);
    }
    w.compact = false;
    if (json)
        json_close(&w);
    return missing;
}

/* Prints the rows that exist; tells whether one was missing. */
static ww_status print_rows(const store_call *call, const ww_results *found, const named_ids *list)
{
    int64_t first = -1;
    const int64_t missing = print_found(call, found, &first);
    if (missing == 0)
        return WW_OK;
    return ww_fail(WW_NOT_FOUND, "%lld of the ids are not in the collection; the first is '%s'", (long long)missing,
                   list->texts[first]);
}

/* With --json the output is all rows or the failure: a report cannot be both. */
static ww_status check_all_found(const ww_results *found, const named_ids *list)
{
    for (int64_t i = 0; i < ww_results_count(found, 0); i++)
        if (ww_results_rows(found, 0)[i] < 0)
            return ww_fail(WW_NOT_FOUND, "'%s' is not in the collection", list->texts[i]);
    return WW_OK;
}

ww_status store_get(store_call *call)
{
    named_ids list;
    ww_results *found = NULL;
    ww_get get = ww_get_default();
    if (selection_is_given(&call->settings))
        return store_get_selected(call);
    ww_status status = named_ids_read(&call->settings, &list);
    if (status != WW_OK || !list.texts) {
        named_ids_free(&list);
        return status;
    }
    get.count = list.count;
    get.ids = list.texts;
    get.fetch =
        WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_TEXTS | (call->settings.vectors ? WW_FETCH_VECTORS | WW_FETCH_SPARSE : 0);
    status = ww_collection_get(call->collection, &get, &found);
    if (status == WW_OK && call->settings.json)
        status = check_all_found(found, &list);
    if (status == WW_OK)
        status = print_rows(call, found, &list);
    ww_results_destroy(found);
    named_ids_free(&list);
    return status;
}
