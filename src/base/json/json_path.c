/* Reading paths, and following them through JSON text. */
#include "base/json/json_path.h"

#include <string.h>

static bool is_key_byte(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' || c == '-' || (c & 0x80);
}

/* Reads "[]" or "[7]" at `at`. Returns the next byte, or NULL if it is neither. */
static const char *read_brackets(const char *at, const char *end, json_part *part)
{
    const char *close = memchr(at, ']', (size_t)(end - at));
    if (!close || close - at > 18)
        return NULL;
    *part = (json_part){.step = close == at + 1 ? JSON_EACH : JSON_INDEX};
    for (const char *digit = at + 1; digit < close; digit++) {
        if (*digit < '0' || *digit > '9')
            return NULL;
        part->index = 10 * part->index + (*digit - '0');
    }
    return close + 1;
}

/* Reads one key. Returns the next byte, or NULL if there is no key. */
static const char *read_key(const char *at, const char *end, json_part *part)
{
    const char *start = at;
    *part = (json_part){.step = JSON_KEY};
    if (at < end && *at == '"') {
        const char *close = memchr(at + 1, '"', (size_t)(end - at - 1));
        part->text = at + 1;
        part->length = close ? (size_t)(close - at - 1) : 0;
        return close ? close + 1 : NULL;
    }
    while (at < end && is_key_byte(*at))
        at++;
    part->text = start;
    part->length = (size_t)(at - start);
    return at > start ? at : NULL;
}

static bool add(json_path *path, json_part part)
{
    if (path->count == JSON_PATH_PARTS_MAX)
        return false;
    path->parts[path->count++] = part;
    return true;
}

const char *json_path_read(const char *text, size_t length, json_path *path)
{
    static const char wrong[] = "it is not the name of a field; write a.b, a[].b or a[0]";
    static const char too_many[] = "the name of a field has more than 16 parts";
    _Static_assert(JSON_PATH_PARTS_MAX == 16, "the message says so");
    const char *at = text, *const end = text + length;
    path->count = 0;
    if (memchr(text, '\0', length))
        return wrong;
    for (;;) {
        json_part part;
        at = read_key(at, end, &part);
        if (!at)
            return wrong;
        if (!add(path, part))
            return too_many;
        while (at < end && *at == '[') {
            at = read_brackets(at, end, &part);
            if (!at)
                return wrong;
            if (!add(path, part))
                return too_many;
        }
        if (at == end)
            return NULL;
        if (*at++ != '.')
            return wrong;
    }
}

static bool visit_value(const char *value, const json_visit *visit)
{
    if (!visit->flat || json_type_of(value) != JSON_LIST)
        return visit->tell(visit->user, value);
    for (const char *at = json_first(value); at; at = json_next(at))
        if (!visit->tell(visit->user, at))
            return false;
    return true;
}

bool json_path_visit(const json_part *parts, int32_t count, const char *value, const json_visit *visit)
{
    if (count == 0)
        return visit_value(value, visit);
    if (parts->step == JSON_KEY) {
        const char *member = json_type_of(value) == JSON_OBJECT ? json_find(value, parts->text, parts->length) : NULL;
        return !member || json_path_visit(parts + 1, count - 1, member, visit);
    }
    int64_t number = 0;
    for (const char *at = json_type_of(value) == JSON_LIST ? json_first(value) : NULL; at; at = json_next(at), number++)
        if ((parts->step == JSON_EACH || number == parts->index) && !json_path_visit(parts + 1, count - 1, at, visit))
            return false;
    return true;
}
