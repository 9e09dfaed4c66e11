/* Groups hits by a field of their payloads, and searches until the groups are full.
 *
 * A value is identified by its bytes: a text without its escapes, a number as written, true or false; a letter in front
 * distinguishes "1" from 1. Equal numbers that are written differently, such as 1 and 1.0, are first converted to the same
 * form. Groups are found by a hash of these bytes, and the hits of a group are a chain, so the cost is linear in the hits.
 */
#include <stdio.h>
#include <string.h>

#include <warpwave/ranking.h>

#include "base/float_guard.h"
#include "base/integers.h"
#include "base/json/json_value.h"
#include "base/memory.h"
#include "base/structs.h"
#include "base/tables/hash.h"
#include "vectors/collection.h"
#include "vectors/ranking/pick.h"

enum { GROUPS_DEFAULT = 10, CANDIDATES_MIN = 100, CANDIDATES_PER_K = 4, FIELD_BYTES_MAX = 1024, NUMBER_BYTES = 40 };

STRUCT_INIT(ww_grouping, {.groups = GROUPS_DEFAULT, .size = 1})

/* The value of a hit's field. */
typedef struct group_value {
    char *bytes; /* memory_free() */
    size_t length;
} group_value;

typedef struct group {
    group_value value;
    int64_t first, last; /* hits */
    int64_t count;
    int64_t slot; /* its place in the table */
} group;

typedef struct grouping_state {
    const ww_results *results;
    const ww_grouping *how;
    group *groups; /* how->groups of them, at most as many as there are hits */
    int64_t count, room;
    int64_t *next;  /* of each hit, the next one of its group */
    int64_t *slots; /* number of a group plus 1; 0: free. At least twice as many as groups */
    int64_t slot_mask;
} grouping_state;

static void state_free(grouping_state *g)
{
    memory_free(g->groups);
    memory_free(g->next);
    memory_free(g->slots);
}

static ww_status state_create(grouping_state *g, int64_t hits)
{
    for (g->slot_mask = 15; g->slot_mask < 2 * g->room; g->slot_mask = 2 * g->slot_mask + 1) {
    }
    g->groups = memory_alloc_zeroed((size_t)g->room + 1, sizeof *g->groups);
    g->next = memory_alloc(((size_t)hits + 1) * sizeof *g->next);
    g->slots = memory_alloc_zeroed((size_t)g->slot_mask + 1, sizeof *g->slots);
    return g->groups && g->next && g->slots ? WW_OK : memory_failed("groups", ((size_t)g->room + 1) * sizeof *g->groups);
}

static ww_status value_read(const char *json, group_value *value)
{
    const json_type type = json_type_of(json);
    const size_t room = (size_t)(json_end(json) - json) + NUMBER_BYTES;
    *value = (group_value){0};
    if (type == JSON_NULL || type == JSON_LIST || type == JSON_OBJECT)
        return WW_OK;
    char *bytes = memory_alloc(room);
    if (!bytes)
        return memory_failed("the value of a group", room);
    const json_number number = type == JSON_NUMBER ? json_number_of(json) : (json_number){0};
    bytes[0] = (char)('a' + (int)type);
    value->length = 1;
    if (type == JSON_TEXT)
        value->length += json_text_read(json, bytes + 1);
    else if (type == JSON_NUMBER && number.is_integer)
        value->length += (size_t)snprintf(bytes + 1, room - 1, "%lld", (long long)number.integer);
    else if (type == JSON_NUMBER && number.real >= -9e15 && number.real <= 9e15 && number.real == (double)(int64_t)number.real)
        value->length += (size_t)snprintf(bytes + 1, room - 1, "%lld", (long long)number.real);
    else if (type == JSON_NUMBER)
        value->length += (size_t)snprintf(bytes + 1, room - 1, "%.17g", number.real);
    value->bytes = bytes;
    return WW_OK;
}

/* Returns the slot of the value's group, or the free slot where it belongs. */
static int64_t slot_of(const grouping_state *g, const group_value *value)
{
    int64_t slot = (int64_t)(hash_bytes(hash_process_key(), value->bytes, value->length) & (uint64_t)g->slot_mask);
    for (; g->slots[slot] > 0; slot = (slot + 1) & g->slot_mask) {
        const group_value *there = &g->groups[g->slots[slot] - 1].value;
        if (there->length == value->length && memcmp(there->bytes, value->bytes, value->length) == 0)
            break;
    }
    return slot;
}

/* Adds a hit to its group if that has room, or makes the group if there is room for one more. */
static ww_status hit_put(grouping_state *g, int64_t hit)
{
    const ww_results *r = g->results;
    const char *payload = r->payloads && r->payloads[hit] >= 0 ? r->text + r->payloads[hit] : NULL;
    const char *json = json_find_field(payload, g->how->field);
    group_value value = {0};
    const ww_status status = json ? value_read(json, &value) : WW_OK;
    if (status != WW_OK || !value.bytes)
        return status;
    const int64_t slot = slot_of(g, &value);
    group *of = g->slots[slot] > 0 ? &g->groups[g->slots[slot] - 1] : NULL;
    if (!of && g->count < g->room) {
        of = &g->groups[g->count++];
        *of = (group){.value = value, .slot = slot};
        g->slots[slot] = g->count;
        value.bytes = NULL;
    }
    if (of && of->count < g->how->size) {
        *(of->count > 0 ? &g->next[of->last] : &of->first) = hit;
        of->last = hit;
        of->count++;
    }
    memory_free(value.bytes);
    return WW_OK;
}

static void groups_empty(grouping_state *g)
{
    for (int64_t i = 0; i < g->count; i++) {
        memory_free(g->groups[i].value.bytes);
        g->slots[g->groups[i].slot] = 0;
    }
    g->count = 0;
}

static ww_status how_check(const ww_results *results, const ww_grouping *how)
{
    static const char function[] = "ww_results_group";
    if (!how->field || !how->field[0] || strnlen(how->field, FIELD_BYTES_MAX + 1) > FIELD_BYTES_MAX)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: field is %s; it must be the name of a field of 1 to %d bytes", function,
                       !how->field     ? "NULL"
                       : how->field[0] ? "too long"
                                       : "empty",
                       FIELD_BYTES_MAX);
    if (how->groups < 1 || how->size < 1)
        return ww_fail(WW_OUT_OF_RANGE, "%s: groups is %lld and size %lld; both must be 1 or more", function,
                       (long long)how->groups, (long long)how->size);
    if (results && results_hits(results) > 0 && !results->payloads)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the results have no payloads; the query must fetch them", function);
    return WW_OK;
}

/* Groups all queries. Sets `full` if each has as many groups as requested, all of them full. */
static ww_status group_all(const ww_results *results, const ww_grouping *how, bool *full, ww_results **grouped)
{
    const int64_t hits = results_hits(results);
    grouping_state g = {.results = results, .how = how, .room = min_i64(how->groups, hits)};
    int64_t *starts = NULL;
    picked_hit *picked = NULL;
    ww_status status = state_create(&g, hits);
    if (status == WW_OK)
        status = picked_create(results->query_count, hits, &starts, &picked);
    *full = true;
    for (int64_t q = 0; status == WW_OK && q < results->query_count; q++) {
        for (int64_t i = results->starts[q]; status == WW_OK && i < results->starts[q + 1]; i++)
            status = hit_put(&g, i);
        int64_t at = starts[q];
        for (int64_t i = 0; status == WW_OK && i < g.count; i++) {
            int64_t hit = g.groups[i].first;
            for (int64_t j = 0; j < g.groups[i].count; j++, hit = g.next[hit])
                picked[at++] = (picked_hit){results, hit, results->scores[hit]};
            *full = *full && g.groups[i].count == how->size;
        }
        *full = *full && g.count == how->groups;
        starts[q + 1] = at;
        groups_empty(&g);
    }
    if (status == WW_OK)
        status = results_pick(&(picked_hits){results->query_count, starts, picked}, grouped);
    groups_empty(&g);
    state_free(&g);
    memory_free(starts);
    memory_free(picked);
    return status;
}

ww_status ww_results_group(const ww_results *results, const ww_grouping *how, ww_results **grouped)
{
    FLOAT_GUARD();
    static const char function[] = "ww_results_group";
    ww_grouping read;
    bool full = false;
    if (!results || !how || !grouped)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", function, !results ? "results" : !how ? "how" : "grouped");
    ww_status status = struct_read(&read, sizeof read, how, function, "ww_grouping");
    if (status == WW_OK)
        status = how_check(results, &read);
    return status == WW_OK ? group_all(results, &read, &full, grouped) : status;
}

/* ---- searching for groups and for diversity ------------------------------------------------------------------------------ */

/* Finds `count` hits for each query: the nearest, or above WW_K_MAX a range without a bound. */
static ww_status find_some(ww_collection *c, const ww_query *query, int64_t count, ww_results **found)
{
    ww_query more = *query;
    if (count <= WW_K_MAX) {
        more.k = (int32_t)count;
        return ww_collection_query(c, &more, found);
    }
    more.mode = WW_QUERY_RANGE;
    more.k = 0;
    more.bound = c->metric == WW_L2 ? __builtin_inff() : -__builtin_inff();
    more.limit = count;
    return ww_collection_query(c, &more, found);
}

/* Finds four times as many hits again and again, until the groups are full or there are no more hits. A search by words finds
 * at most WW_K_MAX hits. */
static ww_status find_groups(ww_collection *c, const ww_query *query, const ww_grouping *how, ww_results **results)
{
    const int64_t hits_max = query->match ? WW_K_MAX : WW_ROWS_MAX;
    int64_t count = min_i64(max_i64(CANDIDATES_MIN, min_i64(how->groups, hits_max) * min_i64(how->size, hits_max)), hits_max);
    bool done = false;
    ww_status status = how_check(NULL, how);
    while (status == WW_OK && !done) {
        ww_results *found = NULL, *grouped = NULL;
        bool full = false, more = false;
        status = find_some(c, query, count, &found);
        if (status == WW_OK)
            status = group_all(found, how, &full, &grouped);
        for (int64_t q = 0; status == WW_OK && q < found->query_count; q++)
            more = more || ww_results_count(found, q) == count;
        ww_results_destroy(found);
        done = full || !more || count == hits_max;
        if (status == WW_OK && done)
            *results = grouped;
        else
            ww_results_destroy(grouped);
        count = min_i64(count * CANDIDATES_PER_K, hits_max);
    }
    return status;
}

static ww_status find_diverse(ww_collection *c, const ww_query *query, const ww_diversity *how, int64_t candidates,
                              ww_results **results)
{
    ww_diversity read = *how;
    ww_results *found = NULL;
    int64_t count = candidates > 0 ? candidates : max_i64(CANDIDATES_MIN, (int64_t)CANDIDATES_PER_K * query->k);
    count = query->k > 0 ? min_i64(max_i64(count, query->k), WW_DIVERSITY_MAX) : 0;
    read.limit = query->k;
    read.metric = c->metric;
    if (query->match && !read.queries && query->queries && (query->query_stride == 0 || query->query_stride == query->dim))
        read.queries = query->queries; /* because fused scores and similarities have different scales */
    ww_status status = find_some(c, query, count, &found);
    if (status == WW_OK)
        status = ww_results_diversify(found, &read, results);
    ww_results_destroy(found);
    return status;
}

static ww_status rank_check(const char *function, const ww_query *query, int64_t candidates)
{
    if (query->mode != WW_QUERY_NEAREST)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: it is for the nearest, not for a range", function);
    if (candidates < 0 || candidates > WW_DIVERSITY_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "%s: candidates is %lld; it must be 0 to %d", function, (long long)candidates,
                       WW_DIVERSITY_MAX);
    if (query->k < 0 || query->k > WW_DIVERSITY_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "%s: k is %d; it must be 0 to %d", function, query->k, WW_DIVERSITY_MAX);
    return WW_OK;
}

ww_status ww_collection_rank(ww_collection *collection, const ww_query *query, const ww_diversity *diversity,
                             const ww_grouping *grouping, int64_t candidates, ww_results **results)
{
    FLOAT_GUARD();
    static const char function[] = "ww_collection_rank";
    ww_query asked;
    ww_diversity diverse;
    ww_grouping grouped;
    ww_status status = collection_check(collection, function);
    if (status != WW_OK)
        return status;
    if (!query || !results)
        return fail_null(function, query ? "results" : "query");
    if ((diversity != NULL) == (grouping != NULL))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: give one of diversity and grouping", function);
    status = struct_read(&asked, sizeof asked, query, function, "ww_query");
    if (status == WW_OK)
        status = rank_check(function, &asked, candidates);
    if (status == WW_OK)
        asked.struct_size = sizeof asked; /* all fields are set here */
    if (status == WW_OK && diversity)
        status = struct_read(&diverse, sizeof diverse, diversity, function, "ww_diversity");
    if (status == WW_OK && grouping)
        status = struct_read(&grouped, sizeof grouped, grouping, function, "ww_grouping");
    if (status != WW_OK)
        return status;
    asked.fetch |= diversity ? WW_FETCH_VECTORS : WW_FETCH_PAYLOADS;
    if (diversity) {
        diverse.struct_size = sizeof diverse;
        return find_diverse(collection, &asked, &diverse, candidates, results);
    }
    return find_groups(collection, &asked, &grouped, results);
}
