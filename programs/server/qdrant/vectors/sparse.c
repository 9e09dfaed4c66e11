/* Sparse vectors of Qdrant's API. */
#include "server/qdrant/vectors/sparse.h"

#include <math.h>
#include <string.h>

#include <warpwave/text.h>

#include "base/json/json_sparse.h"
#include "base/json/json_value.h"
#include "base/memory.h"
#include "base/message.h"
#include "server/notes.h"
#include "server/qdrant/search.h"

/* ---- values -------------------------------------------------------------------------------------------------------------- */

bool is_sparse(const char *value)
{
    return value && json_type_of(value) == JSON_OBJECT && json_given(value, "indices");
}

bool sparse_value_read(request *r, const char *value, const char *what, ww_sparse_vector *vector)
{
    char message[512];
    json_sparse read;
    float score = 0.0f;
    ww_status status = json_sparse_read(value, WW_SPARSE_MAX, &read);
    *vector = (ww_sparse_vector){read.count, read.indices, read.values};
    if (status == WW_OK) /* the library says what is wrong with a vector, and so before anything is queued */
        status = ww_sparse_score(vector, vector, &score, NULL);
    if (status == WW_OK || status == WW_OUT_OF_MEMORY)
        return status == WW_OK ? true : request_fail_status(r, status);
    text_without_calls(message, sizeof message, ww_error_message());
    return request_fail(r, 400, "%s: %s", what, message);
}

/* Makes the vector of a text, in memory of just its size. */
static ww_status make_vector(const char *text, const ww_bm25 *how, ww_sparse_vector *vector)
{
    ww_sparse_room room = {.capacity = WW_SPARSE_MAX};
    room.indices = memory_alloc(WW_SPARSE_MAX * sizeof *room.indices);
    room.values = memory_alloc(WW_SPARSE_MAX * sizeof *room.values);
    *vector = (ww_sparse_vector){0, room.indices, room.values};
    if (!room.indices || !room.values)
        return memory_failed("a sparse vector", WW_SPARSE_MAX * sizeof *room.indices);
    const ww_status status = ww_sparse_from_text(text, how, &room);
    vector->count = room.count;
    uint32_t *indices = memory_resize(room.indices, (size_t)(room.count + 1) * sizeof *indices);
    vector->indices = indices ? indices : room.indices;
    float *values = memory_resize(room.values, (size_t)(room.count + 1) * sizeof *values);
    vector->values = values ? values : room.values;
    return status;
}

/* Reads {"k": ..., "b": ..., "avg_len": ...}, the options of fastembed's model that hold here. */
static bool read_options(request *r, const char *options, const char *what, ww_bm25 *how)
{
    const struct {
        const char *name;
        double *to;
    } OPTIONS[] = {{"k", &how->k}, {"b", &how->b}, {"avg_len", &how->average_words}};
    if (json_type_of(options) != JSON_OBJECT)
        return request_fail(r, 400, "%s.options: an object is needed", what);
    for (const char *key = json_first(options); key; key = json_next(key)) {
        double *to = NULL;
        for (size_t i = 0; i < sizeof OPTIONS / sizeof *OPTIONS; i++)
            if (json_text_is(key, OPTIONS[i].name, strlen(OPTIONS[i].name)))
                to = OPTIONS[i].to;
        const char *value = json_member(key);
        if (!to)
            return request_fail(
                r, 400, "%s.options: k, b and avg_len are supported; words are not stemmed, and none is left out", what);
        if (json_type_of(value) != JSON_NUMBER)
            return request_fail(r, 400, "%s.options: a number is needed", what);
        const json_number number = json_number_of(value);
        *to = number.is_integer ? (double)number.integer : number.real;
    }
    return true;
}

bool sparse_document_read(request *r, const char *document, const char *what, ww_sparse_vector *vector)
{
    char message[512];
    ww_bm25 how = ww_bm25_default();
    const char *options = json_given(document, "options");
    *vector = (ww_sparse_vector){0};
    if (options && !read_options(r, options, what, &how))
        return false;
    char *text = request_copy_text(r, json_given(document, "text"), what);
    if (!text)
        return false;
    const ww_status status = make_vector(text, &how, vector);
    memory_free(text);
    if (status == WW_OK || status == WW_OUT_OF_MEMORY)
        return status == WW_OK ? true : request_fail_status(r, status);
    text_without_calls(message, sizeof message, ww_error_message());
    return request_fail(r, 400, "%s: %s", what, message);
}

ww_status sparse_of_words(const char *text, ww_sparse_vector *vector)
{
    ww_bm25 how = ww_bm25_default();
    how.query = 1;
    return make_vector(text, &how, vector);
}

ww_status sparse_value_copy(const ww_sparse_vector *from, ww_sparse_vector *to)
{
    uint32_t *indices = memory_alloc((size_t)(from->count + 1) * sizeof *indices);
    float *values = memory_alloc((size_t)(from->count + 1) * sizeof *values);
    *to = (ww_sparse_vector){from->count, indices, values};
    if (!indices || !values)
        return memory_failed("a sparse vector", (size_t)from->count * sizeof *indices);
    if (from->count > 0) {
        memcpy(indices, from->indices, (size_t)from->count * sizeof *indices);
        memcpy(values, from->values, (size_t)from->count * sizeof *values);
    }
    return WW_OK;
}

void sparse_value_free(ww_sparse_vector *vector)
{
    memory_free((void *)(uintptr_t)vector->indices);
    memory_free((void *)(uintptr_t)vector->values);
    *vector = (ww_sparse_vector){0};
}

void put_sparse(out *o, const ww_results *results, int64_t query, int64_t hit)
{
    ww_sparse_vector v;
    (void)ww_results_sparse(results, query, hit, &v);
    out_text(o, "{\"indices\":[");
    for (int64_t i = 0; i < v.count; i++)
        out_format(o, i > 0 ? ",%lu" : "%lu", (unsigned long)v.indices[i]);
    out_text(o, "],\"values\":");
    out_floats(o, v.values, v.count);
    out_text(o, "}");
}

/* ---- settings ------------------------------------------------------------------------------------------------------------ */

static bool asks_idf(const char *settings)
{
    const char *modifier = json_given(settings, "modifier");
    return modifier && json_type_of(modifier) == JSON_TEXT && json_text_is(modifier, "idf", 3);
}

bool sparse_check_settings(request *r, const char *settings)
{
    enum { SETTINGS_BYTES = 4096 };
    if (json_type_of(settings) != JSON_OBJECT)
        return request_fail(r, 400, "sparse_vectors: an object with the settings of each vector is needed");
    const char *modifier = json_given(settings, "modifier");
    if (json_end(settings) - settings > SETTINGS_BYTES)
        return request_fail(r, 400, "sparse_vectors: the settings of a vector have more than %d bytes", SETTINGS_BYTES);
    return !modifier || asks_idf(settings) || (json_type_of(modifier) == JSON_TEXT && json_text_is(modifier, "none", 4))
               ? true
               : request_fail(r, 400, "sparse_vectors.modifier: none or idf is needed");
}

static const char NOTES[] = "sparse";

ww_status sparse_note(server *s, const char *collection, const char *vector, const char *settings)
{
    out value = {0};
    if (settings)
        out_bytes(&value, settings, (size_t)(json_end(settings) - settings));
    out_bytes(&value, "", 1);
    const ww_status status = value.failed ? memory_failed("a note", value.length)
                                          : vector_notes_put(s, NOTES, collection, vector, settings ? value.bytes : NULL);
    out_free(&value);
    return status;
}

ww_status sparse_forget(server *s, const char *collection)
{
    return vector_notes_remove(s, NOTES, collection);
}

static void mark(void *user, const char *rest, const char *value)
{
    entry *e = user;
    for (size_t i = 0; i < e->part_count; i++)
        if (strcmp(e->parts[i].name, rest) == 0) {
            e->parts[i].sparse = true;
            e->parts[i].idf = asks_idf(json_root(value));
        }
}

ww_status sparse_mark(server *s, entry *e)
{
    return vector_notes_each(s, NOTES, e->name, mark, e);
}

typedef struct describing {
    out *o;
    bool begun;
} describing;

static void put_note(void *user, const char *rest, const char *value)
{
    describing *d = user;
    out_text(d->o, d->begun ? "," : ",\"sparse_vectors\":{");
    out_quoted(d->o, rest, strlen(rest));
    out_text(d->o, ":");
    out_text(d->o, value);
    d->begun = true;
}

void sparse_describe(server *s, out *o, const entry *e)
{
    describing d = {o, false};
    (void)vector_notes_each(s, NOTES, e->name, put_note, &d); /* the description is correct without them */
    out_text(o, d.begun ? "}" : "");
}
