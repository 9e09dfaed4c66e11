/* Points: changing them, and getting them by id. */
#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/qdrant/collections/layout.h"
#include "server/qdrant/collections/strict.h"
#include "server/qdrant/listing.h"
#include "server/qdrant/operation.h"
#include "server/qdrant/select.h"
#include "server/reserve.h"
#include "server/route.h"
#include "server/work/changes.h"

/* ---- changing ------------------------------------------------------------------------------------------------------------ */

typedef struct change_plan {
    operation *operations;
    size_t count;
    bool list;      /* the answer is a list: one for each operation */
    bool forbidden; /* the key may not do this */
} change_plan;

static void change_free(void *plan)
{
    change_plan *p = plan;
    for (size_t i = 0; i < p->count; i++)
        operation_free(&p->operations[i]);
    memory_free(p->operations);
    memory_free(p);
}

static change_plan *change_create(request *r, size_t count)
{
    change_plan *p = request_plan_create(r, sizeof *p, change_free);
    if (!p)
        return NULL;
    p->operations = memory_alloc_zeroed(count + 1, sizeof *p->operations);
    if (!p->operations)
        request_fail_status(r, memory_failed("operations", count * sizeof *p->operations));
    return p->operations ? p : NULL;
}

/* Small changes that wait for the same collection are run together. */
static bool may_group(request *r)
{
    enum { GROUPED_BODY_BYTES = 64 << 10 };
    const change_plan *p = r->plan;
    bool joins = r->body_length <= GROUPED_BODY_BYTES && !r->documents;
    for (size_t i = 0; joins && i < p->count; i++)
        joins = operation_can_join(&p->operations[i]);
    r->batch = joins ? 1 : 0;
    return true;
}

static bool prepare_change(request *r, operation_kind kind)
{
    const char *body = request_body(r);
    change_plan *p = body ? change_create(r, 1) : NULL;
    if (!p)
        return false;
    p->count = 1;
    return operation_read(r, body, kind, p->operations) && may_group(r);
}

static bool prepare_upsert(request *r)
{
    return prepare_change(r, OPERATION_UPSERT);
}
static bool prepare_vectors(request *r)
{
    return prepare_change(r, OPERATION_UPDATE_VECTORS);
}
static bool prepare_delete_vectors(request *r)
{
    return prepare_change(r, OPERATION_DELETE_VECTORS);
}
static bool prepare_delete(request *r)
{
    return prepare_change(r, OPERATION_DELETE);
}
static bool prepare_set(request *r)
{
    return prepare_change(r, OPERATION_SET_PAYLOAD);
}
static bool prepare_overwrite(request *r)
{
    return prepare_change(r, OPERATION_OVERWRITE_PAYLOAD);
}
static bool prepare_delete_keys(request *r)
{
    return prepare_change(r, OPERATION_DELETE_PAYLOAD);
}
static bool prepare_clear(request *r)
{
    return prepare_change(r, OPERATION_CLEAR_PAYLOAD);
}

/* One of a list of operations: {"upsert": {...}}. */
static bool read_operation(request *r, const char *object, operation *o, size_t number)
{
    static const struct {
        const char *name;
        operation_kind kind;
    } KINDS[] = {{"upsert", OPERATION_UPSERT},
                 {"delete", OPERATION_DELETE},
                 {"set_payload", OPERATION_SET_PAYLOAD},
                 {"overwrite_payload", OPERATION_OVERWRITE_PAYLOAD},
                 {"delete_payload", OPERATION_DELETE_PAYLOAD},
                 {"clear_payload", OPERATION_CLEAR_PAYLOAD},
                 {"update_vectors", OPERATION_UPDATE_VECTORS},
                 {"delete_vectors", OPERATION_DELETE_VECTORS}};
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
        const char *value = json_given(object, KINDS[i].name);
        if (value && json_type_of(value) == JSON_OBJECT)
            return operation_read(r, value, KINDS[i].kind, o);
    }
    return request_fail(
        r, 400,
        "operations[%zu]: one of upsert, delete, set_payload, overwrite_payload, delete_payload, clear_payload, "
        "update_vectors and delete_vectors is needed",
        number);
}

enum { OPERATIONS_MAX = 4096 };

static bool prepare_batch(request *r)
{
    const char *body = request_body(r), *list = body ? json_given(body, "operations") : NULL;
    size_t count = 0;
    if (!body)
        return false;
    if (!list || json_type_of(list) != JSON_LIST)
        return request_fail(r, 400, "operations: a list is needed");
    for (const char *at = json_first(list); at; at = json_next(at))
        count++;
    if (count > OPERATIONS_MAX)
        return request_fail(r, 400, "operations: %zu of them; the maximum is %d", count, OPERATIONS_MAX);
    change_plan *p = change_create(r, count);
    if (!p)
        return false;
    p->list = true;
    strict_ask(r, STRICT_WRITES, (int64_t)count);
    for (const char *at = json_first(list); at; at = json_next(at)) {
        operation *o = &p->operations[p->count++];
        if (!read_operation(r, at, o, p->count - 1))
            return false;
    }
    return may_group(r);
}

/* Another node may have changed the collection since the request found it. Called within a transaction of the cluster, in which
 * that cannot happen. */
static ww_status renew(request *r)
{
    if (!changes_are_shared() || !atomic_load(&r->entry->replaced))
        return WW_OK;
    entry *now = entry_open(r->server, r->entry->name);
    if (!now)
        return ww_fail(WW_NOT_FOUND, "Not found: Collection `%s` doesn't exist!", r->entry->name);
    entry_release(r->server, r->entry);
    r->entry = now;
    return WW_OK;
}

/* Runs an operation as one transaction. */
static ww_status run_one(request *r, const operation *o)
{
    server *s = r->server;
    if (!r->entry->split && !s->writer)
        return operation_run(r->entry, o);
    ww_status status = changes_begin(s);
    if (status != WW_OK)
        return status;
    status = renew(r);
    if (status == WW_OK)
        status = operation_run(r->entry, o);
    if (status == WW_OK)
        return changes_commit(s);
    changes_rollback(s);
    return status;
}

/* Runs a request's operations, each as a transaction or all within that of the calling thread. */
static ww_status run_operations(request *r, bool within)
{
    change_plan *p = r->plan;
    ww_status status = within ? renew(r) : WW_OK;
    for (size_t i = 0; status == WW_OK && i < p->count; i++) {
        p->operations[i].forbidden = &p->forbidden;
        status = job_check();
        if (status == WW_OK)
            status = within ? operation_run(r->entry, &p->operations[i]) : run_one(r, &p->operations[i]);
    }
    return status;
}

static void put_changed(request *r)
{
    const change_plan *p = r->plan;
    request_result_begin(r);
    out_text(&r->answer, p->list ? "[" : "");
    for (size_t i = 0; i < p->count; i++)
        out_format(&r->answer, "%s{\"operation_id\":%lld,\"status\":\"completed\"}", i > 0 ? "," : "",
                   atomic_fetch_add(&r->server->operations, 1));
    out_text(&r->answer, p->list ? "]" : "");
    request_result_end(r);
}

/* Does the request only remove? */
static bool frees_room(const change_plan *p)
{
    bool frees = true;
    for (size_t i = 0; i < p->count; i++)
        switch (p->operations[i].kind) {
        case OPERATION_DELETE:
        case OPERATION_DELETE_VECTORS:
        case OPERATION_DELETE_PAYLOAD:
        case OPERATION_CLEAR_PAYLOAD:
            break;
        default:
            frees = false;
        }
    return frees;
}

/* Splits the collection if it has to have points without their vector. */
static ww_status make_room(request *r)
{
    const change_plan *p = r->plan;
    bool bare = false;
    for (size_t i = 0; i < p->count; i++)
        bare = bare || p->operations[i].bare;
    return bare && !r->entry->split ? layout_split(r) : WW_OK;
}

static void run_alone(request *r)
{
    ww_status status = make_room(r);
    if (status == WW_OK)
        status = run_operations(r, false);
    if (frees_room(r->plan) && reserve_give(r->server, status))
        status = run_operations(r, false);
    if (status == WW_OK)
        put_changed(r);
    else
        request_fail_status(r, status);
    if (((const change_plan *)r->plan)->forbidden)
        r->status = 403;
}

/* Runs requests from `first` up to `end` as one transaction: the disk is written once for all of them. If anything fails,
 * nothing is changed, and this returns false. Only with WW_TIMEOUT, of a cluster, it may have been: they are not run again. */
static bool run_grouped(request *first, const request *end)
{
    server *s = first->server;
    ww_status status = changes_begin(s);
    if (status != WW_OK)
        return false;
    for (request *r = first; status == WW_OK && r != end; r = r->next)
        status = run_operations(r, true);
    if (status != WW_OK) {
        changes_rollback(s);
        return false;
    }
    status = changes_commit(s);
    for (request *r = first; (status == WW_OK || status == WW_TIMEOUT) && r != end; r = r->next)
        if (status == WW_OK)
            put_changed(r);
        else
            request_fail_status(r, status);
    return status == WW_OK || status == WW_TIMEOUT;
}

/* Runs what waited together. A request that fails must not take others with it, so a group that fails is run one by one. */
static void run_changes(request *list)
{
    enum { GROUP_MAX = 256 }; /* with bodies of 64 KiB: other writes of the store wait for 16 MiB at most */
    for (request *first = list, *end; first; first = end) {
        int count = 0;
        for (end = first; end && count < GROUP_MAX && end->entry == first->entry; end = end->next)
            count++;
        const bool limited = atomic_load(&first->entry->strict[STRICT_SIZE]) >= 0 ||
                             atomic_load(&first->entry->strict[STRICT_BYTES]) >= 0; /* then each counts the existing points */
        const bool grouped = count > 1 && !limited && run_grouped(first, end);
        for (request *r = first; !grouped && r != end; r = r->next)
            run_alone(r);
    }
}

/* ---- getting by id ------------------------------------------------------------------------------------------------------- */

typedef struct get_plan {
    point_id *ids;
    int64_t count;
    selection with;
    bool one;
} get_plan;

static void get_free(void *plan)
{
    get_plan *p = plan;
    parts_free(&p->with);
    memory_free(p->ids);
    memory_free(p);
}

static get_plan *get_create(request *r)
{
    get_plan *p = request_plan_create(r, sizeof *p, get_free);
    if (p)
        p->with.payload = true;
    return p;
}

static bool prepare_get(request *r)
{
    const char *body = request_body(r);
    get_plan *p = body ? get_create(r) : NULL;
    return p && parts_read(r, body, &p->with) && point_ids_read(r, json_given(body, "ids"), "ids", &p->ids, &p->count);
}

/* Makes a list with the path's id as its only element, for point_ids_read(). */
static bool prepare_get_one(request *r)
{
    get_plan *p = get_create(r);
    out list = {0};
    uint64_t number = 0;
    if (!p)
        return false;
    p->one = p->with.vector = true;
    out_text(&list, "[");
    if (point_id_is_number(r->names[1], strlen(r->names[1]), &number))
        out_text(&list, r->names[1]);
    else
        out_quoted(&list, r->names[1], strlen(r->names[1]));
    out_text(&list, "]");
    const bool read = list.failed ? request_fail_status(r, memory_failed("an id", list.length))
                                  : point_ids_read(r, list.bytes, "id", &p->ids, &p->count);
    out_free(&list);
    return read;
}

/* Does the point exist, and does the key of the request see it? */
static bool is_seen(const request *r, const ww_results *found, int64_t i)
{
    const char *id = ww_results_id(found, 0, i);
    return id && (!r->grant || filter_admits(r->grant->seen, id, ww_results_payload(found, 0, i)));
}

static void put_found(request *r, const get_plan *p, const ww_results *found)
{
    bool begun = false;
    request_result_begin(r);
    out_text(&r->answer, p->one ? "" : "[");
    for (int64_t i = 0; i < ww_results_count(found, 0); i++) {
        if (!is_seen(r, found, i))
            continue;
        out_text(&r->answer, begun ? "," : "");
        put_record(&r->answer, &(point){r->entry, found, 0, i, &p->with});
        begun = true;
    }
    out_text(&r->answer, p->one ? "" : "]");
    request_result_end(r);
}

static void run_get(request *r)
{
    const get_plan *p = r->plan;
    const char **ids = memory_alloc((size_t)(p->count + 1) * sizeof *ids);
    ww_results *found = NULL;
    for (int64_t i = 0; ids && i < p->count; i++)
        ids[i] = p->ids[i];
    const uint32_t fetch = parts_fetch(&p->with) | (r->grant ? (uint32_t)WW_FETCH_PAYLOADS : 0);
    const ww_status status =
        ids ? points_get(r->entry, ids, p->count, fetch, &found) : memory_failed("ids", (size_t)p->count * sizeof *ids);
    if (status != WW_OK)
        request_fail_status(r, status);
    else if (p->one && !is_seen(r, found, 0))
        request_fail(r, 404, "Not found: Point with id %s does not exists!", r->names[1]);
    else
        put_found(r, p, found);
    ww_results_destroy(found);
    memory_free(ids);
}

/* ---- the table ----------------------------------------------------------------------------------------------------------- */

#define SELECTOR "\"points\":{\"type\":\"array\",\"items\":{}},\"filter\":{\"type\":\"object\"}"
#define CHANGED  "The number and the state of the operation."
#define POINTS   "/collections/{collection_name}/points"

static const route routes[] = {
    {"PUT", POINTS, RIGHT_CHANGE_POINTS, WORK_COLLECTION, prepare_upsert, run_changes, "Add or replace points",
     "\"points\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}},\"batch\":{\"type\":\"object\"}", CHANGED, true},
    {"POST", POINTS, RIGHT_POINTS, WORK_READ, prepare_get, run_get, "Get points by id",
     "\"ids\":{\"type\":\"array\",\"items\":{}},\"with_payload\":{},\"with_vector\":{}", "The points that exist.", false},
    {"POST", POINTS "/delete", RIGHT_CHANGE_POINTS, WORK_COLLECTION, prepare_delete, run_changes, "Delete points", SELECTOR,
     CHANGED, true},
    {"PUT", POINTS "/vectors", RIGHT_CHANGE_POINTS, WORK_COLLECTION, prepare_vectors, run_changes, "Give points new vectors",
     "\"points\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}", CHANGED, true},
    {"POST", POINTS "/vectors/delete", RIGHT_CHANGE_POINTS, WORK_COLLECTION, prepare_delete_vectors, run_changes,
     "Delete named vectors", "\"vector\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}," SELECTOR, CHANGED, true},
    {"POST", POINTS "/payload", RIGHT_CHANGE_POINTS, WORK_COLLECTION, prepare_set, run_changes, "Set payload keys",
     "\"payload\":{\"type\":\"object\"},\"key\":{\"type\":\"string\"}," SELECTOR, CHANGED, true},
    {"PUT", POINTS "/payload", RIGHT_CHANGE_POINTS, WORK_COLLECTION, prepare_overwrite, run_changes, "Replace payloads",
     "\"payload\":{\"type\":\"object\"}," SELECTOR, CHANGED, true},
    {"POST", POINTS "/payload/delete", RIGHT_CHANGE_POINTS, WORK_COLLECTION, prepare_delete_keys, run_changes,
     "Delete payload keys", "\"keys\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}," SELECTOR, CHANGED, true},
    {"POST", POINTS "/payload/clear", RIGHT_CHANGE_POINTS, WORK_COLLECTION, prepare_clear, run_changes, "Remove payloads",
     SELECTOR, CHANGED, true},
    {"POST", POINTS "/batch", RIGHT_CHANGE_POINTS, WORK_COLLECTION, prepare_batch, run_changes,
     "Several operations, one after the other", "\"operations\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}", CHANGED,
     true},
    {"POST", POINTS "/scroll", RIGHT_POINTS, WORK_READ, prepare_scroll, run_scroll, "List points page by page",
     "\"limit\":{\"type\":\"integer\"},\"offset\":{},\"filter\":{\"type\":\"object\"},\"with_payload\":{},\"with_vector\":{},"
     "\"order_by\":{}",
     "The points of the page, and the id that the next one begins with.", false},
    {"POST", POINTS "/count", RIGHT_POINTS, WORK_READ, prepare_count, run_count, "Count points",
     "\"filter\":{\"type\":\"object\"},\"exact\":{\"type\":\"boolean\"}", "The number, which is exact.", false},
    {"POST", "/collections/{collection_name}/facet", RIGHT_POINTS, WORK_READ, prepare_facet, run_facet,
     "Count the values of a key",
     "\"key\":{\"type\":\"string\"},\"limit\":{\"type\":\"integer\"},\"filter\":{\"type\":\"object\"},\"exact\":{\"type\":"
     "\"boolean\"}",
     "Values, the most frequent first.", false},
    {"GET", POINTS "/{id}", RIGHT_POINTS, WORK_READ, prepare_get_one, run_get, "Get one point", NULL, "The point.", false},
};

const route_table routes_points = {routes, sizeof routes / sizeof *routes};
