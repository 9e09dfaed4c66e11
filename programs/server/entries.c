/* The collections that are served, by name and alias. */
#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "base/text.h"
#include "server/notes.h"
#include "server/qdrant/collections/indexes.h"
#include "server/qdrant/collections/layout.h"
#include "server/qdrant/collections/settings.h"
#include "server/qdrant/vectors/sparse.h"
#include "server/state.h"
#include "server/ui/map.h"

enum { ALIAS_BYTES = 512 };

/* With the lock. */
static entry *find_named(server *s, const char *name)
{
    for (entry *e = s->entries; e; e = e->next)
        if (strcmp(e->name, name) == 0) {
            e->references++;
            return e;
        }
    return NULL;
}

/* With the lock. A collection's own name is stronger than an alias. */
static entry *find_locked(server *s, const char *name)
{
    entry *found = find_named(s, name);
    for (const alias *a = s->aliases; !found && a; a = a->next)
        if (strcmp(a->name, name) == 0)
            found = find_named(s, a->collection);
    return found;
}

entry *entry_find(server *s, const char *name)
{
    pthread_mutex_lock(&s->lock);
    entry *found = find_locked(s, name);
    pthread_mutex_unlock(&s->lock);
    return found;
}

static void close_entry(entry *e)
{
    for (size_t i = 0; i < e->part_count; i++)
        close_entry(&e->parts[i]);
    map_job_free(e->map);
    indexes_forget(e);
    ww_collection_destroy(e->collection);
    pthread_rwlock_destroy(&e->swap);
    memory_free(e->parts);
    memory_free(e->stored);
    memory_free(e->name);
}

static void entry_free(entry *e)
{
    close_entry(e);
    memory_free(e);
}

/* What replaces the collection is not kept waiting by ever new requests. */
static void swap_init(entry *e)
{
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&e->swap, &attributes);
    pthread_rwlockattr_destroy(&attributes);
}

/* While requests run, no snapshot replaces the collection. Those that waited until one had are sent on to the new one. */
static bool run_unreplaced(queue *q, request *taken)
{
    entry *e = q->held;
    pthread_rwlock_rdlock(&e->swap);
    const bool more = requests_run(q, taken);
    pthread_rwlock_unlock(&e->swap);
    return more;
}

/* Opens a collection of the store; `shown` is its name in this entry. */
static ww_status open_entry(server *s, const char *name, const char *shown, entry *e)
{
    ww_collection_info info = ww_collection_info_default();
    *e = (entry){
        .name = memory_copy_text(shown, strlen(shown)), .stored = memory_copy_text(name, strlen(name)), .references = 2};
    swap_init(e);
    if (!e->name || !e->stored)
        return memory_failed("a collection", strlen(shown));
    ww_status status = ww_store_collection(s->store, name, &e->collection);
    if (status == WW_OK)
        status = ww_collection_describe(e->collection, &info);
    e->dim = info.dim;
    e->metric = info.metric;
    e->type = info.type;
    e->by_id = following_has(s, name);
    for (size_t i = 0; i < STRICT_LIMITS; i++)
        atomic_store(&e->strict[i], -1);
    queue_init(&e->queue, s, e->name, run_unreplaced);
    queue_init(&e->reads, s, e->name, run_unreplaced);
    e->reads.parallel = true;
    return status;
}

/* Opens the collections whose names begin with the entry's name and a slash, and with `unnamed` that of the vectors without a
 * name. */
static ww_status open_parts(server *s, entry *e, bool unnamed)
{
    ww_results *list = NULL;
    ww_status status = ww_store_list(s->store, &list);
    const int64_t count = ww_results_count(list, 0);
    const size_t length = strlen(e->name);
    e->parts = status == WW_OK ? memory_alloc_zeroed((size_t)count + 1, sizeof *e->parts) : NULL;
    if (status == WW_OK && !e->parts)
        status = memory_failed("a collection", (size_t)count * sizeof *e->parts);
    if (status == WW_OK && unnamed)
        status = open_entry(s, e->name, "", &e->parts[e->part_count++]);
    for (int64_t i = 0; status == WW_OK && i < count; i++) {
        const char *name = ww_results_id(list, 0, i);
        if (strncmp(name, e->name, length) == 0 && name[length] == '/' && name[length + 1] != '\0')
            status = open_entry(s, name, name + length + 1, &e->parts[e->part_count++]);
    }
    ww_results_destroy(list);
    return status;
}

bool request_open_collection(request *r)
{
    r->entry = entry_open(r->server, r->names[0]);
    if (!r->entry)
        return request_fail(r, 404, "Not found: Collection `%s` doesn't exist!", r->names[0]);
    return access_entry(r);
}

const entry *entry_part(const entry *e, const char *name)
{
    if (!e->split)
        return name[0] == '\0' ? e : NULL;
    for (size_t i = 0; i < e->part_count; i++)
        if (strcmp(e->parts[i].name, name) == 0)
            return &e->parts[i];
    return NULL;
}

void entry_set_prefixes(server *s, entry *e, const ww_store_model *model)
{
    pthread_mutex_lock(&s->lock);
    text_copy(e->query_prefix, sizeof e->query_prefix, model->query_prefix);
    text_copy(e->document_prefix, sizeof e->document_prefix, model->document_prefix);
    pthread_mutex_unlock(&s->lock);
}

/* Creates an entry with two references: the list's and the caller's. */
static ww_status entry_create(server *s, const char *name, entry **made)
{
    entry *e = memory_alloc_zeroed(1, sizeof *e);
    if (!e)
        return memory_failed("a collection", sizeof *e);
    ww_store_model model = ww_store_model_default();
    layout how;
    char points[LAYOUT_NAME_BYTES];
    layout_points_name(name, points);
    ww_status status = layout_read(s, name, &how);
    if (status == WW_OK)
        status = open_entry(s, how.unnamed ? points : name, name, e);
    if (status == WW_OK)
        status = open_parts(s, e, how.unnamed);
    e->split = how.split || e->part_count > 0;
    if (status == WW_OK)
        status = layout_mark_kinds(s, e);
    if (status == WW_OK)
        status = sparse_mark(s, e);
    if (status == WW_OK) {
        const ww_status kept = ww_store_get_model(s->store, name, &model);
        status = kept == WW_NOT_FOUND ? WW_OK : kept;
    }
    if (status == WW_OK)
        status = settings_load(s, e);
    entry_set_prefixes(s, e, &model);
    e->queue.held = e->reads.held = e;
    if (status != WW_OK) {
        entry_free(e);
        return status;
    }
    *made = e;
    return WW_OK;
}

/* The same for the collection of an alias, which may have come from another node and not be open yet. */
static ww_status create_of_alias(server *s, const char *name, entry **made)
{
    char collection[ALIAS_BYTES] = "";
    pthread_mutex_lock(&s->lock);
    for (const alias *a = s->aliases; a; a = a->next)
        if (strcmp(a->name, name) == 0)
            text_copy(collection, sizeof collection, a->collection);
    pthread_mutex_unlock(&s->lock);
    return collection[0] != '\0' ? entry_create(s, collection, made) : WW_NOT_FOUND;
}

entry *entry_open(server *s, const char *name)
{
    entry *found = entry_find(s, name), *made = NULL;
    if (found || strcmp(name, NOTES_COLLECTION) == 0 || strchr(name, '/'))
        return found;
    if (entry_create(s, name, &made) != WW_OK && create_of_alias(s, name, &made) != WW_OK)
        return NULL;
    pthread_mutex_lock(&s->lock);
    found = find_locked(s, name); /* another thread was faster? */
    if (!found) {
        made->next = s->entries;
        s->entries = made;
    }
    pthread_mutex_unlock(&s->lock);
    if (found)
        entry_free(made);
    return found ? found : made;
}

void entry_release(server *s, entry *e)
{
    pthread_mutex_lock(&s->lock);
    const bool last = --e->references == 0;
    pthread_mutex_unlock(&s->lock);
    if (last)
        entry_free(e);
}

void entry_forget(server *s, const char *name)
{
    entry *forgotten = NULL;
    pthread_mutex_lock(&s->lock);
    for (entry **at = &s->entries; *at; at = &(*at)->next)
        if (strcmp((*at)->name, name) == 0) {
            forgotten = *at;
            *at = forgotten->next;
            atomic_store(&forgotten->replaced, true);
            break;
        }
    pthread_mutex_unlock(&s->lock);
    if (forgotten)
        entry_release(s, forgotten);
}

entry *entry_next(server *s, entry *e)
{
    pthread_mutex_lock(&s->lock);
    const bool there = !e || !atomic_load(&e->replaced); /* otherwise what it points to may be gone, too */
    entry *next = !there ? NULL : e ? e->next : s->entries;
    if (next)
        next->references++;
    pthread_mutex_unlock(&s->lock);
    if (e)
        entry_release(s, e);
    return next;
}

/* ---- at the beginning and at the end ------------------------------------------------------------------------------------- */

static alias *alias_make(const char *name, const char *collection)
{
    alias *made = memory_alloc_zeroed(1, sizeof *made);
    char *name_copy = memory_copy_text(name, strlen(name)), *copy = memory_copy_text(collection, strlen(collection));
    if (made && name_copy && copy) {
        *made = (alias){name_copy, copy, NULL};
        return made;
    }
    memory_free(made);
    memory_free(name_copy);
    memory_free(copy);
    return NULL;
}

ww_status alias_set(server *s, const char *name, const char *collection)
{
    alias *made = alias_make(name, collection);
    if (!made)
        return memory_failed("an alias", sizeof *made);
    alias_forget(s, name);
    pthread_mutex_lock(&s->lock);
    made->next = s->aliases;
    s->aliases = made;
    pthread_mutex_unlock(&s->lock);
    return WW_OK;
}

bool alias_forget(server *s, const char *name)
{
    alias *forgotten = NULL;
    pthread_mutex_lock(&s->lock);
    for (alias **at = &s->aliases; *at; at = &(*at)->next)
        if (strcmp((*at)->name, name) == 0) {
            forgotten = *at;
            *at = forgotten->next;
            break;
        }
    pthread_mutex_unlock(&s->lock);
    if (!forgotten)
        return false;
    memory_free(forgotten->name);
    memory_free(forgotten->collection);
    memory_free(forgotten);
    return true;
}

typedef struct alias_list {
    alias *first;
    bool failed;
} alias_list;

static void load_alias(void *user, const char *rest, const char *value)
{
    alias_list *list = user;
    const char *collection = json_given(json_root(value), "collection");
    char name[ALIAS_BYTES];
    if (!collection || json_type_of(collection) != JSON_TEXT || json_end(collection) - collection > (long)sizeof name)
        return;
    name[json_text_read(collection, name)] = '\0';
    alias *made = alias_make(rest, name);
    list->failed = list->failed || !made;
    if (made) {
        made->next = list->first;
        list->first = made;
    }
}

static void aliases_free(alias *first)
{
    for (alias *next; first; first = next) {
        next = first->next;
        memory_free(first->name);
        memory_free(first->collection);
        memory_free(first);
    }
}

ww_status aliases_load(server *s)
{
    alias_list list = {NULL, false};
    ww_status status = notes_each(s, "alias:", load_alias, &list);
    if (status == WW_OK && list.failed)
        status = memory_failed("aliases", sizeof *list.first);
    if (status == WW_OK) {
        pthread_mutex_lock(&s->lock);
        alias *old = s->aliases;
        s->aliases = list.first;
        list.first = old;
        pthread_mutex_unlock(&s->lock);
    }
    aliases_free(list.first);
    return status;
}

/* Older servers wrote "index:NAME:FIELD", where both may contain a colon. The longest name that is a collection's is meant; a
 * collection's name has no slash, so "index/NAME/FIELD" is unambiguous. */
static void rename_index_note(void *user, const char *rest, const char *value)
{
    server *s = user;
    size_t longest = 0;
    out new = {0}, old = {0};
    pthread_mutex_lock(&s->lock);
    for (const entry *e = s->entries; e; e = e->next) {
        const size_t length = strlen(e->name);
        if (length > longest && strncmp(rest, e->name, length) == 0 && rest[length] == ':')
            longest = length;
    }
    pthread_mutex_unlock(&s->lock);
    out_format(&new, "index/%.*s/%s", (int)longest, rest, rest + longest + (longest > 0));
    out_format(&old, "index:%s", rest);
    if (!new.failed && !old.failed && longest > 0 && notes_put(s, new.bytes, value) == WW_OK)
        (void)notes_remove(s, old.bytes); /* otherwise the next start tries again */
    out_free(&new);
    out_free(&old);
}

static ww_status rename_index_notes(server *s)
{
    return notes_each(s, "index:", rename_index_note, s);
}

ww_status entries_load(server *s)
{
    ww_results *list = NULL;
    ww_status status = ww_store_list(s->store, &list);
    for (int64_t i = 0; status == WW_OK && i < ww_results_count(list, 0); i++) {
        entry *e =
            entry_open(s, ww_results_id(list, 0, i)); /* a damaged one is not served; requests for it fail with the reason */
        if (e)
            entry_release(s, e);
    }
    ww_results_destroy(list);
    if (status == WW_OK)
        status = aliases_load(s);
    return status == WW_OK ? rename_index_notes(s) : status;
}

void entries_free(server *s)
{
    aliases_free(s->aliases);
    s->aliases = NULL;
    while (s->entries)
        entry_forget(s, s->entries->name);
    ww_collection_destroy(s->notes);
    s->notes = NULL;
}
