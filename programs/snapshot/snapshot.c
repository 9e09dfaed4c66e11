/* Snapshots of single collections. */
#include "snapshot/snapshot.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/status.h"

#define TOKEN_NOTE   "warpwave.recovered" /* kept with a collection: by which restore it came */
#define PENDING      "recover/"
#define TOKEN_PREFIX "{\"token\":\""

enum { NAME_BYTES = 400, TOKEN_BYTES = 33 };

/* ---- lists of texts ------------------------------------------------------------------------------------------------------ */

typedef struct texts {
    char **texts;
    int64_t count, capacity;
} texts;

static void texts_free(texts *list)
{
    for (int64_t i = 0; i < list->count; i++)
        memory_free(list->texts[i]);
    memory_free(list->texts);
    *list = (texts){0};
}

/* Appends first + second + third. */
static ww_status texts_add(texts *list, const char *first, const char *second, const char *third)
{
    const size_t bytes = strlen(first) + strlen(second) + strlen(third) + 1;
    char *text = memory_alloc(bytes);
    if (!text || array_reserve(&list->texts, &list->capacity, list->count + 1, sizeof *list->texts, "a snapshot") != WW_OK) {
        memory_free(text);
        return memory_failed("a snapshot", bytes);
    }
    snprintf(text, bytes, "%s%s%s", first, second, third);
    list->texts[list->count++] = text;
    return WW_OK;
}

static bool texts_have(const texts *list, const char *text)
{
    for (int64_t i = 0; i < list->count; i++)
        if (strcmp(list->texts[i], text) == 0)
            return true;
    return false;
}

/* ---- notes --------------------------------------------------------------------------------------------------------------- */

typedef struct notes {
    texts names, values;
} notes;

static void notes_free(notes *n)
{
    texts_free(&n->names);
    texts_free(&n->values);
}

/* What follows "docs" in "settings/docs" or "index/docs/key", and the number of bytes before it; NULL if the note is not about
 * that collection. */
static const char *note_about(const char *note, const char *collection, size_t *kind_bytes)
{
    static const char *const KINDS[] = {"settings/", "layout/", "manhattan/", "multi/", "sparse/", "index/"};
    const size_t length = strlen(collection);
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
        const size_t kind = strlen(KINDS[i]);
        if (strncmp(note, KINDS[i], kind) != 0 || strncmp(note + kind, collection, length) != 0)
            continue;
        *kind_bytes = kind;
        const char *rest = note + kind + length;
        return *rest == '\0' || *rest == '/' ? rest : NULL;
    }
    return NULL;
}

static ww_status open_notes(ww_store *store, bool needed, ww_collection **opened)
{
    ww_status status = ww_store_collection(store, NOTES_COLLECTION, opened);
    if (status != WW_NOT_FOUND)
        return status;
    *opened = NULL;
    if (!needed)
        return WW_OK;
    ww_collection_config config = ww_collection_config_default();
    config.name = NOTES_COLLECTION;
    config.dim = 1;
    config.metric = WW_DOT;
    return ww_store_create(store, &config, opened);
}

/* Calls `tell` for every note of a store until it fails. */
static ww_status each_note(ww_store *store, ww_status (*tell)(void *user, const char *name, const char *value), void *user)
{
    ww_collection *kept = NULL;
    ww_results *all = NULL;
    ww_get get = ww_get_default();
    get.count = WW_ROWS_MAX;
    get.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS;
    ww_status status = open_notes(store, false, &kept);
    if (status == WW_OK && kept)
        status = ww_collection_get(kept, &get, &all);
    for (int64_t i = 0; status == WW_OK && i < ww_results_count(all, 0); i++) {
        const char *name = ww_results_id(all, 0, i), *value = ww_results_payload(all, 0, i);
        status = tell(user, name, value ? value : "{}");
    }
    ww_results_destroy(all);
    ww_collection_destroy(kept);
    return status;
}

static ww_status put_notes(ww_collection *kept, const notes *n)
{
    ww_rows rows = ww_rows_default();
    if (n->names.count == 0)
        return WW_OK;
    float *nothing = memory_alloc_zeroed((size_t)n->names.count, sizeof *nothing);
    if (!nothing)
        return memory_failed("notes", (size_t)n->names.count * sizeof *nothing);
    rows.count = n->names.count;
    rows.dim = 1;
    rows.vectors = nothing;
    rows.ids = (const char *const *)n->names.texts;
    rows.payloads = (const char *const *)n->values.texts;
    const ww_status status = ww_collection_upsert(kept, &rows);
    memory_free(nothing);
    return status;
}

static ww_status discard_notes(ww_collection *kept, const texts *names)
{
    return names->count > 0 ? ww_collection_discard(kept, (const char *const *)names->texts, names->count, NULL) : WW_OK;
}

/* Which notes are wanted, and what their names become: `prefix` + kind + `to` + rest. */
typedef struct wanted {
    const char *collection, *prefix, *to;
    notes found;
} wanted;

static ww_status find_about(void *user, const char *name, const char *value)
{
    wanted *w = user;
    char kind[NAME_BYTES];
    size_t bytes = 0;
    const char *rest = note_about(name, w->collection, &bytes);
    if (!rest)
        return WW_OK;
    snprintf(kind, sizeof kind, "%s%.*s", w->prefix, (int)bytes, name);
    ww_status status = texts_add(&w->found.names, kind, w->to, rest);
    return status == WW_OK ? texts_add(&w->found.values, value, "", "") : status;
}

/* ---- the collections of a store ------------------------------------------------------------------------------------------ */

static ww_status list_names(ww_store *store, texts *names)
{
    ww_results *list = NULL;
    ww_status status = ww_store_list(store, &list);
    for (int64_t i = 0; status == WW_OK && i < ww_results_count(list, 0); i++)
        status = texts_add(names, ww_results_id(list, 0, i), "", "");
    ww_results_destroy(list);
    return status;
}

/* What follows "docs" in "docs" and "docs/image"; NULL for others. */
static const char *part_of(const char *name, const char *collection)
{
    const size_t length = strlen(collection);
    return strncmp(name, collection, length) == 0 && (name[length] == '\0' || name[length] == '/') ? name + length : NULL;
}

static bool is_whole(const char *name)
{
    return !strchr(name, '/') && strcmp(name, NOTES_COLLECTION) != 0;
}

/* ---- writing ------------------------------------------------------------------------------------------------------------- */

static ww_status write_notes(const snapshot_call *call, const notes *found)
{
    ww_store *copy = NULL;
    ww_collection *kept = NULL;
    ww_status status = ww_store_open(call->path, call->device, NULL, &copy);
    if (status == WW_OK)
        status = open_notes(copy, true, &kept);
    if (status == WW_OK)
        status = put_notes(kept, found);
    ww_collection_destroy(kept);
    ww_store_close(copy);
    return status;
}

ww_status snapshot_write(const snapshot_call *call, const char *collection)
{
    texts all = {0}, names = {0};
    wanted w = {.collection = collection, .prefix = "", .to = collection};
    ww_status status = list_names(call->store, &all);
    if (status == WW_OK && !texts_have(&all, collection))
        status = ww_fail(WW_NOT_FOUND, "there is no collection '%s' in the store", collection);
    for (int64_t i = 0; status == WW_OK && i < all.count; i++)
        if (part_of(all.texts[i], collection))
            status = texts_add(&names, all.texts[i], "", "");
    if (status == WW_OK)
        status = each_note(call->store, find_about, &w);
    if (status == WW_OK) {
        ww_store_copy copy = ww_store_copy_default();
        copy.names = (const char *const *)names.texts;
        copy.count = names.count;
        copy.progress = call->progress;
        copy.user = call->user;
        status = ww_store_backup_collections(call->store, call->path, &copy);
    }
    if (status == WW_OK && w.found.names.count > 0) {
        status = write_notes(call, &w.found);
        if (status != WW_OK)
            (void)unlink(call->path);
    }
    notes_free(&w.found);
    texts_free(&names);
    texts_free(&all);
    return status;
}

/* ---- finishing ----------------------------------------------------------------------------------------------------------- */

/* A restore whose notes wait: "recover/docs" has its token, "recover/docs:settings/docs" and so on are the notes. */
typedef struct pending {
    const char *collection;
    char prefix[NAME_BYTES], token[TOKEN_BYTES];
    notes staged;     /* under their final names */
    texts stage, old; /* names of notes to remove */
} pending;

static ww_status find_pending(void *user, const char *name, const char *value)
{
    pending *p = user;
    size_t bytes = 0;
    const size_t length = strlen(p->prefix);
    if (note_about(name, p->collection, &bytes))
        return texts_add(&p->old, name, "", "");
    if (strncmp(name, p->prefix, length) != 0 || (name[length] != '\0' && name[length] != ':'))
        return WW_OK;
    ww_status status = texts_add(&p->stage, name, "", "");
    if (name[length] == '\0') {
        const char *token = strncmp(value, TOKEN_PREFIX, strlen(TOKEN_PREFIX)) == 0 ? value + strlen(TOKEN_PREFIX) : "";
        snprintf(p->token, sizeof p->token, "%.*s", (int)strcspn(token, "\""), token);
        return status;
    }
    if (status == WW_OK)
        status = texts_add(&p->staged.names, name + length + 1, "", "");
    return status == WW_OK ? texts_add(&p->staged.values, value, "", "") : status;
}

static ww_status apply(ww_store *store, ww_collection *kept, const pending *p)
{
    char token[WW_NOTE_BYTES] = "";
    ww_status status = ww_store_get_note(store, p->collection, TOKEN_NOTE, token);
    if (status != WW_OK && status != WW_NOT_FOUND)
        return status;
    const bool committed = status == WW_OK && p->token[0] != '\0' && strcmp(token, p->token) == 0;
    status = ww_store_begin(store);
    if (status != WW_OK)
        return status;
    if (committed)
        status = discard_notes(kept, &p->old);
    if (status == WW_OK && committed)
        status = put_notes(kept, &p->staged);
    if (status == WW_OK)
        status = discard_notes(kept, &p->stage);
    if (status == WW_OK)
        return ww_store_commit(store);
    char message[512];
    snprintf(message, sizeof message, "%s", ww_error_message());
    (void)ww_store_rollback(store);
    return ww_fail(status, "%s", message);
}

static ww_status finish(ww_store *store, const char *collection)
{
    pending p = {.collection = collection};
    ww_collection *kept = NULL;
    snprintf(p.prefix, sizeof p.prefix, PENDING "%s", collection);
    ww_status status = each_note(store, find_pending, &p);
    if (status == WW_OK && p.stage.count > 0)
        status = open_notes(store, true, &kept);
    if (status == WW_OK && kept)
        status = apply(store, kept, &p);
    ww_collection_destroy(kept);
    notes_free(&p.staged);
    texts_free(&p.stage);
    texts_free(&p.old);
    return status;
}

static ww_status find_interrupted(void *user, const char *name, const char *value)
{
    (void)value;
    const size_t length = strlen(PENDING);
    return strncmp(name, PENDING, length) == 0 && !strchr(name + length, ':') ? texts_add(user, name + length, "", "") : WW_OK;
}

ww_status snapshot_finish(ww_store *store)
{
    texts found = {0};
    ww_status status = each_note(store, find_interrupted, &found);
    for (int64_t i = 0; status == WW_OK && i < found.count; i++)
        status = finish(store, found.texts[i]);
    texts_free(&found);
    return status;
}

/* ---- restoring ----------------------------------------------------------------------------------------------------------- */

/* What is copied under which names, and dropped. */
typedef struct plan {
    texts from, to;
    wanted w;
    char token[TOKEN_BYTES];
} plan;

/* The collection of the snapshot that is meant. */
static ww_status choose(const texts *all, const char *to, const char **from)
{
    int64_t whole = 0;
    const char *only = NULL;
    for (int64_t i = 0; i < all->count; i++)
        if (is_whole(all->texts[i])) {
            only = all->texts[i];
            whole++;
        }
    if (*from && !texts_have(all, *from))
        return ww_fail(WW_NOT_FOUND, "the snapshot has no collection '%s'", *from);
    if (!*from)
        *from = texts_have(all, to) ? to : whole == 1 ? only : NULL;
    return *from ? WW_OK
                 : ww_fail(WW_NOT_FOUND, "the snapshot has %lld collections, and none of them is called '%s'", (long long)whole,
                           to);
}

/* The collection itself comes first: the token is kept with it. */
static ww_status plan_names(plan *p, const texts *all, const texts *live, const char *from, const char *to)
{
    ww_status status = texts_add(&p->from, from, "", "");
    if (status == WW_OK)
        status = texts_add(&p->to, to, "", "");
    for (int64_t i = 0; status == WW_OK && i < all->count; i++) {
        const char *rest = part_of(all->texts[i], from);
        if (!rest || *rest == '\0')
            continue;
        status = texts_add(&p->from, all->texts[i], "", "");
        if (status == WW_OK)
            status = texts_add(&p->to, to, rest, "");
    }
    for (int64_t i = 0; status == WW_OK && i < live->count; i++)
        if (part_of(live->texts[i], to) && !texts_have(&p->to, live->texts[i]))
            status = texts_add(&p->to, live->texts[i], "", ""); /* dropped: it has no entry in `from` */
    return status;
}

/* Reads what the snapshot has and what the store has. */
static ww_status plan_read(const snapshot_call *call, const char *from, const char *to, plan *p)
{
    texts all = {0}, live = {0};
    ww_store *snapshot = NULL;
    char prefix[NAME_BYTES];
    ww_store_config config = ww_store_config_default();
    config.must_exist = 1;
    snprintf(prefix, sizeof prefix, PENDING "%s:", to);
    ww_status status = ww_store_open(call->path, call->device, &config, &snapshot);
    if (status == WW_OK)
        status = list_names(snapshot, &all);
    if (status == WW_OK)
        status = list_names(call->store, &live);
    if (status == WW_OK)
        status = choose(&all, to, &from);
    if (status == WW_OK)
        status = plan_names(p, &all, &live, from, to);
    p->w = (wanted){.collection = from, .prefix = prefix, .to = to};
    if (status == WW_OK)
        status = each_note(snapshot, find_about, &p->w);
    p->w.collection = p->w.prefix = p->w.to = NULL;
    texts_free(&all);
    texts_free(&live);
    ww_store_close(snapshot);
    return status;
}

static ww_status make_token(plan *p)
{
    unsigned char bytes[TOKEN_BYTES / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return ww_fail(WW_INTERNAL, "the system has no random numbers");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(p->token + 2 * i, 3, "%02x", bytes[i]);
    return WW_OK;
}

/* Writes the notes under the names with which they wait, and the token, in one write. */
static ww_status stage(ww_store *store, plan *p, const char *to)
{
    ww_collection *kept = NULL;
    ww_status status = make_token(p);
    if (status == WW_OK)
        status = texts_add(&p->w.found.names, PENDING, to, "");
    if (status == WW_OK)
        status = texts_add(&p->w.found.values, TOKEN_PREFIX, p->token, "\"}");
    if (status == WW_OK)
        status = open_notes(store, true, &kept);
    if (status == WW_OK)
        status = put_notes(kept, &p->w.found);
    ww_collection_destroy(kept);
    return status;
}

static ww_status copy(const snapshot_call *call, const plan *p)
{
    const char **names = memory_alloc_zeroed((size_t)p->to.count + 1, sizeof *names);
    ww_store_copy copied = ww_store_copy_default();
    if (!names)
        return memory_failed("a snapshot", (size_t)p->to.count * sizeof *names);
    for (int64_t i = 0; i < p->from.count; i++)
        names[i] = p->from.texts[i];
    copied.names = names;
    copied.to = (const char *const *)p->to.texts;
    copied.count = p->to.count;
    copied.note_key = TOKEN_NOTE;
    copied.note = p->token;
    copied.progress = call->progress;
    copied.user = call->user;
    const ww_status status = ww_store_restore(call->store, call->path, &copied);
    memory_free(names);
    return status;
}

ww_status snapshot_restore(const snapshot_call *call, const char *from, const char *to)
{
    plan p = {0};
    char message[1024] = "";
    ww_status status = snapshot_finish(call->store);
    if (status == WW_OK)
        status = plan_read(call, from, to, &p);
    if (status == WW_OK)
        status = stage(call->store, &p, to);
    if (status == WW_OK)
        status = copy(call, &p);
    if (status != WW_OK)
        snprintf(message, sizeof message, "%s", ww_error_message());
    if (p.token[0] != '\0') { /* forgets the notes if the copy failed */
        const ww_status finished = finish(call->store, to);
        status = status == WW_OK ? finished : ww_fail(status, "%s", message);
    }
    texts_free(&p.from);
    texts_free(&p.to);
    notes_free(&p.w.found);
    return status;
}

static ww_status restore_each(const snapshot_call *call, const texts *all)
{
    ww_status status = WW_OK;
    for (int64_t i = 0; status == WW_OK && i < all->count; i++)
        if (is_whole(all->texts[i]))
            status = snapshot_restore(call, all->texts[i], all->texts[i]);
    return status;
}

ww_status snapshot_restore_all(const snapshot_call *call)
{
    texts all = {0}, live = {0};
    ww_store *snapshot = NULL;
    ww_store_config config = ww_store_config_default();
    config.must_exist = 1;
    ww_status status = ww_store_open(call->path, call->device, &config, &snapshot);
    if (status == WW_OK)
        status = list_names(snapshot, &all);
    ww_store_close(snapshot);
    if (status == WW_OK)
        status = list_names(call->store, &live);
    if (status == WW_OK && live.count == 0) { /* with all notes, also those about aliases */
        ww_store_copy copied = ww_store_copy_default();
        copied.names = (const char *const *)all.texts;
        copied.count = all.count;
        copied.progress = call->progress;
        copied.user = call->user;
        status = ww_store_restore(call->store, call->path, &copied);
    } else if (status == WW_OK) {
        status = restore_each(call, &all);
    }
    texts_free(&all);
    texts_free(&live);
    return status;
}
