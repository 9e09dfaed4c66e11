/* What the page shows first: the server, its models, and each collection with its figures. */
#include <string.h>

#include <warpwave/ivf.h>

#include "server/notes.h"
#include "server/ui/ui.h"

static void put_text(out *o, const char *key, const char *text)
{
    out_format(o, "\"%s\":", key);
    out_quoted(o, text, strlen(text));
}

static void put_models(out *o, const server *s)
{
    out_text(o, "\"models\":[");
    for (size_t i = 0; i < s->model_count; i++) {
        const served_model *m = &s->models[i];
        out_text(o, i > 0 ? ",{" : "{");
        put_text(o, "name", m->name);
        out_format(o, ",\"kind\":\"%s\",\"width\":%lld,\"context\":%lld}",
                   m->info.kind == WW_MODEL_ENCODER ? "encoder" : "decoder", (long long)m->info.width,
                   (long long)m->info.context);
    }
    out_text(o, "],");
}

/* Writes the model that made the vectors, and the served model that is the same. */
static void put_model(out *o, const server *s, const char *collection)
{
    ww_store_model kept = ww_store_model_default();
    if (ww_store_get_model(s->store, collection, &kept) != WW_OK) {
        out_text(o, ",\"model\":null,\"served_model\":null");
        return;
    }
    out_text(o, ",");
    put_text(o, "model", kept.name);
    for (size_t i = 0; i < s->model_count; i++)
        if (strcmp(s->models[i].info.fingerprint, kept.fingerprint) == 0) {
            out_text(o, ",");
            put_text(o, "served_model", s->models[i].name);
            return;
        }
    out_text(o, ",\"served_model\":null");
}

static void put_index(out *o, ww_collection *collection)
{
    ww_ivf_info index = ww_ivf_info_default();
    if (ww_collection_describe_ivf(collection, &index) != WW_OK) {
        out_text(o, ",\"index\":null");
        return;
    }
    out_format(o, ",\"index\":{\"lists\":%lld,\"rows_largest\":%lld,\"rows_mean\":", (long long)index.nlist,
               (long long)index.rows_largest);
    out_double(o, index.rows_mean);
    out_format(o, ",\"bytes\":%lld,\"rows_added\":%lld,\"calibrated\":%s}", (long long)index.bytes, (long long)index.rows_added,
               index.calibration_queries > 0 ? "true" : "false");
}

/* Bytes of an entry and of its named vectors. */
typedef struct entry_bytes {
    int64_t device, host;
    int64_t vectors; /* in the file */
} entry_bytes;

static int64_t type_bytes(ww_vector_type type)
{
    return type == WW_VECTOR_F32 ? 4 : type == WW_VECTOR_F16 || type == WW_VECTOR_BF16 ? 2 : 1;
}

static void add_bytes(entry_bytes *sum, const ww_collection_info *info)
{
    sum->device += info->bytes_rows + info->bytes_screen;
    sum->host += info->bytes_ids + info->bytes_payloads + info->bytes_handles + info->bytes_host_copy + info->bytes_rows_host;
    sum->vectors += info->rows_live * info->dim * type_bytes(info->type);
}

static const char *metric_name(const entry *e)
{
    return e->manhattan ? "manhattan" : ww_metric_name(e->metric);
}

static void put_figures(out *o, const entry *e, const ww_collection_info *info)
{
    entry_bytes bytes = {0};
    add_bytes(&bytes, info);
    for (size_t i = 0; i < e->part_count; i++) {
        ww_collection_info part = ww_collection_info_default();
        if (ww_collection_describe(e->parts[i].collection, &part) == WW_OK)
            add_bytes(&bytes, &part);
    }
    put_text(o, "name", e->name);
    out_format(o, ",\"rows\":%lld,\"rows_removed\":%lld,\"dim\":%d,\"metric\":\"%s\",\"type\":\"%s\"",
               (long long)info->rows_live, (long long)info->rows_removed, (int)info->dim, metric_name(e),
               ww_vector_type_name(info->type));
    out_format(o, ",\"bytes_device\":%lld,\"bytes_host\":%lld,\"bytes_vectors\":%lld,", (long long)bytes.device,
               (long long)bytes.host, (long long)bytes.vectors);
    put_text(o, "device", info->device);
}

/* Writes the named vectors, each with its own collection. */
static void put_parts(out *o, const entry *e)
{
    bool begun = false;
    out_text(o, ",\"vectors\":[");
    for (size_t i = 0; i < e->part_count; i++) {
        if (e->parts[i].sparse || e->parts[i].multi) /* the page cannot search by them */
            continue;
        out_text(o, begun ? ",{" : "{");
        begun = true;
        put_text(o, "name", e->parts[i].name);
        out_format(o, ",\"dim\":%d,\"metric\":\"%s\",\"type\":\"%s\"", (int)e->parts[i].dim, metric_name(&e->parts[i]),
                   ww_vector_type_name(e->parts[i].type));
        put_index(o, e->parts[i].collection);
        out_text(o, "}");
    }
    out_text(o, "]");
}

static void put_collection(request *r, const char *name)
{
    out *o = &r->answer;
    entry *e = entry_open(r->server, name);
    ww_collection_info info = ww_collection_info_default();
    out_text(o, "{");
    if (e && ww_collection_describe(e->collection, &info) == WW_OK) {
        put_figures(o, e, &info);
        put_index(o, e->collection);
        put_model(o, r->server, e->name);
        put_parts(o, e);
    } else { /* a damaged collection is listed with the reason */
        put_text(o, "name", name);
        out_text(o, ",");
        put_text(o, "failure", ww_error_message());
    }
    out_text(o, "}");
    if (e)
        entry_release(r->server, e);
}

static void put_device(out *o, const server *s)
{
    ww_device_info device = ww_device_info_default();
    if (ww_device_describe(s->config.device, &device) != WW_OK)
        return;
    put_text(o, "device", device.name);
    out_text(o, ",");
    put_text(o, "device_id", device.id);
    out_format(o, ",\"device_memory_bytes\":%lld,\"device_memory_free_bytes\":%lld,", (long long)device.memory_total_bytes,
               (long long)device.memory_free_bytes);
}

void run_overview(request *r)
{
    const server *s = r->server;
    out *o = &r->answer;
    ww_results *list = NULL;
    ww_store_info info = ww_store_info_default();
    ww_status status = ww_store_list(s->store, &list);
    if (status == WW_OK)
        status = ww_store_describe(s->store, &info);
    if (status != WW_OK) {
        ww_results_destroy(list);
        request_fail_status(r, status);
        return;
    }
    const int64_t bytes = info.bytes_file + info.bytes_wal;
    request_result_begin(r);
    out_format(o, "{\"version\":\"%s\",\"uptime_seconds\":%.3f,\"bytes_file\":%lld,", WW_VERSION_TEXT,
               server_seconds() - s->started_seconds, (long long)bytes);
    put_device(o, s);
    put_models(o, s);
    out_text(o, "\"collections\":[");
    bool begun = false;
    for (int64_t i = 0; i < ww_results_count(list, 0); i++) {
        const char *name = ww_results_id(list, 0, i);
        if (strcmp(name, NOTES_COLLECTION) == 0 || strchr(name, '/') || !access_sees(r, name, true))
            continue;
        out_text(o, begun ? "," : "");
        put_collection(r, name);
        begun = true;
    }
    out_text(o, "]}");
    request_result_end(r);
    ww_results_destroy(list);
}
