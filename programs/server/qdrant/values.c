/* Values of a payload key. */
#include "server/qdrant/values.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/instant.h"
#include "base/json/json_value.h"
#include "base/memory.h"
#include "server/work/job.h"

bool values_key_read(request *r, const char *value, const char *what, values_key *key)
{
    if (!value || json_type_of(value) != JSON_TEXT)
        return request_fail(r, 400, "%s: the name of a key is needed", what);
    key->text = request_copy_text(r, value, what);
    const char *wrong = key->text ? json_path_read(key->text, strlen(key->text), &key->path) : NULL;
    key->read = key->text && !wrong;
    return wrong ? request_fail(r, 400, "%s: '%s': %s", what, key->text, wrong) : key->read;
}

values_path values_path_of(const values_key *key)
{
    return key && key->read ? (values_path){key->path.parts, key->path.count} : (values_path){NULL, 0};
}

void values_key_free(values_key *key)
{
    memory_free(key->text);
    *key = (values_key){0};
}

void values_each(const values_key *key, const char *payload, json_teller tell, void *user)
{
    (void)json_path_visit(key->path.parts, key->path.count, json_root(payload), &(json_visit){tell, user, true});
}

/* ---- order --------------------------------------------------------------------------------------------------------------- */

bool value_order(const char *value, double *order)
{
    char text[64];
    int64_t microseconds = 0;
    if (json_type_of(value) == JSON_NUMBER) {
        const json_number number = json_number_of(value);
        *order = number.is_integer ? (double)number.integer : number.real;
        return true;
    }
    if (json_type_of(value) != JSON_TEXT || (size_t)(json_end(value) - value) > sizeof text ||
        !instant_read(text, json_text_read(value, text), &microseconds))
        return false;
    *order = (double)microseconds;
    return true;
}

/* ---- counts -------------------------------------------------------------------------------------------------------------- */

typedef struct counting {
    value_counts *counts;
    int64_t begun; /* the first value of this payload */
} counting;

static bool same_value(const value_counted *a, const value_counted *b)
{
    return a->bytes == b->bytes && memcmp(a->json, b->json, a->bytes) == 0;
}

ww_status values_add(value_counts *counts, const char *value, int64_t count)
{
    const ww_status status =
        array_reserve(&counts->values, &counts->capacity, counts->count + 1, sizeof *counts->values, "values");
    if (status == WW_OK)
        counts->values[counts->count++] = (value_counted){value, (size_t)(json_end(value) - value), count};
    return status;
}

static bool tell_value(void *user, const char *value)
{
    counting *c = user;
    value_counts *all = c->counts;
    const json_type type = json_type_of(value);
    const value_counted made = {value, (size_t)(json_end(value) - value), 1};
    if (type == JSON_NULL || type == JSON_OBJECT || type == JSON_LIST ||
        (type == JSON_NUMBER && !json_number_of(value).is_integer))
        return true;
    for (int64_t i = c->begun; i < all->count; i++)
        if (same_value(&all->values[i], &made))
            return true;
    all->failed = values_add(all, value, 1) != WW_OK;
    return !all->failed;
}

ww_status values_count(value_counts *counts, const values_key *key, const char *payload)
{
    counting c = {counts, counts->count};
    values_each(key, payload, tell_value, &c);
    return counts->failed ? memory_failed("values", (size_t)counts->count * 2 * sizeof *counts->values) : WW_OK;
}

static int compare_texts(const void *first, const void *second)
{
    const value_counted *a = first, *b = second;
    const int bytes = memcmp(a->json, b->json, a->bytes < b->bytes ? a->bytes : b->bytes);
    return bytes != 0 ? bytes : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* Orders booleans first, then numbers, then texts. */
static int compare_values(const value_counted *a, const value_counted *b)
{
    static const int RANKS[] = {[JSON_FALSE] = 0, [JSON_TRUE] = 1, [JSON_NUMBER] = 2, [JSON_TEXT] = 3};
    const json_type first = json_type_of(a->json), second = json_type_of(b->json);
    if (first != second)
        return RANKS[first] - RANKS[second];
    if (first != JSON_NUMBER)
        return compare_texts(a, b);
    const json_number x = json_number_of(a->json), y = json_number_of(b->json);
    return json_number_compare(&x, &y);
}

static int compare_counts(const void *first, const void *second)
{
    const value_counted *a = first, *b = second;
    return a->count != b->count ? (a->count < b->count) - (a->count > b->count) : compare_values(a, b);
}

ww_status values_sort(value_counts *counts)
{
    int64_t kept = 0;
    if (counts->count < 2)
        return WW_OK;
    const ww_status status = job_sort(counts->values, (size_t)counts->count, sizeof *counts->values, compare_texts);
    if (status != WW_OK)
        return status;
    for (int64_t i = 0; i < counts->count; i++) {
        if (kept > 0 && same_value(&counts->values[kept - 1], &counts->values[i]))
            counts->values[kept - 1].count += counts->values[i].count;
        else
            counts->values[kept++] = counts->values[i];
    }
    counts->count = kept;
    return job_sort(counts->values, (size_t)kept, sizeof *counts->values, compare_counts);
}

void value_counts_free(value_counts *counts)
{
    memory_free(counts->values);
    *counts = (value_counts){0};
}
