/* Reading keys, and what is left of their quotas. */
#include "server/keys/keys.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json/json.h"
#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/out.h"
#include "server/qdrant/filter.h"

static const char *const USES[KEY_USES] = {
    [USE_REQUESTS] = "requests_per_second", [USE_ROWS] = "rows_per_second", [USE_BYTES] = "bytes_per_second"};

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

static bool is_one(const char *key, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (json_text_is(key, names[i], strlen(names[i])))
            return true;
    return false;
}

/* A member that is not understood could be a limit, so it is refused; and so is one that is given twice. */
static ww_status check_members(const char *object, const char *what, const char *const *names, size_t count)
{
    if (json_type_of(object) != JSON_OBJECT)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: an object is needed", what);
    for (const char *key = json_first(object); key; key = json_next(key)) {
        const size_t length = (size_t)(json_end(key) - key);
        if (!is_one(key, names, count))
            return ww_fail(WW_INVALID_ARGUMENT, "%s: %.*s is not supported", what, (int)length, key);
        for (const char *other = json_next(key); other; other = json_next(other))
            if ((size_t)(json_end(other) - other) == length && memcmp(key, other, length) == 0)
                return ww_fail(WW_INVALID_ARGUMENT, "%s: %.*s is given twice", what, (int)length, key);
    }
    return WW_OK;
}

static bool is_text(const char *value, const char *text)
{
    return value && json_type_of(value) == JSON_TEXT && json_text_is(value, text, strlen(text));
}

/* Writes {"must": [...]} for {"tenant": "a"}: each key has the value, and for `alone` no other beside it. */
static ww_status put_conditions(out *o, const char *payload, bool alone)
{
    out_text(o, "{\"must\":[");
    for (const char *key = json_first(payload); key; key = json_next(key)) {
        const char *value = json_member(key);
        const json_type type = json_type_of(value);
        const int length = (int)(json_end(key) - key);
        if (type != JSON_TEXT && type != JSON_TRUE && type != JSON_FALSE &&
            !(type == JSON_NUMBER && json_number_of(value).is_integer))
            return ww_fail(WW_INVALID_ARGUMENT, "access.payload: the value of %.*s must be a text, an integer or a boolean",
                           length, key);
        if (memchr(key, '[', (size_t)length))
            return ww_fail(WW_INVALID_ARGUMENT, "access.payload: %.*s: a key without [] is needed", length, key);
        out_format(o, "%s{\"key\":%.*s,\"match\":{\"value\":%.*s}}", key == json_first(payload) ? "" : ",", length, key,
                   (int)(json_end(value) - value), value);
        if (alone)
            out_format(o, ",{\"key\":%.*s,\"values_count\":{\"lte\":1}}", length, key);
    }
    out_text(o, "]}");
    return o->failed ? memory_failed("a key", o->length) : WW_OK;
}

static ww_status read_filter(const char *payload, bool alone, ww_filter **filter)
{
    out json = {0};
    filter_facts facts;
    ww_status status = put_conditions(&json, payload, alone);
    if (status == WW_OK)
        status = ww_filter_create(filter);
    if (status == WW_OK)
        status = filter_read_qdrant(*filter, json_root(json.bytes), NULL, &facts);
    out_free(&json);
    return status;
}

static ww_status read_grant(const char *object, key_grant *g)
{
    static const char *const NAMES[] = {"collection", "access", "payload"};
    ww_status status = check_members(object, "access", NAMES, sizeof NAMES / sizeof *NAMES);
    if (status != WW_OK)
        return status;
    const char *name = json_find(object, "collection", 10), *access = json_find(object, "access", 6);
    const char *payload = json_find(object, "payload", 7);
    g->writes = is_text(access, "rw");
    if (!name || json_type_of(name) != JSON_TEXT || (!g->writes && !is_text(access, "r")))
        return ww_fail(WW_INVALID_ARGUMENT, "access: the name of a \"collection\" and the \"access\" r or rw are needed");
    g->collection = memory_alloc((size_t)(json_end(name) - name));
    if (!g->collection)
        return memory_failed("a key", (size_t)(json_end(name) - name));
    g->collection[json_text_read(name, g->collection)] = '\0';
    if (!payload || json_type_of(payload) == JSON_NULL)
        return WW_OK;
    if (json_type_of(payload) != JSON_OBJECT || !json_first(payload))
        return ww_fail(WW_INVALID_ARGUMENT, "access.payload: an object with a key and its value is needed");
    status = read_filter(payload, false, &g->seen);
    return status == WW_OK ? read_filter(payload, true, &g->written) : status;
}

static ww_status read_access(const char *value, access_key *key)
{
    key->writes = is_text(value, "m");
    key->whole = key->writes || is_text(value, "r");
    if (key->whole)
        return WW_OK;
    if (!value || json_type_of(value) != JSON_LIST)
        return ww_fail(WW_INVALID_ARGUMENT, "access: r, m or a list of collections is needed");
    size_t count = 0;
    for (const char *at = json_first(value); at; at = json_next(at))
        count++;
    if (count > GRANTS_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "access: %zu collections; the maximum is %d", count, GRANTS_MAX);
    key->grants = memory_alloc_zeroed(count + 1, sizeof *key->grants);
    if (!key->grants)
        return memory_failed("a key", count * sizeof *key->grants);
    ww_status status = WW_OK;
    for (const char *at = json_first(value); status == WW_OK && at; at = json_next(at)) {
        key_grant *g = &key->grants[key->grant_count];
        status = read_grant(at, g);
        const bool twice = status == WW_OK && key_grant_for(key, g->collection);
        key->grant_count++;
        if (twice)
            status = ww_fail(WW_INVALID_ARGUMENT, "access: the collection '%s' is given twice", g->collection);
    }
    return status;
}

/* Reads seconds since 1970. */
static ww_status read_time(const char *claims, const char *name, int64_t *seconds)
{
    const char *value = json_find(claims, name, strlen(name));
    const json_number number = value && json_type_of(value) == JSON_NUMBER ? json_number_of(value) : (json_number){0};
    *seconds = number.is_integer ? number.integer : 0;
    return !value || *seconds > 0 ? WW_OK : ww_fail(WW_INVALID_ARGUMENT, "%s: whole seconds since 1970 are needed", name);
}

static ww_status read_uses(const char *claims, access_key *key)
{
    for (size_t i = 0; i < KEY_USES; i++) {
        const char *value = json_find(claims, USES[i], strlen(USES[i]));
        const json_number number = value && json_type_of(value) == JSON_NUMBER ? json_number_of(value) : (json_number){0};
        key->per_second[i] = number.is_integer ? (double)number.integer : number.real;
        if (value && !(key->per_second[i] > 0 && key->per_second[i] < 1e15))
            return ww_fail(WW_INVALID_ARGUMENT, "%s: a number above 0 is needed", USES[i]);
        key->rest[i] = fmax(key->per_second[i], 1);
    }
    return WW_OK;
}

static ww_status read_digest(const char *value, access_key *key)
{
    char text[SHA256_TEXT];
    const bool fits = value && json_type_of(value) == JSON_TEXT && json_end(value) - value == SHA256_TEXT + 1;
    const size_t length = fits ? json_text_read(value, text) : 0;
    for (size_t i = 0; length == SHA256_TEXT - 1 && i < SHA256_BYTES; i++) {
        const char pair[3] = {text[2 * i], text[2 * i + 1], '\0'};
        key->digest[i] = (unsigned char)strtoul(pair, NULL, 16);
        if (strspn(pair, "0123456789abcdef") != 2)
            return ww_fail(WW_INVALID_ARGUMENT, "sha256: 64 hexadecimal digits are needed");
    }
    return length == SHA256_TEXT - 1 ? WW_OK : ww_fail(WW_INVALID_ARGUMENT, "sha256: 64 hexadecimal digits are needed");
}

static void read_name(const char *value, access_key *key)
{
    char *text = value && json_type_of(value) == JSON_TEXT ? memory_alloc((size_t)(json_end(value) - value)) : NULL;
    if (text)
        text[json_text_read(value, text)] = '\0';
    snprintf(key->name, sizeof key->name, "%s", text ? text : "token");
    memory_free(text);
}

static ww_status read_claims(const char *claims, const char *name_claim, access_key *key)
{
    static const char *const NAMES[] = {"access", "exp", "nbf", "sub", "iat", "iss", "jti"};
    static const char *const OWN[] = {"access",          "exp", "name", "sha256", "requests_per_second", "rows_per_second",
                                      "bytes_per_second"};
    const bool own = strcmp(name_claim, "name") == 0;
    ww_status status = check_members(claims, "the claims of a key", own ? OWN : NAMES,
                                     own ? sizeof OWN / sizeof *OWN : sizeof NAMES / sizeof *NAMES);
    if (status != WW_OK)
        return status;
    read_name(json_find(claims, name_claim, strlen(name_claim)), key);
    status = read_access(json_find(claims, "access", 6), key);
    if (status == WW_OK)
        status = read_time(claims, "nbf", &key->begins);
    if (status == WW_OK)
        status = read_time(claims, "exp", &key->ends);
    if (status == WW_OK)
        status = read_uses(claims, key);
    return status == WW_OK && own ? read_digest(json_find(claims, "sha256", 6), key) : status;
}

ww_status key_read(const char *claims, size_t bytes, const char *name_claim, access_key **key)
{
    json_fault fault;
    if (!json_check(claims, bytes, &fault))
        return ww_fail(WW_INVALID_ARGUMENT, "the claims of a key are not JSON: %s", fault.what);
    access_key *made = memory_alloc_zeroed(1, sizeof *made);
    if (!made)
        return memory_failed("a key", sizeof *made);
    atomic_init(&made->references, 1);
    const ww_status status = read_claims(json_root(claims), name_claim, made);
    if (status == WW_OK)
        *key = made;
    else
        key_release(made);
    return status;
}

access_key *key_retain(access_key *key)
{
    atomic_fetch_add(&key->references, 1);
    return key;
}

void key_release(access_key *key)
{
    if (!key || atomic_fetch_sub(&key->references, 1) > 1)
        return;
    for (size_t i = 0; i < key->grant_count; i++) {
        memory_free(key->grants[i].collection);
        ww_filter_destroy(key->grants[i].seen);
        ww_filter_destroy(key->grants[i].written);
    }
    memory_free(key->grants);
    memory_free(key);
}

/* ---- asking -------------------------------------------------------------------------------------------------------------- */

const key_grant *key_grant_for(const access_key *key, const char *collection)
{
    for (size_t i = 0; i < key->grant_count; i++)
        if (strcmp(key->grants[i].collection, collection) == 0)
            return &key->grants[i];
    return NULL;
}

bool key_is_current(const access_key *key)
{
    const int64_t now = (int64_t)time(NULL);
    return now >= key->begins && (key->ends == 0 || now < key->ends);
}

/* What is not used in a second is lost, and what was used beyond it must be earned first. */
double key_admit(access_key *key, double now, const char **used_up)
{
    double wait = 0;
    for (size_t i = 0; i < KEY_USES; i++) {
        const double earned = key->per_second[i], needed = i == USE_REQUESTS ? 1 : 0;
        if (earned == 0)
            continue;
        key->rest[i] = fmin(key->rest[i] + (now - key->seconds) * earned, fmax(earned, 1));
        const double seconds = (needed - key->rest[i]) / earned;
        if (seconds > wait) {
            wait = seconds;
            *used_up = USES[i];
        }
    }
    key->seconds = now;
    if (wait == 0)
        key->rest[USE_REQUESTS] -= 1;
    return wait;
}

void key_charge(access_key *key, int64_t rows, int64_t bytes)
{
    key->rest[USE_ROWS] -= (double)rows;
    key->rest[USE_BYTES] -= (double)bytes;
}

/* ---- the file ------------------------------------------------------------------------------------------------------------ */

void key_table_free(key_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        key_release(table->keys[i]);
    memory_free(table->keys);
    *table = (key_table){0};
}

static ww_status read_line(key_table *table, const char *line, size_t bytes)
{
    if (strspn(line, " \t\r\n") == bytes)
        return WW_OK;
    if (table->count == LIMITED_KEYS_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "more than %d keys", LIMITED_KEYS_MAX);
    access_key **key = &table->keys[table->count];
    const ww_status status = key_read(line, bytes, "name", key);
    table->count += status == WW_OK;
    return status;
}

ww_status key_table_read(const char *path, key_table *table)
{
    enum { LINE_BYTES = 1 << 16 };
    size_t number = 0;
    ww_status status = WW_OK;
    FILE *file = fopen(path, "re");
    if (!file)
        return ww_fail_errno(WW_IO_ERROR, errno, "%s", path);
    char *line = memory_alloc(LINE_BYTES);
    *table = (key_table){.keys = memory_alloc_zeroed(LIMITED_KEYS_MAX, sizeof *table->keys)};
    if (!table->keys || !line)
        status = memory_failed("keys", LIMITED_KEYS_MAX * sizeof *table->keys);
    for (; status == WW_OK && fgets(line, LINE_BYTES, file); number++)
        status = strlen(line) == LINE_BYTES - 1 ? ww_fail(WW_OUT_OF_RANGE, "longer than %d bytes", LINE_BYTES - 2)
                                                : read_line(table, line, strlen(line));
    if (status == WW_OK && ferror(file))
        status = ww_fail(WW_IO_ERROR, "it cannot be read");
    if (status != WW_OK) {
        char why[512];
        snprintf(why, sizeof why, "%s", ww_error_message());
        status = ww_fail(status, "%s: line %zu: %s", path, number > 0 ? number : 1, why);
        key_table_free(table);
    }
    memory_free(line);
    fclose(file);
    return status;
}

void key_digest(const char *key, unsigned char digest[SHA256_BYTES])
{
    sha256 s;
    sha256_begin(&s);
    sha256_add(&s, key, strlen(key));
    sha256_digest(&s, digest);
}

access_key *key_table_find(const key_table *table, const char *key)
{
    unsigned char digest[SHA256_BYTES];
    access_key *found = NULL;
    key_digest(key, digest);
    for (size_t i = 0; i < table->count; i++) {
        unsigned different = 0;
        for (size_t k = 0; k < SHA256_BYTES; k++)
            different |= (unsigned)(table->keys[i]->digest[k] ^ digest[k]);
        found = different == 0 ? table->keys[i] : found;
    }
    return found ? key_retain(found) : NULL;
}
