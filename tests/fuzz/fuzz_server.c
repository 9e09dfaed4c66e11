/* Any bytes as the body of a request to any route of Qdrant's API: refused with a status of 400 to 507 and a JSON message, or
 * run over a small collection by the route's own handler, whose answer must be JSON, too. The first byte chooses the route. The
 * path also comes from the bytes.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/memory.h"
#include "fuzz/storing.h"
#include "server/http.h"
#include "server/qdrant/collections/strict.h"
#include "server/route.h"
#include "server/snapshots/snapshots.h"
#include "server/state.h"
#include "server/work/documents.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Keys that are hard to write, and values of all types. */
static const char collection[] = "{\"vectors\": {\"size\": 2, \"distance\": \"Dot\"}}";
static const char points[] =
    "{\"points\": [{\"id\": 1, \"vector\": [1, 2], \"payload\": {\"a]\": 5, \"\": [1, {\"b\": null}], \"k\": [\"x\", \"y\", "
    "7]}},"
    " {\"id\": 2, \"vector\": [2, 1], \"payload\": {\"a\": {\"b\": [{\"c\": 1}, {\"c\": 2}]}, \"k\": \"x\"}},"
    " {\"id\": \"00000000-0000-0000-0000-000000000003\", \"vector\": [0, 1]}]}";

static server served;

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    abort();
}

static void check_answer(const request *r, bool may_be_good)
{
    json_fault fault;
    const bool good = r->status == 200 && may_be_good, refused = r->status >= 400 && r->status <= 507;
    if ((!good && !refused) || r->answer.failed || !r->answer.bytes)
        fail("a status that no answer has");
    if (!r->content_type && !json_check(r->answer.bytes, r->answer.length, &fault)) {
        fprintf(stderr, "%.*s\n", (int)r->answer.length, r->answer.bytes);
        fail("an answer that is not JSON");
    }
}

static void release(request *r)
{
    if (r->plan_free)
        r->plan_free(r->plan);
    documents_free(r->documents);
    if (r->entry)
        entry_release(&served, r->entry);
    for (size_t i = 0; i < PATH_NAMES_MAX; i++)
        memory_free(r->names[i]);
    out_free(&r->answer);
}

/* Is the route one whose handler computes and returns? Maps have threads of their own, and models have none here. */
static bool is_run(const route *at)
{
    const bool store =
        at->work == WORK_COLLECTION || at->work == WORK_READ || at->work == WORK_STORE || at->work == WORK_STORE_READ;
    return store && at->run && !strstr(at->path, "/map");
}

/* Prepares a request and runs it. */
static void ask(const route *at, char *body, size_t length)
{
    static char url[] = "/collections/docs";
    request r = {.server = &served, .route = at, .url = url, .body = body, .body_length = length};
    if (route_uploads(&r))
        return; /* its body goes into a file while it comes */
    r.names[0] = memory_copy_text("docs", 4);
    r.names[1] = memory_copy_text("7", 1);
    if (!r.names[0] || !r.names[1])
        fail("no memory");
    const bool of_collection = at->work == WORK_COLLECTION || at->work == WORK_READ;
    if (at->prepare && !at->prepare(&r)) {
        check_answer(&r, false);
    } else if (is_run(at)) {
        r.entry = of_collection ? entry_open(&served, "docs") : NULL;
        if (of_collection && !r.entry)
            fail("the collection is gone");
        if (!r.entry || strict_obeyed(&r))
            at->run(&r);
        check_answer(&r, true);
    }
    release(&r);
}

static const route *route_of(const char *method, const char *of_path)
{
    for (size_t i = 0; i < route_count(); i++)
        if (strcmp(route_at(i)->method, method) == 0 && strcmp(route_at(i)->path, of_path) == 0)
            return route_at(i);
    fail("a route is gone");
    return NULL;
}

static void ask_text(const char *method, const char *of_path, const char *text)
{
    char *body = memory_copy_text(text, strlen(text));
    if (!body)
        fail("no memory");
    ask(route_of(method, of_path), body, strlen(body));
    memory_free(body);
}

/* Opens a store that belongs to this process. */
static void begin(void)
{
    ww_store_config config = ww_store_config_default();
    config.synchronous = WW_SYNCHRONOUS_OFF;
    storing_begin("server");
    served.config = server_config_default();
    served.config.store = storing_path;
    pthread_mutex_init(&served.lock, NULL);
    pthread_mutex_init(&served.notes_lock, NULL);
    if (ww_device_open("cpu", &served.config.device) != WW_OK ||
        ww_store_open(storing_path, served.config.device, &config, &served.store) != WW_OK)
        fail(ww_error_message());
}

/* Puts the collection back as it was, if a request before has changed it. */
static void reset(bool changed)
{
    if (!served.store)
        begin();
    else if (!changed)
        return;
    entry *there = entry_open(&served, "docs");
    if (there) {
        entry_release(&served, there);
        ask_text("DELETE", "/collections/{collection_name}", "");
    }
    ask_text("PUT", "/collections/{collection_name}", collection);
    ask_text("PUT", "/collections/{collection_name}/points", points);
}

static void check_framing(const char *text, size_t size)
{
    const char *why = "";
    const http_framing framing = {
        .lengths = size & 1, .encodings = size >> 1 & 1, .length = size & 1 ? text + 1 : NULL, .chunked = true};
    const int status = http_framing_check(&framing, 1 << 20, &why);
    if ((status == 200) != (why[0] == '\0'))
        fail("a refusal without a reason");
    const int head = http_head_check(text, size, &why);
    if (head != 200 && head != 400 && head != 505)
        fail("a status that no head has");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static bool changed = false;
    if (size == 0)
        return 0;
    char *text = memory_alloc(size + 1);
    if (!text)
        fail("no memory");
    memcpy(text, bytes, size);
    text[size] = '\0';
    const route *at = route_at(bytes[0] % route_count());
    reset(changed);
    changed = at->right == RIGHT_WRITE;
    if (at->work != WORK_MODEL && at->work != WORK_HERE)
        ask(at, text + 1, size - 1);
    request found = {.server = &served, .url = text, .method = "GET"};
    (void)route_find(&found);
    release(&found);
    check_framing(text, size);
    memory_free(text);
    return 0;
}
