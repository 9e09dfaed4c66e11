/* ww_model() and ww_embed(): texts become vectors in SQL.
 *
 *     SELECT ww_model('minilm.gguf', 'cpu');
 *     SELECT id, distance FROM docs WHERE vector MATCH ww_embed('a small animal that stores nuts') AND k = 5;
 *
 * A connection has one model at a time. A schema or a trigger must not open files, so ww_model() can only be
 * called directly. So can ww_embed(), whose result in a schema would depend on the model that the connection happens to have
 * open.
 */
#include <warpwave/model.h>

#include "base/float_guard.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/tables/hash.h"
#include "base/text.h"
#include "store/sqlite/functions.h"

/* The model of a connection. */
struct embedder {
    ww_device *device;
    ww_model *model;
    int32_t width;
    char fingerprint[sizeof((ww_model_info){0}.fingerprint)];
    uint64_t *made; /* hashes of vectors that it made, indexed by their low bits; NULL before the first */
    int users;      /* functions and modules that use it */
};

enum { HASHES_KEPT = 1 << 16 };

/* Never 0, which means an empty slot. A table of hashes is needed because marks on values (subtypes) get lost in an UPDATE. */
static uint64_t hash_of(const void *vector, size_t bytes)
{
    return fnv_bytes(FNV_BEGIN, vector, bytes) | UINT64_C(1) << 63;
}

bool embedder_made(const embedder *e, const void *vector, size_t bytes)
{
    const uint64_t hash = e->made ? hash_of(vector, bytes) : 0;
    return e->made && e->made[hash % HASHES_KEPT] == hash;
}

const char *embedder_fingerprint(const embedder *e)
{
    return e->fingerprint;
}

#ifdef WARPWAVE_WITH_MODEL

static ww_status model_open(const char *path, ww_device *device, ww_model_info *info, ww_model **model)
{
    ww_status status = ww_model_open(path, device, NULL, model);
    *info = ww_model_info_default();
    if (status == WW_OK)
        status = ww_model_describe(*model, info);
    if (status == WW_OK && !info->embeds)
        status = ww_fail(WW_UNSUPPORTED, "a model of architecture %s does not embed texts", info->architecture);
    return status;
}

#define model_close ww_model_close
#define model_embed ww_model_embed

#else

static ww_status model_open(const char *path, ww_device *device, ww_model_info *info, ww_model **model)
{
    (void)device, (void)info, (void)model;
    return ww_fail(WW_UNSUPPORTED, "%s cannot be opened: this library was built without models", path);
}

/* Never reached: no model is opened. */
#define model_close(model) ((void)(model))
#define model_embed(model, texts, bytes, count, how, vectors)                                                                  \
    ((void)(model), (void)(texts), (void)(bytes), (void)(count), (void)(how), (void)(vectors), WW_UNSUPPORTED)

#endif

void embedder_release(void *user)
{
    embedder *e = user;
    if (--e->users > 0)
        return;
    model_close(e->model);
    ww_device_close(e->device);
    memory_free(e->made);
    memory_free(e);
}

static ww_status open_model(embedder *e, const char *path, const char *device_name, ww_model_info *info)
{
    ww_device *device = NULL;
    ww_model *model = NULL;
    ww_status status = ww_device_open(device_name, &device);
    if (status == WW_OK)
        status = model_open(path, device, info, &model);
    if (status != WW_OK) {
        model_close(model);
        ww_device_close(device);
        return status;
    }
    model_close(e->model);
    ww_device_close(e->device);
    e->model = model;
    e->device = device;
    e->width = info->width;
    memory_free(e->made); /* of the previous model */
    e->made = NULL;
    text_copy(e->fingerprint, sizeof e->fingerprint, info->fingerprint);
    return WW_OK;
}

/* ww_model(path) and ww_model(path, device): opens a model for this connection and returns its fingerprint. */
static void model_function(sqlite3_context *context, int count, sqlite3_value **arguments)
{
    FLOAT_GUARD();
    embedder *e = sqlite3_user_data(context);
    const char *path = (const char *)sqlite3_value_text(arguments[0]);
    const char *device = count > 1 ? (const char *)sqlite3_value_text(arguments[1]) : NULL;
    ww_model_info info;
    const ww_status status =
        path ? open_model(e, path, device, &info) : ww_fail(WW_INVALID_ARGUMENT, "the path of the model is NULL");
    if (status == WW_OK)
        sqlite3_result_text(context, info.fingerprint, -1, SQLITE_TRANSIENT);
    else
        function_fail(context, status, "ww_model");
}

/* ww_embed(text) and ww_embed(text, prompt): the vector as a blob of f32. The prompt is the name of one of the model's. */
static void embed_function(sqlite3_context *context, int count, sqlite3_value **arguments)
{
    FLOAT_GUARD();
    embedder *e = sqlite3_user_data(context);
    const ww_embedding how = {.struct_size = sizeof how,
                              .prompt = count > 1 ? (const char *)sqlite3_value_text(arguments[1]) : NULL};
    if (sqlite3_value_type(arguments[0]) == SQLITE_NULL)
        return;
    const char *text = (const char *)sqlite3_value_text(arguments[0]);
    const size_t bytes = (size_t)sqlite3_value_bytes(arguments[0]);
    float *vector = NULL;
    ww_status status = e->model ? WW_OK : ww_fail(WW_INVALID_ARGUMENT, "this connection has no model; SELECT ww_model('FILE')");
    if (status == WW_OK && (!text || !(vector = sqlite3_malloc64((sqlite3_uint64)e->width * sizeof *vector))))
        status = ww_fail(WW_OUT_OF_MEMORY, "no memory for a vector");
    if (status == WW_OK && !e->made && !(e->made = memory_alloc_zeroed(HASHES_KEPT, sizeof *e->made)))
        status = memory_failed("the vectors that ww_embed() made", HASHES_KEPT * sizeof *e->made);
    if (status == WW_OK)
        status = model_embed(e->model, &text, &bytes, 1, &how, vector);
    if (status == WW_OK) {
        const uint64_t hash = hash_of(vector, (size_t)e->width * sizeof *vector);
        e->made[hash % HASHES_KEPT] = hash;
        sqlite3_result_blob64(context, vector, (sqlite3_uint64)e->width * sizeof *vector, sqlite3_free);
        return;
    }
    sqlite3_free(vector);
    function_fail(context, status, "ww_embed");
}

int models_register(sqlite3 *db, embedder **shared)
{
    static const struct {
        const char *name;
        int arguments;
        void (*function)(sqlite3_context *, int, sqlite3_value **);
    } FUNCTIONS[] = {{"ww_model", 1, model_function},
                     {"ww_model", 2, model_function},
                     {"ww_embed", 1, embed_function},
                     {"ww_embed", 2, embed_function}};
    embedder *e = memory_alloc_zeroed(1, sizeof *e);
    if (!e)
        return SQLITE_NOMEM;
    int rc = SQLITE_OK;
    e->users = 1; /* the caller */
    for (size_t i = 0; rc == SQLITE_OK && i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++) {
        e->users++; /* SQLite releases it, even if it refuses the function */
        rc = sqlite3_create_function_v2(db, FUNCTIONS[i].name, FUNCTIONS[i].arguments, SQLITE_UTF8 | SQLITE_DIRECTONLY, e,
                                        FUNCTIONS[i].function, NULL, NULL, embedder_release);
    }
    *shared = e;
    return rc;
}
