/* The keys that payloads have, with their types: the page builds filters from them. */
#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/ui/ui.h"

/* Maximum of rows to look at, of keys to report, of nested objects, and bytes of a key such as "author.name". */
enum { FIELD_ROWS_MAX = 20000, FIELDS_MAX = 100, FIELD_DEPTH_MAX = 3, FIELD_KEY_BYTES = 128 };

typedef struct field {
    char key[FIELD_KEY_BYTES];
    int64_t rows;
    unsigned types; /* bit t: a value of the type t of json_type */
} field;

typedef struct field_list {
    field *fields;
    size_t count;
} field_list;

static void count_field(field_list *list, const char *key, json_type type)
{
    size_t at = 0;
    while (at < list->count && strcmp(list->fields[at].key, key) != 0)
        at++;
    if (at == FIELDS_MAX)
        return;
    field *f = &list->fields[at];
    if (at == list->count) {
        memcpy(f->key, key, strlen(key) + 1);
        list->count++;
    }
    f->rows++;
    f->types |= 1U << type;
}

/* Counts the keys of an object, and of objects in it up to FIELD_DEPTH_MAX deep. `prefix` has the keys above and a dot. Keys
 * that filters cannot name are left out. */
static void count_fields(field_list *list, const char *object, const char *prefix, int depth)
{
    for (const char *at = json_first(object); at; at = json_next(at)) {
        char key[FIELD_KEY_BYTES + 1];
        const size_t before = strlen(prefix);
        const char *value = json_member(at);
        if (before + (size_t)(json_end(at) - at) >= FIELD_KEY_BYTES)
            continue;
        memcpy(key, prefix, before);
        const size_t length = json_text_read(at, key + before);
        key[before + length] = '\0';
        if (length == 0 || strlen(key) != before + length || strpbrk(key + before, ".[]\"\\"))
            continue;
        count_field(list, key, json_type_of(value));
        if (json_type_of(value) == JSON_OBJECT && depth < FIELD_DEPTH_MAX && before + length + 1 < FIELD_KEY_BYTES) {
            memcpy(key + before + length, ".", 2);
            count_fields(list, value, key, depth + 1);
        }
    }
}

/* Lists count as their elements, as in filters. */
static void put_fields(out *o, const field_list *list)
{
    static const char *const TYPES[] = {"null", "bool", "bool", "number", "text", "list", "object"};
    for (size_t i = 0; i < list->count; i++) {
        const field *f = &list->fields[i];
        const char *last = "";
        out_text(o, i > 0 ? ",{\"key\":" : "{\"key\":");
        out_quoted(o, f->key, strlen(f->key));
        out_format(o, ",\"rows\":%lld,\"types\":[", (long long)f->rows);
        for (size_t t = 0; t < sizeof TYPES / sizeof *TYPES; t++)
            if ((f->types >> t & 1) != 0 && strcmp(last, TYPES[t]) != 0) {
                out_format(o, "%s\"%s\"", last[0] != '\0' ? "," : "", TYPES[t]);
                last = TYPES[t];
            }
        out_text(o, "]}");
    }
}

void run_fields(request *r)
{
    ww_results *rows = NULL;
    ww_get get = ww_get_default();
    field_list list = {memory_alloc_zeroed(FIELDS_MAX, sizeof *list.fields), 0};
    get.count = FIELD_ROWS_MAX;
    get.fetch = WW_FETCH_PAYLOADS;
    const ww_status status = list.fields ? ww_collection_get(r->entry->collection, &get, &rows)
                                         : memory_failed("the keys of payloads", FIELDS_MAX * sizeof *list.fields);
    if (status != WW_OK) {
        memory_free(list.fields);
        request_fail_status(r, status);
        return;
    }
    const int64_t count = ww_results_count(rows, 0);
    for (int64_t i = 0; i < count; i++) {
        const char *payload = ww_results_payload(rows, 0, i);
        if (payload && json_type_of(json_root(payload)) == JSON_OBJECT)
            count_fields(&list, json_root(payload), "", 1);
    }
    request_result_begin(r);
    out_format(&r->answer, "{\"rows\":%lld,\"fields\":[", (long long)count);
    put_fields(&r->answer, &list);
    out_text(&r->answer, "]}");
    request_result_end(r);
    ww_results_destroy(rows);
    memory_free(list.fields);
}
