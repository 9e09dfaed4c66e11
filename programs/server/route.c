/* Finding routes, and describing them. */
#include "server/route.h"

#include <string.h>

#include "base/memory.h"

static const route_table *const tables[] = {&routes_service,   &routes_collections, &routes_points,
                                            &routes_search,    &routes_openai,      &routes_page,
                                            &routes_following, &routes_cluster,     &routes_snapshots};
enum { TABLES = sizeof tables / sizeof *tables };

size_t route_count(void)
{
    size_t count = 0;
    for (size_t t = 0; t < TABLES; t++)
        count += tables[t]->count;
    return count;
}

const route *route_at(size_t number)
{
    size_t t = 0;
    for (; number >= tables[t]->count; t++)
        number -= tables[t]->count;
    return &tables[t]->routes[number];
}

size_t route_number(const route *wanted)
{
    const size_t count = route_count();
    size_t number = 0;
    while (number < count && route_at(number) != wanted)
        number++;
    return number;
}

/* ---- finding ------------------------------------------------------------------------------------------------------------- */

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

char *url_decode(const char *text, size_t length, int *status)
{
    char *copy = memory_alloc(length + 1);
    size_t bytes = 0;
    *status = copy ? 200 : 507;
    for (size_t i = 0; copy && i < length; i++) {
        const bool escape = text[i] == '%' && i + 2 < length && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0;
        copy[bytes] = escape ? (char)(16 * hex(text[i + 1]) + hex(text[i + 2])) : text[i];
        i += escape ? 2 : 0;
        if (copy[bytes++] == '\0') {
            memory_free(copy);
            *status = 400;
            return NULL;
        }
    }
    if (copy)
        copy[bytes] = '\0';
    return copy;
}

/* Does the path match? Finds the parts in braces. */
static bool fits(const char *pattern, const char *path, const char *parts[PATH_NAMES_MAX], size_t lengths[PATH_NAMES_MAX])
{
    size_t names = 0;
    while (*pattern != '\0') {
        if (*pattern == '{') {
            const size_t length = strcspn(path, "/");
            if (length == 0 || names == PATH_NAMES_MAX)
                return false;
            parts[names] = path;
            lengths[names++] = length;
            path += length;
            pattern = strchr(pattern, '}') + 1;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return *path == '\0';
}

int route_find(request *r)
{
    bool path_known = false;
    for (size_t number = 0; number < route_count(); number++) {
        const route *at = route_at(number);
        const char *parts[PATH_NAMES_MAX] = {NULL, NULL};
        size_t lengths[PATH_NAMES_MAX] = {0, 0};
        if (!fits(at->path, r->url, parts, lengths))
            continue;
        path_known = true;
        if (strcmp(at->method, r->method) != 0)
            continue;
        for (size_t i = 0; i < PATH_NAMES_MAX && parts[i]; i++) {
            int status = 200;
            r->names[i] = url_decode(parts[i], lengths[i], &status);
            if (!r->names[i])
                return status;
        }
        r->route = at;
        return 200;
    }
    return path_known ? 405 : 404;
}

const char *route_unsupported(const char *path)
{
    static const char *const PATHS[][2] = {{"/collections/{name}/shards", "shards"},
                                           {"/collections/{name}/shards/delete", "shards"}};
    for (size_t i = 0; i < sizeof PATHS / sizeof *PATHS; i++) {
        const char *parts[PATH_NAMES_MAX] = {NULL, NULL};
        size_t lengths[PATH_NAMES_MAX] = {0, 0};
        if (fits(PATHS[i][0], path, parts, lengths))
            return PATHS[i][1];
    }
    return NULL;
}

/* ---- /openapi.json ------------------------------------------------------------------------------------------------------- */

static void put_text(out *o, const char *key, const char *text)
{
    out_format(o, "\"%s\":", key);
    out_quoted(o, text, strlen(text));
}

static void put_parameters(out *o, const route *at)
{
    bool begun = false;
    for (const char *open = strchr(at->path, '{'); open; open = strchr(open + 1, '{')) {
        const size_t length = strcspn(open + 1, "}");
        out_format(o, "%s{\"name\":\"%.*s\",\"in\":\"path\",\"required\":true,\"schema\":{\"type\":\"string\"}}",
                   begun ? "," : "\"parameters\":[", (int)length, open + 1);
        begun = true;
    }
    out_text(o, begun ? "]," : "");
}

static void put_response(out *o, const char *status, const char *text)
{
    out_format(o, "\"%s\":{", status);
    put_text(o, "description", text);
    out_text(o, "}");
}

static void put_route(out *o, const route *at)
{
    const char *m = at->method;
    out_format(o, "\"%s\":{",
               strcmp(m, "GET") == 0      ? "get"
               : strcmp(m, "PUT") == 0    ? "put"
               : strcmp(m, "POST") == 0   ? "post"
               : strcmp(m, "PATCH") == 0  ? "patch"
               : strcmp(m, "DELETE") == 0 ? "delete"
                                          : "options");
    put_text(o, "summary", at->summary);
    out_text(o, ",");
    put_parameters(o, at);
    if (at->body)
        out_format(o,
                   "\"requestBody\":{\"required\":true,\"content\":{\"application/json\":{\"schema\":{\"type\":\"object\","
                   "\"properties\":{%s}}}}},",
                   at->body);
    out_text(o, "\"responses\":{");
    put_response(o, "200", at->answer);
    static const char *const OTHERS[][2] = {{"400", "The request is wrong; the message says where."},
                                            {"401", "A key is needed."},
                                            {"403", "The key or the host is not permitted."},
                                            {"404", "The collection, point or model does not exist."},
                                            {"405", "The path has no such method."},
                                            {"409", "It exists already."},
                                            {"413", "The body is too large."},
                                            {"415", "The body's Content-Type or Content-Encoding is not supported."},
                                            {"429", "Too many requests wait; retry-after says when to try again."},
                                            {"499", "The client closed the connection."},
                                            {"500", "The device or the store failed; the message says how."},
                                            {"501", "This is not supported."},
                                            {"503", "The server is loading or stopping, or the store is busy."},
                                            {"504", "The deadline has passed."},
                                            {"507", "There is no memory or no room on the disk."}};
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        out_text(o, ",");
        put_response(o, OTHERS[i][0], OTHERS[i][1]);
    }
    out_text(o, "}}");
}

/* Is this the first route with its path? */
static bool path_is_new(size_t number)
{
    for (size_t i = 0; i < number; i++)
        if (strcmp(route_at(i)->path, route_at(number)->path) == 0)
            return false;
    return true;
}

void route_describe(out *o)
{
    const size_t count = route_count();
    bool begun = false;
    out_text(o, "{\"openapi\":\"3.0.3\",\"info\":{\"title\":\"warpwave\",\"version\":\"" WW_VERSION_TEXT "\"},\"paths\":{");
    for (size_t i = 0; i < count; i++) {
        if (!path_is_new(i))
            continue;
        out_format(o, "%s\"%s\":{", begun ? "," : "", route_at(i)->path);
        begun = true;
        bool method = false;
        for (size_t k = i; k < count; k++) {
            if (strcmp(route_at(k)->path, route_at(i)->path) != 0)
                continue;
            out_text(o, method ? "," : "");
            put_route(o, route_at(k));
            method = true;
        }
        out_text(o, "}");
    }
    out_text(o, "}}");
}
