/* The colours of a map's points by a payload key: one byte per point and a legend. If there are few values, each gets a number;
 * many numeric values become a scale. */
#include <math.h>
#include <string.h>

#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/qdrant/values.h"
#include "server/ui/map.h"
#include "server/ui/ui.h"

/* Frequent values have the numbers 0 to COLOURS_MAX - 1; all others share COLOUR_OTHER, and points without a value get
 * COLOUR_NONE. */
enum { COLOURS_MAX = 20, COLOUR_OTHER = 254, COLOUR_NONE = 255, SCALE_STEPS = 250 };

typedef struct colour_plan {
    values_key key;
    int64_t generation;
} colour_plan;

static void plan_free(void *plan)
{
    colour_plan *p = plan;
    values_key_free(&p->key);
    memory_free(p);
}

bool prepare_colours(request *r)
{
    const char *body = request_body(r);
    colour_plan *p = body ? request_plan_create(r, sizeof *p, plan_free) : NULL;
    return p && request_read_integer(r, body, "generation", 0, &p->generation) &&
           values_key_read(r, json_given(body, "key"), "key", &p->key);
}

typedef struct colouring {
    const values_key *key;
    const ww_results *rows;
    int64_t count;
    value_counts counts;     /* texts, integers and booleans, the most frequent first */
    int64_t numbers, others; /* numeric values of the key, and other values */
    double min, max;         /* of the numbers */
    uint8_t *colours;
    int64_t left, none; /* points with an infrequent value, and without one */
} colouring;

static bool tell_kind(void *user, const char *value)
{
    colouring *c = user;
    const json_type type = json_type_of(value);
    if (type == JSON_NUMBER) {
        const json_number number = json_number_of(value);
        const double real = number.is_integer ? (double)number.integer : number.real;
        c->numbers++;
        c->min = fmin(c->min, real);
        c->max = fmax(c->max, real);
    } else if (type != JSON_NULL && type != JSON_OBJECT && type != JSON_LIST) {
        c->others++;
    }
    return true;
}

static ww_status count_values(colouring *c)
{
    ww_status status = WW_OK;
    c->min = INFINITY;
    c->max = -INFINITY;
    for (int64_t i = 0; status == WW_OK && i < c->count; i++) {
        const char *payload = ww_results_payload(c->rows, 0, i);
        if (!payload)
            continue;
        values_each(c->key, payload, tell_kind, c);
        status = values_count(&c->counts, c->key, payload);
    }
    return status == WW_OK ? values_sort(&c->counts) : status;
}

/* Where the values of one point are looked up. */
typedef struct lookup {
    const colouring *c;
    int colour;
} lookup;

static bool tell_colour(void *user, const char *value)
{
    lookup *l = user;
    const value_counts *counts = &l->c->counts;
    const size_t bytes = (size_t)(json_end(value) - value);
    const json_type type = json_type_of(value);
    if (type == JSON_NULL || type == JSON_OBJECT || type == JSON_LIST)
        return true;
    l->colour = COLOUR_OTHER;
    for (int64_t i = 0; i < counts->count && i < COLOURS_MAX; i++)
        if (counts->values[i].bytes == bytes && memcmp(counts->values[i].json, value, bytes) == 0) {
            l->colour = (int)i;
            return false;
        }
    return true;
}

static bool tell_scale(void *user, const char *value)
{
    lookup *l = user;
    if (json_type_of(value) != JSON_NUMBER)
        return true;
    const json_number number = json_number_of(value);
    const double real = number.is_integer ? (double)number.integer : number.real, width = l->c->max - l->c->min;
    l->colour = width > 0 ? (int)(SCALE_STEPS * ((real - l->c->min) / width)) : 0;
    return false;
}

static void colour_points(colouring *c, bool scale)
{
    for (int64_t i = 0; i < c->count; i++) {
        const char *payload = ww_results_payload(c->rows, 0, i);
        lookup l = {c, COLOUR_NONE};
        if (payload)
            values_each(c->key, payload, scale ? tell_scale : tell_colour, &l);
        c->colours[i] = (uint8_t)l.colour;
        c->none += l.colour == COLOUR_NONE;
        c->left += l.colour == COLOUR_OTHER;
    }
}

/* The legend, which the bytes of the points follow. */
static void put_legend(out *o, const colouring *c, bool scale)
{
    out_format(o, "{\"kind\":\"%s\",\"missing\":%lld,\"other\":%lld,\"min\":", scale ? "scale" : "values", (long long)c->none,
               (long long)c->left);
    out_double(o, c->min);
    out_text(o, ",\"max\":");
    out_double(o, c->max);
    out_text(o, ",\"values\":[");
    for (int64_t i = 0; !scale && i < c->counts.count && i < COLOURS_MAX; i++) {
        out_text(o, i > 0 ? ",{\"value\":" : "{\"value\":");
        out_bytes(o, c->counts.values[i].json, c->counts.values[i].bytes);
        out_format(o, ",\"count\":%lld}", (long long)c->counts.values[i].count);
    }
    out_text(o, "]}");
}

static ww_status colour_map(request *r, colouring *c)
{
    ww_status status = count_values(c);
    if (status != WW_OK)
        return status;
    const bool scale = c->numbers > 0 && c->others == 0 && (c->counts.count == 0 || c->counts.count > COLOURS_MAX);
    out legend = {0};
    colour_points(c, scale);
    put_legend(&legend, c, scale);
    const uint32_t bytes = (uint32_t)legend.length;
    r->status = 200;
    r->content_type = "application/octet-stream";
    out_bytes(&r->answer, (const char *)&bytes, sizeof bytes);
    out_bytes(&r->answer, legend.bytes, legend.length);
    out_bytes(&r->answer, (const char *)c->colours, (size_t)c->count);
    r->answer.failed = r->answer.failed || legend.failed;
    out_free(&legend);
    return WW_OK;
}

void run_colours(request *r)
{
    const colour_plan *p = r->plan;
    const map_job *job = map_of_request(r);
    ww_results *rows = NULL;
    if (!job)
        return;
    if (p->generation != (int64_t)job->generation) {
        request_fail(r, 409, "generation: is %lld; the map has %u", (long long)p->generation, job->generation);
        return;
    }
    ww_get get = ww_get_default();
    get.count = ww_map_count(job->map);
    get.handles = ww_map_handles(job->map);
    get.fetch = WW_FETCH_PAYLOADS;
    colouring c = {.key = &p->key, .count = get.count, .colours = memory_alloc((size_t)get.count + 1)};
    ww_status status =
        c.colours ? ww_collection_get(job->collection, &get, &rows) : memory_failed("the colours of a map", (size_t)get.count);
    c.rows = rows;
    if (status == WW_OK)
        status = colour_map(r, &c);
    if (status != WW_OK)
        request_fail_status(r, status);
    value_counts_free(&c.counts);
    memory_free(c.colours);
    ww_results_destroy(rows);
}
