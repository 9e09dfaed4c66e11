/* Access control: other sites, the Host header, keys, and what a limited key may do. */
#include "server/access.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "server/route.h"
#include "server/state.h"

/* ---- keys ---------------------------------------------------------------------------------------------------------------- */

static void list_free(key_list *list)
{
    memory_free(list->keys);
    memory_free(list->names);
    *list = (key_list){0};
}

/* Adds the key of a line, and the name that may follow it. */
static ww_status add_key(key_list *list, const char *path, char *line, int number)
{
    const size_t length = strcspn(line, " \t");
    const char *name = line + length + strspn(line + length, " \t");
    if (length == 0)
        return WW_OK;
    if (length >= KEY_BYTES_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "%s: a key has %d bytes at most", path, KEY_BYTES_MAX - 1);
    if (list->count == KEYS_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "%s: more than %d keys", path, KEYS_MAX);
    if (*name != '\0')
        snprintf(list->names[list->count], KEY_NAME_BYTES, "%.*s", KEY_NAME_BYTES - 1, name);
    else
        snprintf(list->names[list->count], KEY_NAME_BYTES, "line %d", number);
    memcpy(list->keys[list->count++], line, length);
    return WW_OK;
}

/* Reads one key per line; skips empty lines. */
static ww_status keys_read(const char *path, key_list *list)
{
    char line[2 * KEY_BYTES_MAX];
    int number = 0;
    ww_status status = WW_OK;
    FILE *file = fopen(path, "re");
    if (!file)
        return ww_fail_errno(WW_IO_ERROR, errno, "%s", path);
    *list = (key_list){memory_alloc_zeroed(KEYS_MAX, KEY_BYTES_MAX), memory_alloc_zeroed(KEYS_MAX, KEY_NAME_BYTES), 0};
    if (!list->keys || !list->names)
        status = memory_failed("keys", (size_t)KEYS_MAX * KEY_BYTES_MAX);
    while (status == WW_OK && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\r\n")] = '\0';
        status = add_key(list, path, line, ++number);
    }
    fclose(file);
    if (status == WW_OK && list->count == 0)
        status = ww_fail(WW_INVALID_ARGUMENT, "%s: the file has no key", path);
    if (status != WW_OK)
        list_free(list);
    return status;
}

/* Always compares every byte of every key, so that the time says nothing about them. `name` gets the name of the one that is
 * equal. */
static bool keys_have(const key_list *list, const char key[KEY_BYTES_MAX], char name[KEY_NAME_BYTES])
{
    unsigned found = 0;
    for (size_t i = 0; i < list->count; i++) {
        unsigned different = 0;
        for (size_t byte = 0; byte < KEY_BYTES_MAX; byte++)
            different |= (unsigned char)(list->keys[i][byte] ^ key[byte]);
        found |= different == 0;
        if (different == 0)
            memcpy(name, list->names[i], KEY_NAME_BYTES);
    }
    return found != 0;
}

/* Which file this is, and when it was written. */
static bool stamp_of(const char *path, file_stamp *stamp)
{
    struct stat file;
    if (stat(path, &file) != 0)
        return false;
    *stamp = (file_stamp){file.st_ino, file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec};
    return true;
}

/* Reads the file of limited keys again if it is another one than a second ago: a key that is revoked ends at once. A file that
 * cannot be read leaves the keys as they are. */
static void look_for_changes(access_rules *rules, double now)
{
    file_stamp stamp;
    key_table read = {0};
    pthread_rwlock_wrlock(&rules->lock);
    const bool late = rules->config->limited_key_file && now >= rules->look_seconds;
    rules->look_seconds = late ? now + 1 : rules->look_seconds;
    const file_stamp before = rules->stamp;
    pthread_rwlock_unlock(&rules->lock);
    if (!late || !stamp_of(rules->config->limited_key_file, &stamp) || memcmp(&stamp, &before, sizeof stamp) == 0 ||
        key_table_read(rules->config->limited_key_file, &read) != WW_OK)
        return;
    pthread_rwlock_wrlock(&rules->lock);
    key_table old = rules->limited;
    rules->limited = read;
    rules->stamp = stamp;
    pthread_rwlock_unlock(&rules->lock);
    key_table_free(&old);
}

ww_status access_reload(access_rules *rules)
{
    const server_config *config = rules->config;
    key_list keys = {0}, read_only = {0}, nodes = {0};
    key_table limited = {0};
    file_stamp stamp = {0};
    ww_status status = config->key_file ? keys_read(config->key_file, &keys) : WW_OK;
    if (status == WW_OK && config->read_only_key_file)
        status = keys_read(config->read_only_key_file, &read_only);
    if (status == WW_OK && config->follow.node_key_file)
        status = keys_read(config->follow.node_key_file, &nodes);
    if (config->limited_key_file)
        (void)stamp_of(config->limited_key_file, &stamp);
    if (status == WW_OK && config->limited_key_file)
        status = key_table_read(config->limited_key_file, &limited);
    if (status != WW_OK) {
        list_free(&keys);
        list_free(&read_only);
        list_free(&nodes);
        return status;
    }
    pthread_rwlock_wrlock(&rules->lock);
    key_table old_limited = rules->limited;
    rules->limited = limited;
    rules->stamp = stamp;
    key_list old[3] = {rules->keys, rules->read_only, rules->nodes};
    rules->keys = keys;
    rules->read_only = read_only;
    rules->nodes = nodes;
    pthread_rwlock_unlock(&rules->lock);
    for (size_t i = 0; i < sizeof old / sizeof *old; i++)
        list_free(&old[i]);
    key_table_free(&old_limited);
    return WW_OK;
}

/* Can other machines reach the address? */
static bool is_public(const char *address)
{
    return strcmp(address, "::1") != 0 && strncmp(address, "127.", 4) != 0 && strcmp(address, "localhost") != 0;
}

ww_status access_open(access_rules *rules, const server_config *config)
{
    *rules = (access_rules){.config = config};
    pthread_rwlock_init(&rules->lock, NULL);
    if (is_public(config->address) && !config->key_file && !config->limited_key_file && !config->no_auth)
        return ww_fail(
            WW_INVALID_ARGUMENT,
            "other machines can reach the address %s, and there is no key: give --api-key-file or --keys, or --no-auth if "
            "everybody may read and write",
            config->address);
    return access_reload(rules);
}

void access_close(access_rules *rules)
{
    list_free(&rules->keys);
    list_free(&rules->read_only);
    list_free(&rules->nodes);
    key_table_free(&rules->limited);
    pthread_rwlock_destroy(&rules->lock);
    *rules = (access_rules){0};
}

/* The value of Authorization: Bearer; NULL: there is none. */
static const char *bearer_of(request *r)
{
    const char *bearer = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "authorization");
    return bearer && strncasecmp(bearer, "Bearer ", 7) == 0 ? bearer + 7 : NULL;
}

/* The key of the request; "": none. */
static const char *given_key(request *r)
{
    const char *given = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "api-key");
    given = given ? given : bearer_of(r);
    return given ? given : "";
}

static bool keys_are_needed(access_rules *rules)
{
    pthread_rwlock_rdlock(&rules->lock);
    const bool needed = rules->keys.count + rules->read_only.count > 0 || rules->config->limited_key_file;
    pthread_rwlock_unlock(&rules->lock);
    return needed;
}

/* Finds a limited key, or reads a token. False: it is none, and the calling thread's message says why a token is not. */
static bool find_limited(access_rules *rules, request *r, const char *given)
{
    pthread_rwlock_rdlock(&rules->lock);
    r->key = key_table_find(&rules->limited, given);
    if (!r->key && token_has_form(given))
        (void)token_read(given, (const char(*)[KEY_BYTES_MAX])rules->keys.keys, rules->keys.count, &r->key);
    pthread_rwlock_unlock(&rules->lock);
    if (r->key)
        snprintf(r->key_name, sizeof r->key_name, "%s", r->key->name);
    return r->key != NULL;
}

static bool admit_limited(request *r);

/* A node that asks for a part sends the key of its client after its own, if that one is limited. */
static bool check_key(access_rules *rules, request *r)
{
    char key[KEY_BYTES_MAX] = "";
    const char *given = given_key(r);
    const bool fits = given[0] != '\0' && strlen(given) < sizeof key, needed = keys_are_needed(rules);
    if (fits)
        memcpy(key, given, strlen(given));
    look_for_changes(rules, server_seconds());
    pthread_rwlock_rdlock(&rules->lock);
    const bool writes = fits && keys_have(&rules->keys, key, r->key_name);
    const bool reads = fits && keys_have(&rules->read_only, key, r->key_name);
    r->from_node = fits && keys_have(&rules->nodes, key, r->key_name);
    const bool key_writes = rules->keys.count > 0; /* with only read-only keys nobody can write */
    pthread_rwlock_unlock(&rules->lock);
    if (r->from_node && bearer_of(r))
        given = bearer_of(r);
    else if (!needed || r->route->right == RIGHT_NONE || writes || ((reads || r->from_node) && !route_writes(r->route)))
        return true;
    else if (reads)
        return request_fail(r, 403, "this key may only read%s", key_writes ? "" : "; the server has no other");
    if (find_limited(rules, r, given))
        return admit_limited(r);
    return token_has_form(given) ? request_fail(r, 401, "%s", ww_error_message())
                                 : request_fail(r, 401, "a key is needed, in the header api-key or as Authorization: Bearer");
}

/* ---- limited keys -------------------------------------------------------------------------------------------------------- */

/* Takes the request from the key's quotas. A part of a request that a node sends on was taken there. */
static bool has_quota(request *r)
{
    const char *used_up = "";
    if (r->from_node)
        return true;
    pthread_mutex_lock(&r->server->lock);
    const double seconds = key_admit(r->key, server_seconds(), &used_up);
    pthread_mutex_unlock(&r->server->lock);
    r->retry_seconds = (int)fmin(ceil(seconds), 86400);
    return seconds == 0 ? true : request_fail(r, 429, "%s of the key '%s' is used up", used_up, r->key->name);
}

void access_charge(request *r)
{
    if (!r->key || r->from_node)
        return;
    pthread_mutex_lock(&r->server->lock);
    key_charge(r->key, r->answer_points + r->asked[STRICT_POINTS], (int64_t)(r->body_length + r->sent_bytes));
    pthread_mutex_unlock(&r->server->lock);
}

/* Finds what the key may do with the collection of the path, and checks that it is enough for the route. */
static bool find_grant(request *r)
{
    const route *at = r->route;
    entry *e = entry_find(r->server, r->names[0]); /* the name may be an alias */
    r->grant = key_grant_for(r->key, e ? e->name : r->names[0]);
    if (e)
        entry_release(r->server, e);
    if (!r->grant)
        return request_fail(r, 403, "the key '%s' is not for the collection '%s'", r->key->name, r->names[0]);
    if (at->right == RIGHT_COPY || at->right == RIGHT_WRITE)
        return request_fail(r, 403, "the key '%s' is limited to collections; this needs a key for the whole server",
                            r->key->name);
    if (route_writes(at) && !r->grant->writes)
        return request_fail(r, 403, "the key '%s' may only read this collection", r->key->name);
    return !r->grant->seen || at->right == RIGHT_POINTS || at->right == RIGHT_CHANGE_POINTS
               ? true
               : request_fail(r, 403, "the key '%s' sees only some of the points; this needs a key that sees all",
                              r->key->name);
}

static bool admit_limited(request *r)
{
    const route *at = r->route;
    const access_key *key = r->key;
    if (!key_is_current(key))
        return request_fail(r, 401, "the key '%s' has expired or is not valid yet", key->name);
    if (at->right == RIGHT_NONE)
        return true;
    if (key->whole && route_writes(at) && !key->writes)
        return request_fail(r, 403, "the key '%s' may only read", key->name);
    if (!key->whole && at->right != RIGHT_MODEL && at->right != RIGHT_LIST) {
        if (!strstr(at->path, "/collections/{"))
            return request_fail(r, 403, "the key '%s' is limited to collections; this needs a key for the whole server",
                                key->name);
        if (!find_grant(r))
            return false;
    }
    return has_quota(r);
}

bool access_entry(request *r)
{
    return !r->grant || strcmp(r->grant->collection, r->entry->name) == 0
               ? true
               : request_fail(r, 403, "the key '%s' is not for the collection '%s'", r->key->name, r->entry->name);
}

bool access_sees(const request *r, const char *collection, bool all_points)
{
    const key_grant *g = r->key ? key_grant_for(r->key, collection) : NULL;
    return !r->key || r->key->whole || (g && (!g->seen || !all_points));
}

bool access_lookup(request *r, const char *name)
{
    entry *e = entry_find(r->server, name);
    const key_grant *g = r->grant ? key_grant_for(r->key, e ? e->name : name) : NULL;
    if (e)
        entry_release(r->server, e);
    return !r->grant || (g && !g->seen)
               ? true
               : request_fail(r, 403, "the key '%s' does not see all points of the collection '%s'", r->key->name, name);
}

/* ---- the Host header ----------------------------------------------------------------------------------------------------- */

/* Writes the host without its port, and an IPv6 address without brackets. */
static bool host_name(const char *header, char *name, size_t capacity)
{
    const bool brackets = header[0] == '[';
    const char *end = brackets ? strchr(header, ']') : header + strcspn(header, ":");
    if (!end)
        return false;
    const size_t length = (size_t)(end - header) - (brackets ? 1 : 0);
    const char *port = brackets ? end + 1 : end;
    if (length == 0 || length >= capacity ||
        (*port != '\0' && (*port != ':' || strspn(port + 1, "0123456789") != strlen(port + 1))))
        return false;
    memcpy(name, header + (brackets ? 1 : 0), length);
    name[length] = '\0';
    return true;
}

/* A web page from elsewhere can reach this server by a name of its own (DNS rebinding), but not by an address. So addresses,
 * the machine's name and the configured names are allowed. Such a page knows no key, and what needs none does not depend on
 * data: then any name is allowed, and none at all. */
static bool check_host(access_rules *rules, request *r)
{
    char name[256], own[256] = "", host[256];
    struct in6_addr address;
    const char *header = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "host");
    if (r->route->right == RIGHT_NONE || keys_are_needed(rules))
        return true;
    if (!header || !host_name(header, name, sizeof name))
        return request_fail(r, 400, "the header Host is missing or wrong");
    (void)gethostname(own, sizeof own - 1);
    const char *advertised = rules->config->follow.advertise ? strstr(rules->config->follow.advertise, "://") : NULL;
    if (advertised && host_name(advertised + 3, host, sizeof host) && strcasecmp(name, host) == 0)
        return true;
    if (strcasecmp(name, "localhost") == 0 || strcasecmp(name, own) == 0 || inet_pton(AF_INET, name, &address) == 1 ||
        inet_pton(AF_INET6, name, &address) == 1)
        return true;
    for (size_t i = 0; i < rules->config->host_count; i++)
        if (strcasecmp(name, rules->config->hosts[i]) == 0)
            return true;
    return request_fail(r, 403, "the host '%s' is not served here; --host NAME permits it", name);
}

/* ---- other sites --------------------------------------------------------------------------------------------------------- */

/* Is the origin, "http://localhost:6333", this server by the name in Host? */
static bool origin_is_own(request *r, const char *origin)
{
    const char *host = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "host"), *name = strstr(origin, "://");
    return host && name && strcasecmp(name + 3, host) == 0;
}

/* A browser sends requests of any page to any address, also to this machine, and says whose they are: in Sec-Fetch-Site, and an
 * older one in Origin. Only pages of this server and of permitted origins may change or read data. */
static bool check_site(const access_rules *rules, request *r)
{
    const char *origin = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "origin");
    const char *site = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "sec-fetch-site");
    if (r->route->right == RIGHT_NONE || access_origin(rules, r))
        return true;
    const bool own =
        site ? strcasecmp(site, "same-origin") == 0 || strcasecmp(site, "none") == 0 : !origin || origin_is_own(r, origin);
    return own ? true : request_fail(r, 403, "a page of another site sent this request; --cors ORIGIN permits it");
}

bool access_check(access_rules *rules, struct request *r)
{
    return check_site(rules, r) && check_host(rules, r) && check_key(rules, r);
}

const char *access_origin(const access_rules *rules, struct request *r)
{
    const char *origin = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "origin");
    for (size_t i = 0; origin && i < rules->config->origin_count; i++)
        if (strcmp(rules->config->origins[i], origin) == 0 || strcmp(rules->config->origins[i], "*") == 0)
            return rules->config->origins[i];
    return NULL;
}
