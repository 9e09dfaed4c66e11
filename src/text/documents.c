/* Documents that are being added: cut into chunks, with ids, texts and payloads that say where each chunk was. */
#include <stdio.h>
#include <string.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/json/json.h"
#include "base/json/json_value.h"
#include "base/memory.h"
#include "base/structs.h"
#include "base/text.h"
#include "text/text_state.h"

enum { SOURCE_BYTES_MAX = 240, NUMBERS_BYTES = 160, ESCAPED_BYTES = 6 };

STRUCT_INIT(ww_documents, {0})

/* The rows of all documents. */
typedef struct chunk_rows {
    ww_text *t;
    const ww_documents *documents;
    ww_chunking how;
    char **texts, **ids, **payloads;
    int64_t count, room;
    int64_t *counts;  /* number of chunks of each document */
    ww_chunk *chunks; /* of the current document */
    id_list rest;     /* chunks of older versions that the new chunks do not replace */
} chunk_rows;

static void rows_free(chunk_rows *r)
{
    for (int64_t i = 0; i < r->count; i++) {
        memory_free(r->texts[i]);
        memory_free(r->ids[i]);
        memory_free(r->payloads[i]);
    }
    for (int64_t i = 0; i < r->rest.count; i++)
        memory_free(r->rest.ids[i]);
    memory_free(r->rest.ids);
    memory_free(r->texts);
    memory_free(r->ids);
    memory_free(r->payloads);
    memory_free(r->counts);
    memory_free(r->chunks);
}

static ww_status rows_reserve(chunk_rows *r, int64_t more)
{
    char ***const lists[] = {&r->texts, &r->ids, &r->payloads};
    const int64_t room = r->count + more;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        char **larger = memory_resize(*lists[i], (size_t)(room + 1) * sizeof **lists[i]);
        if (!larger)
            return memory_failed("the chunks of documents", (size_t)room * sizeof **lists[i]);
        *lists[i] = larger;
    }
    r->room = room;
    return WW_OK;
}

/* ---- the payload of a chunk
   -------------------------------------------------------------------------------------------------- */

static ww_status check_document(const ww_documents *documents, int64_t i)
{
    static const char *const FIELDS[] = {"source", "chunk", "chunks", "start", "end"};
    const char *source = documents->sources[i], *text = documents->texts[i];
    const char *payload = documents->payloads ? documents->payloads[i] : NULL;
    const size_t length = source ? strnlen(source, SOURCE_BYTES_MAX + 1) : 0;
    json_fault fault;
    if (length == 0 || length > SOURCE_BYTES_MAX || !utf8_check(source, length))
        return ww_fail(WW_INVALID_ARGUMENT, "document %lld: its source is %s; it must have 1 to %d bytes of UTF-8",
                       (long long)i,
                       !source       ? "NULL"
                       : length == 0 ? "empty"
                                     : "too long or no UTF-8",
                       SOURCE_BYTES_MAX);
    if (!text || !utf8_check(text, strlen(text)))
        return ww_fail(WW_INVALID_ARGUMENT, "document '%s': its text is %s", source, text ? "not UTF-8" : "NULL");
    if (!payload)
        return WW_OK;
    if (!json_check(payload, strlen(payload), &fault) || json_type_of(json_root(payload)) != JSON_OBJECT)
        return ww_fail(WW_INVALID_ARGUMENT, "document '%s': its payload is not a JSON object", source);
    for (size_t field = 0; field < sizeof FIELDS / sizeof *FIELDS; field++)
        if (json_find(json_root(payload), FIELDS[field], strlen(FIELDS[field])))
            return ww_fail(WW_INVALID_ARGUMENT,
                           "document '%s': its payload has the field \"%s\", which says where a chunk is; give it another name",
                           source, FIELDS[field]);
    return WW_OK;
}

/* Writes a text as JSON. Returns the next byte. */
static char *put_json_text(char *at, const char *text)
{
    *at++ = '"';
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20) {
            at += snprintf(at, ESCAPED_BYTES + 1, "\\u%04x", (unsigned)*text);
        } else {
            if (*text == '"' || *text == '\\')
                *at++ = '\\';
            *at++ = *text;
        }
    }
    *at++ = '"';
    return at;
}

/* Makes an object with the fields of the chunk, then those of the document. Returns NULL if there is not enough memory. */
static char *make_payload(const char *source, const ww_chunk *chunk, const int64_t numbers[2], const char *payload)
{
    const char *own = payload ? json_root(payload) + 1 : "}"; /* after the bracket */
    own += strspn(own, " \t\r\n");
    const size_t bytes = ESCAPED_BYTES * strlen(source) + strlen(own) + NUMBERS_BYTES;
    char *made = memory_alloc(bytes);
    if (!made)
        return NULL;
    char *at = made + snprintf(made, bytes, "{\"source\":");
    at = put_json_text(at, source);
    snprintf(at, bytes - (size_t)(at - made), ",\"chunk\":%lld,\"chunks\":%lld,\"start\":%lld,\"end\":%lld%s%s",
             (long long)numbers[0], (long long)numbers[1], (long long)chunk->start, (long long)chunk->end,
             own[0] == '}' ? "" : ",", own);
    return made;
}

static ww_status take_chunk(chunk_rows *r, int64_t document, int64_t number, int64_t count)
{
    char id[WW_ID_BYTES_MAX + 1];
    const ww_chunk *chunk = &r->chunks[number];
    const char *source = r->documents->sources[document];
    const int64_t at = r->count++;
    const int length = snprintf(id, sizeof id, "%s#%lld", source, (long long)number);
    r->texts[at] = memory_copy_text(r->documents->texts[document] + chunk->start, (size_t)(chunk->end - chunk->start));
    r->ids[at] = memory_copy_text(id, (size_t)length);
    r->payloads[at] = make_payload(source, chunk, (const int64_t[]){number, count},
                                   r->documents->payloads ? r->documents->payloads[document] : NULL);
    return r->texts[at] && r->ids[at] && r->payloads[at] ? WW_OK
                                                         : memory_failed("a chunk", (size_t)(chunk->end - chunk->start));
}

static ww_status take_document(chunk_rows *r, int64_t i)
{
    const char *text = r->documents->texts[i];
    const size_t bytes = strlen(text);
    size_t count = 0;
    ww_status status = ww_text_chunks(r->t->model, text, bytes, &r->how, NULL, 0, &count);
    memory_free(r->chunks);
    r->chunks = status == WW_OK ? memory_alloc((count + 1) * sizeof *r->chunks) : NULL;
    if (status == WW_OK && !r->chunks)
        status = memory_failed("the chunks of a document", count * sizeof *r->chunks);
    if (status == WW_OK)
        status = ww_text_chunks(r->t->model, text, bytes, &r->how, r->chunks, count, &count);
    if (status == WW_OK)
        status = rows_reserve(r, (int64_t)count);
    r->counts[i] = (int64_t)count;
    for (size_t n = 0; status == WW_OK && n < count; n++)
        status = take_chunk(r, i, (int64_t)n, (int64_t)count);
    return status;
}

/* ---- the calls ----------------------------------------------------------------------------------------------------------- */

/* A chunk with the prefix, and with the tokens that the model adds to a text, must fit in the context, because the rest would
 * be cut off. So if chunks have the model's maximum length, there is less room for text. */
static ww_status check_room(chunk_rows *r)
{
    size_t around = 0;
    const char *prefix = r->t->kept.document_prefix;
    const int64_t context = r->t->info.context;
    const ww_status status = ww_model_tokenize(r->t->model, prefix, strlen(prefix), WW_TOKENS_PLAIN, NULL, 0, &around);
    if (status != WW_OK || r->how.tokens + (int64_t)around <= context)
        return status;
    const bool chosen = r->documents->chunking != NULL;
    if ((chosen && r->how.tokens > context) || context <= (int64_t)around)
        return ww_fail(WW_OUT_OF_RANGE, "chunks of %lld tokens: the model takes %lld, of which %zu are around a text",
                       (long long)r->how.tokens, (long long)context, around);
    r->how.tokens = context - (int64_t)around;
    r->how.overlap = min_i64(r->how.overlap, chosen ? r->how.tokens - 1 : r->how.tokens / 8);
    return WW_OK;
}

/* Lists the chunks that an older, longer version of a document has after the new ones. */
static ww_status list_rest(chunk_rows *r, const char *source, int64_t count)
{
    char id[WW_ID_BYTES_MAX + 1];
    for (int64_t n = count;; n++) {
        int64_t row;
        const int length = snprintf(id, sizeof id, "%s#%lld", source, (long long)n);
        const ww_status status = ww_collection_find(r->t->collection, id, &row);
        if (status != WW_OK)
            return status == WW_NOT_FOUND ? WW_OK : status;
        const size_t bytes = (size_t)(r->rest.count + 1) * sizeof *r->rest.ids;
        char **larger = memory_resize(r->rest.ids, bytes);
        char *copy = memory_copy_text(id, (size_t)length);
        r->rest.ids = larger ? larger : r->rest.ids;
        if (!larger || !copy) {
            memory_free(copy);
            return memory_failed("the chunks of documents", bytes);
        }
        r->rest.ids[r->rest.count++] = copy;
    }
}

static ww_status write_documents(ww_text *text, const ww_documents *callers, bool upsert, int64_t *chunks, const char *function)
{
    ww_documents documents;
    chunk_rows r = {.t = text, .documents = &documents, .how = ww_chunking_default()};
    ww_text_rows rows = ww_text_rows_default();
    ww_status status = text_check_handle(text, function);
    if (status == WW_OK)
        status = struct_read(&documents, sizeof documents, callers, function, "ww_documents");
    if (status != WW_OK)
        return status;
    if (documents.count < 0 || (documents.count > 0 && (!documents.texts || !documents.sources)))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: count is %lld, and texts or sources are NULL", function,
                       (long long)documents.count);
    if (documents.chunking)
        status = struct_read(&r.how, sizeof r.how, documents.chunking, function, "ww_chunking");
    r.how.struct_size = sizeof r.how;
    if (status == WW_OK)
        status = check_room(&r);
    for (int64_t i = 0; status == WW_OK && i < documents.count; i++)
        status = check_document(&documents, i);
    if (status == WW_OK && !(r.counts = memory_alloc_zeroed((size_t)documents.count + 1, sizeof *r.counts)))
        status = memory_failed("documents", (size_t)documents.count * sizeof *r.counts);
    for (int64_t i = 0; status == WW_OK && i < documents.count; i++)
        status = take_document(&r, i);
    rows.count = r.count;
    rows.texts = (const char *const *)r.texts;
    rows.ids = (const char *const *)r.ids;
    rows.payloads = (const char *const *)r.payloads;
    rows.progress = documents.progress;
    rows.progress_user = documents.progress_user;
    for (int64_t i = 0; upsert && status == WW_OK && i < documents.count; i++)
        status = list_rest(&r, documents.sources[i], r.counts[i]);
    if (status == WW_OK)
        status = text_write(text, &rows, &r.rest, upsert);
    if (status == WW_OK && chunks)
        *chunks = r.count;
    rows_free(&r);
    return status;
}

ww_status ww_text_add_documents(ww_text *text, const ww_documents *documents, int64_t *chunks)
{
    FLOAT_GUARD();
    return write_documents(text, documents, false, chunks, "ww_text_add_documents");
}

ww_status ww_text_upsert_documents(ww_text *text, const ww_documents *documents, int64_t *chunks)
{
    FLOAT_GUARD();
    return write_documents(text, documents, true, chunks, "ww_text_upsert_documents");
}
