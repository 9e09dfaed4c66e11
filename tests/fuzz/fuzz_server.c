/* Any bytes as the body of a request to any route of Qdrant's API: refused with a status of 400 to 501 and a JSON message, or
 * turned into a plan. The first byte chooses the route. The path also comes from the bytes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/memory.h"
#include "server/http.h"
#include "server/route.h"
#include "server/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_answer(const request *r)
{
    json_fault fault;
    if (r->status < 400 || r->status > 507 || !r->answer.bytes || !json_check(r->answer.bytes, r->answer.length, &fault))
        abort();
}

static void release(request *r)
{
    if (r->plan_free)
        r->plan_free(r->plan);
    for (size_t i = 0; i < PATH_NAMES_MAX; i++)
        memory_free(r->names[i]);
    out_free(&r->answer);
}

static void prepare(const route *at, char *body, size_t length, server *s)
{
    static char name[] = "docs", id[] = "7", url[] = "/collections/docs";
    request r = {.server = s, .route = at, .url = url, .body = body, .body_length = length};
    r.names[0] = memory_copy_text(name, strlen(name));
    r.names[1] = memory_copy_text(id, strlen(id));
    if (!r.names[0] || !r.names[1])
        abort();
    if (!at->prepare(&r))
        check_answer(&r);
    release(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static server s;
    if (size == 0)
        return 0;
    char *text = memory_alloc(size + 1);
    if (!text)
        abort();
    memcpy(text, bytes, size);
    text[size] = '\0';
    const route *at = route_at(bytes[0] % route_count());
    if (at->prepare && (at->work == WORK_COLLECTION || at->work == WORK_STORE))
        prepare(at, text + 1, size - 1, &s);
    request found = {.server = &s, .url = text, .method = "GET"};
    (void)route_find(&found);
    release(&found);
    const char *why = "";
    const http_framing framing = {
        .lengths = size & 1, .encodings = size >> 1 & 1, .length = size & 1 ? text + 1 : NULL, .chunked = true};
    const int status = http_framing_check(&framing, 1 << 20, &why);
    if ((status == 200) != (why[0] == '\0'))
        abort();
    memory_free(text);
    return 0;
}
