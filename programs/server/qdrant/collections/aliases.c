/* Aliases: other names of collections. */
#include "server/qdrant/collections/aliases.h"

#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/notes.h"
#include "server/state.h"
#include "server/work/changes.h"

enum { ACTIONS_MAX = 1024 };

bool prepare_aliases(request *r)
{
    const char *body = request_body(r), *actions = body ? json_given(body, "actions") : NULL;
    size_t number = 0;
    if (!body)
        return false;
    if (!actions || json_type_of(actions) != JSON_LIST)
        return request_fail(r, 400, "actions: a list is needed");
    for (const char *at = json_first(actions); at; at = json_next(at), number++)
        if (number == ACTIONS_MAX)
            return request_fail(r, 400, "actions: more than %d", ACTIONS_MAX);
        else if (json_type_of(at) != JSON_OBJECT ||
                 (!json_given(at, "create_alias") && !json_given(at, "delete_alias") && !json_given(at, "rename_alias")))
            return request_fail(r, 400, "actions[%zu]: create_alias, delete_alias or rename_alias is needed", number);
    return true;
}

typedef struct alias_search {
    const char *name;
    char collection[256]; /* empty: it was not found */
} alias_search;

static void compare_alias(void *user, const char *rest, const char *value)
{
    alias_search *search = user;
    const char *collection = json_given(json_root(value), "collection");
    if (strcmp(rest, search->name) == 0 && collection && json_end(collection) - collection <= (long)sizeof search->collection)
        search->collection[json_text_read(collection, search->collection)] = '\0';
}

/* Finds the collection of an alias; an earlier action may have changed it. False: the request failed. */
static bool find_alias(request *r, alias_search *search)
{
    const ww_status status = notes_each(r->server, "alias:", compare_alias, search);
    if (status != WW_OK)
        return request_fail_status(r, status);
    return search->collection[0] != '\0' ? true : request_fail(r, 404, "Not found: Alias %s does not exists!", search->name);
}

static bool make_alias(request *r, const char *name, const char *collection)
{
    server *s = r->server;
    out note = {0}, value = {0};
    entry *e = entry_open(s, collection), *same = entry_open(s, name);
    const bool taken = same && strcmp(same->name, name) == 0;
    if (same)
        entry_release(s, same);
    if (!e)
        return request_fail(r, 404, "Not found: Collection `%s` doesn't exist!", collection);
    if (taken) {
        entry_release(s, e);
        return request_fail(r, 409, "Wrong input: Collection `%s` already exists!", name);
    }
    out_format(&note, "alias:%s", name);
    out_text(&value, "{\"collection\":");
    out_quoted(&value, e->name, strlen(e->name));
    out_text(&value, "}");
    ww_status status =
        note.failed || value.failed ? memory_failed("an alias", note.length) : notes_put(s, note.bytes, value.bytes);
    if (status == WW_OK && !changes_are_shared())
        status = alias_set(s, name, e->name);
    out_free(&note);
    out_free(&value);
    entry_release(s, e);
    return status == WW_OK ? true : request_fail_status(r, status);
}

static bool remove_alias(request *r, const char *name)
{
    out note = {0};
    alias_search search = {.name = name};
    if (!find_alias(r, &search))
        return false;
    out_format(&note, "alias:%s", name);
    const ww_status status = note.failed ? memory_failed("an alias", note.length) : notes_remove(r->server, note.bytes);
    out_free(&note);
    if (status == WW_OK && !changes_are_shared())
        alias_forget(r->server, name);
    return status == WW_OK ? true : request_fail_status(r, status);
}

/* Renames an alias; the collection stays the same. */
static bool rename_alias(request *r, const char *old, const char *new)
{
    alias_search search = {.name = old};
    return find_alias(r, &search) && (strcmp(old, new) == 0 || (make_alias(r, new, search.collection) && remove_alias(r, old)));
}

static bool act(request *r, const char *action)
{
    static const char *const KEYS[][3] = {{"create_alias", "alias_name", "collection_name"},
                                          {"delete_alias", "alias_name", "alias_name"},
                                          {"rename_alias", "old_alias_name", "new_alias_name"}};
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        const char *value = json_given(action, KEYS[i][0]);
        if (!value)
            continue;
        char *first = request_copy_text(r, json_given(value, KEYS[i][1]), KEYS[i][1]);
        char *second = first ? request_copy_text(r, json_given(value, KEYS[i][2]), KEYS[i][2]) : NULL;
        const bool done = second && (i == 0   ? make_alias(r, first, second)
                                     : i == 1 ? remove_alias(r, first)
                                              : rename_alias(r, first, second));
        memory_free(first);
        memory_free(second);
        return done;
    }
    return true;
}

void run_aliases(request *r)
{
    const char *actions = json_given(json_root(r->body), "actions");
    for (const char *at = json_first(actions); at; at = json_next(at))
        if (!act(r, at))
            return;
    request_result_true(r);
}

void run_list_aliases(request *r)
{
    server *s = r->server;
    bool begun = false;
    request_result_begin(r);
    out_text(&r->answer, "{\"aliases\":[");
    pthread_mutex_lock(&s->lock);
    for (const alias *a = s->aliases; a; a = a->next) {
        if (r->names[0] && strcmp(a->collection, r->names[0]) != 0)
            continue;
        if (!access_sees(r, a->collection, false))
            continue;
        out_text(&r->answer, begun ? ",{\"alias_name\":" : "{\"alias_name\":");
        out_quoted(&r->answer, a->name, strlen(a->name));
        out_text(&r->answer, ",\"collection_name\":");
        out_quoted(&r->answer, a->collection, strlen(a->collection));
        out_text(&r->answer, "}");
        begun = true;
    }
    pthread_mutex_unlock(&s->lock);
    out_text(&r->answer, "]}");
    request_result_end(r);
}
