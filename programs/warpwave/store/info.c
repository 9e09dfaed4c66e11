/* `warpwave store list` and `store info`: the contents of a store. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "warpwave/store/store.h"
#include "warpwave/terminal.h"

typedef struct listed {
    const char *name, *metric, *type;
    json_int_t dim, rows;
} listed;

/* Prints a damaged collection, and returns the failure that the command ends with. */
static ww_status print_damaged(const char *name, const char *error, json_writer *w)
{
    if (w) {
        json_open(w, NULL, '{');
        json_put_text(w, "name", name);
        json_put_text(w, "error", error);
        json_close(w);
    } else {
        printf("%12s  %6s  %-6s  %-4s  ", "damaged", "-", "-", "-");
        print_plain(stdout, name);
        putchar('\n');
    }
    return ww_fail(WW_CORRUPT_FILE, "collection '%s': %s; the other collections are listed", name, error);
}

/* Prints what the store keeps about the collection's model, if there is one. */
static void print_model(const json_t *told, json_writer *w)
{
    const json_t *model = json_object_get(told, "model");
    const char *name = json_string_value(json_object_get(model, "name"));
    char *text = w && model ? json_dumps(model, JSON_COMPACT) : NULL;
    if (text)
        json_put_json(w, "model", text);
    free(text);
    if (!w && model) {
        printf("  (model ");
        print_plain(stdout, name ? name : "");
        printf(", %.12s)", json_string_value(json_object_get(model, "fingerprint")));
    }
}

/* Prints what the store keeps about its index, if there is one. */
static void print_index(const json_t *told, json_writer *w)
{
    const json_t *index = json_object_get(told, "index");
    char *text = w && index ? json_dumps(index, JSON_COMPACT) : NULL;
    if (text)
        json_put_json(w, "index", text);
    free(text);
    if (!w && json_object_get(index, "error"))
        printf("  (index damaged)");
    else if (!w && index)
        printf("  (index of %lld list%s%s)", (long long)json_integer_value(json_object_get(index, "nlist")),
               plural(json_integer_value(json_object_get(index, "nlist"))),
               json_integer_value(json_object_get(index, "calibration_queries")) > 0 ? ", calibrated" : "");
}

/* Prints the collections. Each is a hit whose payload describes it. */
static ww_status print_collections(const ww_results *list, json_writer *w)
{
    ww_status status = WW_OK;
    const char *error = NULL;
    if (!w)
        printf("%12s  %6s  %-6s  %-4s  name\n", "rows", "dim", "metric", "type");
    for (int64_t i = 0; i < ww_results_count(list, 0); i++) {
        listed c = {.name = ww_results_id(list, 0, i)};
        json_t *told = json_loads(ww_results_payload(list, 0, i), 0, NULL);
        if (told && json_unpack(told, "{s:s}", "error", &error) == 0) {
            status = print_damaged(c.name, error, w);
            json_decref(told);
            continue;
        }
        if (!told || json_unpack(told, "{s:I, s:s, s:s, s:I}", "dim", &c.dim, "metric", &c.metric, "type", &c.type, "rows",
                                 &c.rows) != 0) {
            json_decref(told);
            return ww_fail(WW_INTERNAL, "the store describes '%s' in a way that is not understood", c.name);
        }
        if (w) {
            json_open(w, NULL, '{');
            json_put_text(w, "name", c.name);
            json_put_integer(w, "rows", c.rows);
            json_put_integer(w, "dim", c.dim);
            json_put_text(w, "metric", c.metric);
            json_put_text(w, "type", c.type);
            print_model(told, w);
            print_index(told, w);
            json_close(w);
        } else {
            printf("%12lld  %6lld  %-6s  %-4s  ", (long long)c.rows, (long long)c.dim, c.metric, c.type);
            print_plain(stdout, c.name);
            print_model(told, NULL);
            print_index(told, NULL);
            putchar('\n');
        }
        json_decref(told);
    }
    return status;
}

ww_status store_print_list(store_call *call)
{
    json_writer w = {.to = stdout, .digits = JSON_DIGITS_F32};
    ww_results *list = NULL;
    ww_status status = ww_store_list(call->store, &list);
    if (status != WW_OK)
        return status;
    if (call->settings.json)
        json_open(&w, NULL, '[');
    status = print_collections(list, call->settings.json ? &w : NULL);
    if (call->settings.json)
        json_close(&w);
    ww_results_destroy(list);
    return status;
}

static void print_info(const ww_store_info *info, const char *path)
{
    char bytes[3][32];
    printf("store    ");
    print_plain(stdout, path);
    printf("\nformat   %lld, SQLite %s\n", (long long)info->format, info->sqlite_version);
    printf("size     %s in pages of %lld bytes; unused %s; log %s\n\n", human_bytes(bytes[0], info->bytes_file),
           (long long)info->page_bytes, human_bytes(bytes[1], info->bytes_unused), human_bytes(bytes[2], info->bytes_wal));
}

ww_status store_print_info(store_call *call)
{
    json_writer w = {.to = stdout, .digits = JSON_DIGITS_F32};
    const bool json = call->settings.json;
    ww_store_info info = ww_store_info_default();
    ww_results *list = NULL;
    ww_status status = ww_store_describe(call->store, &info);
    if (status == WW_OK)
        status = ww_store_list(call->store, &list);
    if (status == WW_OK && json) {
        json_open(&w, NULL, '{');
        json_put_integer(&w, "format", info.format);
        json_put_text(&w, "sqlite_version", info.sqlite_version);
        json_put_integer(&w, "page_bytes", info.page_bytes);
        json_put_integer(&w, "bytes_file", info.bytes_file);
        json_put_integer(&w, "bytes_wal", info.bytes_wal);
        json_put_integer(&w, "bytes_unused", info.bytes_unused);
        json_open(&w, "collections", '[');
    } else if (status == WW_OK) {
        print_info(&info, call->operands[0]);
    }
    const bool opened = status == WW_OK && json;
    if (status == WW_OK)
        status = print_collections(list, json ? &w : NULL);
    if (opened) {
        json_close(&w);
        json_close(&w);
    }
    ww_results_destroy(list);
    return status;
}
