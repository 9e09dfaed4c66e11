/* Requests: their answers, and reading their bodies. */
#include "server/request.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json/json.h"
#include "base/json/json_value.h"
#include "base/memory.h"
#include "base/message.h"
#include "server/body/encoding.h"
#include "server/state.h"
#include "server/work/documents.h"

/* ---- answers ------------------------------------------------------------------------------------------------------------- */

/* The type of an error in OpenAI's API. */
static const char *error_type(int status)
{
    if (status == 401 || status == 403)
        return "authentication_error";
    if (status == 429)
        return "rate_limit_error";
    return status < 500 ? "invalid_request_error" : "server_error";
}

bool(request_fail)(request *r, int status, const char *format, ...)
{
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    r->status = status;
    r->content_type = NULL;
    r->headers = NULL;
    r->answer.length = 0;
    if (r->url && strncmp(r->url, "/v1/", 4) == 0) {
        out_text(&r->answer, "{\"error\":{\"message\":");
        out_quoted(&r->answer, message, strlen(message));
        out_format(&r->answer, ",\"type\":\"%s\",\"param\":null,\"code\":%d}}", error_type(status), status);
    } else {
        out_text(&r->answer, "{\"status\":{\"error\":");
        out_quoted(&r->answer, message, strlen(message));
        out_format(&r->answer, "},\"time\":%.9f}", server_seconds() - r->begun_seconds);
    }
    return false;
}

bool(request_fail_status)(request *r, ww_status status)
{
    static const int STATUSES[] = {
        [WW_INVALID_ARGUMENT] = 400, [WW_DIMENSION_MISMATCH] = 400, [WW_OUT_OF_MEMORY] = 507, [WW_NO_DEVICE] = 500,
        [WW_DRIVER_ERROR] = 500,     [WW_NOT_FOUND] = 404,          [WW_DUPLICATE_ID] = 400,  [WW_UNSUPPORTED] = 501,
        [WW_CORRUPT_FILE] = 500,     [WW_IO_ERROR] = 507,           [WW_CANCELLED] = 499,     [WW_OUT_OF_RANGE] = 400,
        [WW_INTERNAL] = 500,         [WW_OTHER_PROCESS] = 500,      [WW_BUSY] = 503,          [WW_DAMAGED] = 500,
        [WW_TIMEOUT] = 504};
    const size_t known = sizeof STATUSES / sizeof *STATUSES;
    char message[1024];
    if (status == WW_CANCELLED && r->late)
        return request_fail(r, 504, "the deadline has passed: the request had %g seconds (--timeout)", r->seconds);
    text_without_calls(message, sizeof message, ww_error_message());
    return request_fail(r, (size_t)status < known && STATUSES[status] ? STATUSES[status] : 500, "%s", message);
}

void *request_plan_create(request *r, size_t bytes, void (*plan_free)(void *plan))
{
    void *plan = memory_alloc_zeroed(1, bytes);
    if (!plan) {
        request_fail_status(r, memory_failed("a request", bytes));
        return NULL;
    }
    r->plan = plan;
    r->plan_free = plan_free;
    return plan;
}

void request_done(request *r)
{
    server *s = r->server;
    struct MHD_Connection *connection = r->connection;
    encoding_write(r);
    pthread_mutex_lock(&s->lock);
    r->state = REQUEST_DONE;
    job_leave(r);
    pthread_mutex_unlock(&s->lock);
    MHD_resume_connection(connection);
}

const char *request_argument(const request *r, const char *name)
{
    return MHD_lookup_connection_value(r->connection, MHD_GET_ARGUMENT_KIND, name);
}

void request_result_begin(request *r)
{
    r->status = 200;
    out_text(&r->answer, "{\"result\":");
}

void request_result_end(request *r)
{
    if (r->documents && r->documents->cut > 0)
        out_format(&r->answer, ",\"texts_cut\":%zu", r->documents->cut);
    out_format(&r->answer, ",\"status\":\"ok\",\"time\":%.9f}", server_seconds() - r->begun_seconds);
}

void request_result_true(request *r)
{
    request_result_begin(r);
    out_text(&r->answer, "true");
    request_result_end(r);
}

/* ---- the body ------------------------------------------------------------------------------------------------------------ */

const char *request_body(request *r)
{
    json_fault fault;
    if (!r->body || r->body_length == 0) {
        request_fail(r, 400, "the body is empty; a JSON object is needed");
        return NULL;
    }
    if (strlen(r->body) != r->body_length || !json_check(r->body, r->body_length, &fault)) {
        if (strlen(r->body) != r->body_length)
            request_fail(r, 400, "the body is not JSON: there is a NUL in it");
        else
            request_fail(r, 400, "the body is not JSON: %s in line %zu, column %zu", fault.what, fault.line, fault.column);
        return NULL;
    }
    const char *root = json_root(r->body);
    if (json_type_of(root) != JSON_OBJECT) {
        request_fail(r, 400, "the body must be a JSON object");
        return NULL;
    }
    return request_without_shard(r, root) ? root : NULL;
}

bool request_without_shard(request *r, const char *object)
{
    return json_given(object, "shard_key") ? request_fail(r, 501, "shard_key: shards are not supported") : true;
}

const char *json_given(const char *object, const char *key)
{
    const char *value = json_type_of(object) == JSON_OBJECT ? json_find(object, key, strlen(key)) : NULL;
    return value && json_type_of(value) != JSON_NULL ? value : NULL;
}

bool request_read_integer(request *r, const char *object, const char *key, int64_t minimum, int64_t *value)
{
    const char *given = json_given(object, key);
    if (!given)
        return true;
    const json_number number = json_type_of(given) == JSON_NUMBER ? json_number_of(given) : (json_number){0};
    if (!number.is_integer || number.integer < minimum)
        return request_fail(r, 400, "%s: an integer of at least %lld is needed", key, (long long)minimum);
    *value = number.integer;
    return true;
}

bool request_read_number(request *r, const char *object, const char *key, double *value)
{
    const char *given = json_given(object, key);
    if (!given)
        return true;
    const json_number number = json_type_of(given) == JSON_NUMBER ? json_number_of(given) : (json_number){.real = NAN};
    *value = number.is_integer ? (double)number.integer : number.real;
    return isfinite(*value) ? true : request_fail(r, 400, "%s: a number is needed", key);
}

bool request_read_bool(request *r, const char *object, const char *key, bool *value)
{
    const char *given = json_given(object, key);
    if (given && json_type_of(given) != JSON_TRUE && json_type_of(given) != JSON_FALSE)
        return request_fail(r, 400, "%s: true or false is needed", key);
    if (given)
        *value = json_type_of(given) == JSON_TRUE;
    return true;
}

char *request_copy_text(request *r, const char *value, const char *what)
{
    if (!value || json_type_of(value) != JSON_TEXT) {
        request_fail(r, 400, "%s: a text is needed", what);
        return NULL;
    }
    const size_t room = (size_t)(json_end(value) - value);
    char *text = memory_alloc(room);
    if (!text) {
        request_fail_status(r, memory_failed("a text", room));
        return NULL;
    }
    const size_t length = json_text_read(value, text);
    text[length] = '\0';
    if (strlen(text) == length)
        return text;
    memory_free(text);
    request_fail(r, 400, "%s: there is a NUL in the text", what);
    return NULL;
}
