/* Limits of a collection. What a request asks for is counted while it is read; the sizes of the collection are checked when it
 * runs. */
#include "server/qdrant/collections/strict.h"

#include <string.h>

#include "base/json/json_value.h"
#include "server/qdrant/select.h"
#include "server/route.h"

typedef enum limit_kind {
    LIMIT_COUNT,
    LIMIT_NUMBER, /* kept as millionths */
    LIMIT_ALLOW   /* false forbids what true permits */
} limit_kind;

static const struct {
    const char *name;
    limit_kind kind;
} limits[STRICT_LIMITS] = {
    [STRICT_QUERY_LIMIT] = {"max_query_limit", LIMIT_COUNT},
    [STRICT_SEARCHES] = {"search_max_batchsize", LIMIT_COUNT},
    [STRICT_POINTS] = {"upsert_max_batchsize", LIMIT_COUNT},
    [STRICT_TIMEOUT] = {"max_timeout", LIMIT_COUNT},
    [STRICT_CONDITIONS] = {"filter_max_conditions", LIMIT_COUNT},
    [STRICT_CONDITION] = {"condition_max_size", LIMIT_COUNT},
    [STRICT_HNSW_EF] = {"search_max_hnsw_ef", LIMIT_COUNT},
    [STRICT_OVERSAMPLING] = {"search_max_oversampling", LIMIT_NUMBER},
    [STRICT_EXACT] = {"search_allow_exact", LIMIT_ALLOW},
    [STRICT_READS] = {"read_rate_limit", LIMIT_COUNT},
    [STRICT_WRITES] = {"write_rate_limit", LIMIT_COUNT},
    [STRICT_SIZE] = {"max_points_count", LIMIT_COUNT},
    [STRICT_BYTES] = {"max_collection_vector_size_bytes", LIMIT_COUNT},
    [STRICT_INDEXES] = {"max_payload_index_count", LIMIT_COUNT},
};

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

/* Is this a member that limits nothing here: what it permits is always permitted, or does not exist? */
static bool limits_nothing(const char *key)
{
    static const char *const permitted[] = {"unindexed_filtering_retrieve", "unindexed_filtering_update"};
    static const char *const absent[] = {"multivector_config", "sparse_config"};
    const json_type type = json_type_of(json_member(key));
    bool found = json_text_is(key, "enabled", 7) || type == JSON_NULL;
    for (size_t i = 0; i < sizeof permitted / sizeof *permitted; i++)
        found = found || (type == JSON_TRUE && json_text_is(key, permitted[i], strlen(permitted[i])));
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        found = found || json_text_is(key, absent[i], strlen(absent[i]));
    return found;
}

static bool check_limit(request *r, const char *strict, strict_limit which)
{
    int64_t count = 0;
    double number = 0;
    bool allow = false;
    switch (limits[which].kind) {
    case LIMIT_COUNT:
        return request_read_integer(r, strict, limits[which].name, 0, &count);
    case LIMIT_NUMBER:
        return request_read_number(r, strict, limits[which].name, &number);
    default:
        return request_read_bool(r, strict, limits[which].name, &allow);
    }
}

bool strict_check(request *r, const char *strict)
{
    bool enabled = false;
    for (const char *key = strict ? json_first(strict) : NULL; key; key = json_next(key)) {
        bool known = limits_nothing(key);
        for (size_t i = 0; i < STRICT_LIMITS; i++)
            known = known || json_text_is(key, limits[i].name, strlen(limits[i].name));
        if (!known)
            return request_fail(r, 501, "strict_mode_config: %.*s is not supported", (int)(json_end(key) - key), key);
    }
    for (int i = 0; strict && i < STRICT_LIMITS; i++)
        if (!check_limit(r, strict, (strict_limit)i))
            return false;
    return !strict || request_read_bool(r, strict, "enabled", &enabled);
}

/* -1: there is no limit. */
static int64_t limit_of(const char *value, limit_kind kind)
{
    if (!value)
        return -1;
    if (kind == LIMIT_ALLOW)
        return json_type_of(value) == JSON_FALSE ? 0 : -1;
    if (json_type_of(value) != JSON_NUMBER)
        return -1;
    const json_number number = json_number_of(value);
    if (kind == LIMIT_COUNT)
        return number.is_integer ? number.integer : -1;
    const double real = number.is_integer ? (double)number.integer : number.real;
    return real >= 0 && real < 1e12 ? (int64_t)(real * 1e6) : -1;
}

void strict_load(entry *e, const char *strict)
{
    const char *enabled = strict ? json_given(strict, "enabled") : NULL;
    const bool on = enabled && json_type_of(enabled) == JSON_TRUE;
    for (size_t i = 0; i < STRICT_LIMITS; i++)
        atomic_store(&e->strict[i], on ? limit_of(json_given(strict, limits[i].name), limits[i].kind) : -1);
}

/* ---- obeying ------------------------------------------------------------------------------------------------------------- */

void strict_ask(request *r, strict_limit what, int64_t count)
{
    if (count > r->asked[what])
        r->asked[what] = count;
}

/* Takes from what a minute permits, which is refilled all the time. Returns the seconds to wait; 0: it is permitted. */
static double take(entry *e, bool write, double permitted, double count)
{
    server *s = e->queue.server;
    const double now = server_seconds();
    pthread_mutex_lock(&s->lock);
    rate *left = &e->rates[write];
    if (left->per_minute != permitted)
        *left = (rate){permitted, permitted, now};
    left->rest += (now - left->seconds) * permitted / 60;
    left->rest = left->rest < permitted ? left->rest : permitted;
    left->seconds = now;
    const double missing = count - left->rest;
    if (missing <= 0)
        left->rest -= count;
    pthread_mutex_unlock(&s->lock);
    return missing <= 0 ? 0 : permitted > 0 ? missing * 60 / permitted : 60;
}

static bool obeys_rate(request *r)
{
    const bool write = route_changes(r->route);
    const long long limit = atomic_load(&r->entry->strict[write ? STRICT_WRITES : STRICT_READS]);
    const int64_t asked = r->asked[write ? STRICT_WRITES : STRICT_SEARCHES];
    if (limit < 0 || r->counted)
        return true;
    r->counted = true; /* a request with texts comes twice */
    const double seconds = take(r->entry, write, (double)limit, asked > 1 ? (double)asked : 1);
    return seconds == 0 ? true
                        : request_fail(r, 429, "strict_mode_config.%s: is %lld a minute; try again in %.0f seconds",
                                       limits[write ? STRICT_WRITES : STRICT_READS].name, limit, seconds + 1);
}

bool strict_obeyed(request *r)
{
    for (size_t i = 0; i < STRICT_LIMITS; i++) {
        const long long limit = atomic_load(&r->entry->strict[i]);
        if (limit < 0 || r->asked[i] <= limit || i == STRICT_WRITES)
            continue;
        if (limits[i].kind == LIMIT_ALLOW)
            return request_fail(r, 400, "strict_mode_config.%s: is false, and the request asks for it", limits[i].name);
        const double unit = limits[i].kind == LIMIT_NUMBER ? 1e-6 : 1;
        return request_fail(r, 400, "strict_mode_config.%s: is %g, and the request has %g", limits[i].name,
                            (double)limit * unit, (double)r->asked[i] * unit);
    }
    return obeys_rate(r);
}

/* How many of these ids the collection does not have. */
static ww_status count_new(const entry *e, const char *const *ids, int64_t count, int64_t *fresh)
{
    ww_results *there = NULL;
    const ww_status status = points_get(e, ids, count, WW_FETCH_IDS, &there);
    for (int64_t i = 0; status == WW_OK && i < count; i++)
        *fresh += !ww_results_id(there, 0, i);
    ww_results_destroy(there);
    return status;
}

/* Bytes of the vectors of a point. */
static int64_t point_bytes(const entry *e)
{
    static const int64_t ELEMENT_BYTES[] = {
        [WW_VECTOR_F32] = 4, [WW_VECTOR_F16] = 2, [WW_VECTOR_BF16] = 2, [WW_VECTOR_I8] = 1, [WW_VECTOR_U8] = 1};
    int64_t bytes = e->split ? 0 : e->dim * ELEMENT_BYTES[e->type];
    for (size_t i = 0; i < e->part_count; i++)
        bytes += e->parts[i].dim * ELEMENT_BYTES[e->parts[i].type];
    return bytes;
}

ww_status strict_admits(const entry *e, const char *const *ids, int64_t count)
{
    const long long size = atomic_load(&e->strict[STRICT_SIZE]), bytes = atomic_load(&e->strict[STRICT_BYTES]);
    const int64_t there = size < 0 && bytes < 0 ? 0 : ww_collection_count(e->collection), each = point_bytes(e);
    int64_t fresh = 0;
    if ((size < 0 || there + count <= size) && (bytes < 0 || (there + count) * each <= bytes))
        return WW_OK;
    const ww_status status = count_new(e, ids, count, &fresh);
    if (status != WW_OK || fresh == 0)
        return status;
    if (size >= 0 && there + fresh > size)
        return ww_fail(WW_OUT_OF_RANGE, "strict_mode_config.%s: is %lld; %lld points are there, and %lld would be added",
                       limits[STRICT_SIZE].name, size, (long long)there, (long long)fresh);
    if (bytes >= 0 && (there + fresh) * each > bytes)
        return ww_fail(WW_OUT_OF_RANGE, "strict_mode_config.%s: is %lld; %lld points with %lld bytes each would exceed it",
                       limits[STRICT_BYTES].name, bytes, (long long)(there + fresh), (long long)each);
    return WW_OK;
}

ww_status strict_admits_index(const entry *e, int64_t count)
{
    const long long limit = atomic_load(&e->strict[STRICT_INDEXES]);
    return limit < 0 || count < limit
               ? WW_OK
               : ww_fail(WW_OUT_OF_RANGE, "strict_mode_config.%s: is %lld", limits[STRICT_INDEXES].name, limit);
}
