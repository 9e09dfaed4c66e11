/* Scalar functions over vectors. Scores are those of a search, to the bit: ww_score() computes them, and every device agrees
 * with it. As usual in SQL, a NULL argument gives NULL; any other value that is not a vector is an error. */
#include "store/sqlite/functions.h"

#include <string.h>

#include <warpwave/vectors.h>

#include "base/float_guard.h"
#include "base/message.h"
#include "store/filter/filter.h"
#include "store/sqlite/value.h"

static const char *const NAMES[] = {[WW_COSINE] = "ww_cosine", [WW_L2] = "ww_l2", [WW_DOT] = "ww_dot"};

void function_fail(sqlite3_context *context, ww_status status, const char *function)
{
    if (status == WW_OUT_OF_MEMORY) {
        sqlite3_result_error_nomem(context);
        return;
    }
    char message[1024];
    text_without_calls(message, sizeof message, ww_error_message());
    char *text = sqlite3_mprintf("%s: %s", function, message);
    if (text)
        sqlite3_result_error(context, text, -1);
    else
        sqlite3_result_error_nomem(context);
    sqlite3_free(text);
}

static void score(sqlite3_context *context, int count, sqlite3_value **arguments)
{
    FLOAT_GUARD();
    const ww_metric metric = (ww_metric)(intptr_t)sqlite3_user_data(context);
    if (count != 2 || sqlite3_value_type(arguments[0]) == SQLITE_NULL || sqlite3_value_type(arguments[1]) == SQLITE_NULL)
        return;
    vector_buffer a = {0}, b = {0};
    float result = 0.0f;
    ww_status status = vector_read(arguments[0], WW_VECTOR_F32, 0, &a);
    if (status == WW_OK)
        status = vector_read(arguments[1], WW_VECTOR_F32, 0, &b);
    if (status == WW_OK && a.dim != b.dim)
        status = ww_fail(WW_DIMENSION_MISMATCH, "a vector of %d numbers and one of %d", a.dim, b.dim);
    if (status == WW_OK)
        status = ww_score(metric, a.values, b.values, a.dim, &result);
    if (status == WW_OK)
        sqlite3_result_double(context, (double)result);
    else
        function_fail(context, status, NAMES[metric]);
    vector_buffer_free(&a);
    vector_buffer_free(&b);
}

/* The type that the second argument names, f32 if there is none. */
static ww_status type_argument(int count, sqlite3_value **arguments, ww_vector_type *type)
{
    *type = WW_VECTOR_F32;
    if (count < 2)
        return WW_OK;
    const char *name = (const char *)sqlite3_value_text(arguments[1]);
    if (!name || !value_type_find(name, type))
        return ww_fail(WW_INVALID_ARGUMENT, "type is %s; it must be f32, f16, bf16, i8 or u8", name ? name : "NULL");
    return WW_OK;
}

static void vector(sqlite3_context *context, int count, sqlite3_value **arguments)
{
    FLOAT_GUARD();
    if (sqlite3_value_type(arguments[0]) == SQLITE_NULL)
        return;
    vector_buffer read = {0};
    ww_vector_type type = WW_VECTOR_F32;
    void *bytes = NULL;
    ww_status status = type_argument(count, arguments, &type);
    if (status == WW_OK)
        status = vector_read(arguments[0], WW_VECTOR_F32, 0, &read);
    if (status == WW_OK)
        status = vector_check(read.values, read.dim, type);
    if (status == WW_OK && !(bytes = sqlite3_malloc64((sqlite3_uint64)read.dim * value_type_bytes(type))))
        status = WW_OUT_OF_MEMORY;
    if (status == WW_OK) {
        vector_write(read.values, read.dim, type, bytes);
        sqlite3_result_blob64(context, bytes, (sqlite3_uint64)read.dim * value_type_bytes(type), sqlite3_free);
    } else {
        function_fail(context, status, "ww_vector");
    }
    vector_buffer_free(&read);
}

enum { JSON_SUBTYPE = 'J' }; /* SQLite's own functions mark a JSON text with it */
#ifndef SQLITE_RESULT_SUBTYPE
#define SQLITE_RESULT_SUBTYPE 0x001000000 /* newer than the header; older SQLites ignore it */
#endif

static void to_json(sqlite3_context *context, int count, sqlite3_value **arguments)
{
    FLOAT_GUARD();
    if (sqlite3_value_type(arguments[0]) == SQLITE_NULL)
        return;
    vector_buffer read = {0};
    ww_vector_type type = WW_VECTOR_F32;
    char *json = NULL;
    ww_status status = type_argument(count, arguments, &type);
    if (status == WW_OK)
        status = vector_read(arguments[0], type, 0, &read);
    if (status == WW_OK && !(json = vector_to_json(read.values, read.dim)))
        status = WW_OUT_OF_MEMORY;
    if (status == WW_OK) {
        sqlite3_result_text(context, json, -1, sqlite3_free);
        sqlite3_result_subtype(context, JSON_SUBTYPE);
    } else {
        function_fail(context, status, "ww_to_json");
    }
    vector_buffer_free(&read);
}

static void version(sqlite3_context *context, int count, sqlite3_value **arguments)
{
    (void)count, (void)arguments;
    sqlite3_result_text(context, ww_version(), -1, SQLITE_STATIC);
}

int functions_register(sqlite3 *db)
{
    static const struct {
        const char *name;
        int arguments;
        void (*function)(sqlite3_context *, int, sqlite3_value **);
        intptr_t metric;
    } FUNCTIONS[] = {
        {"ww_cosine", 2, score, WW_COSINE}, {"ww_l2", 2, score, WW_L2},    {"ww_dot", 2, score, WW_DOT},
        {"ww_vector", 1, vector, 0},        {"ww_vector", 2, vector, 0},   {"ww_to_json", 1, to_json, 0},
        {"ww_to_json", 2, to_json, 0},      {"ww_version", 0, version, 0},
    };
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS | SQLITE_RESULT_SUBTYPE;
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++)
        rc = sqlite3_create_function_v2(db, FUNCTIONS[i].name, FUNCTIONS[i].arguments, flags, (void *)FUNCTIONS[i].metric,
                                        FUNCTIONS[i].function, NULL, NULL, NULL);
    return rc == SQLITE_OK ? filter_dictionary_register(db) : rc;
}
