/* The cost of a search over shards. */
#include "server/nodes/cost.h"

#include <string.h>

#include "base/json/json_value.h"

static int64_t integer_in(const char *object, const char *key)
{
    const char *value = object && json_type_of(object) == JSON_OBJECT ? json_given(object, key) : NULL;
    return value && json_type_of(value) == JSON_NUMBER ? json_number_of(value).integer : 0;
}

int64_t cost_proven(const char *cost)
{
    return integer_in(cost, "proven");
}

void cost_add(cost_sum *sum, const char *cost)
{
    const char *device = cost && json_type_of(cost) == JSON_OBJECT ? json_given(cost, "device") : NULL;
    if (!device)
        return;
    const int64_t queries = integer_in(cost, "queries");
    sum->rows_screened += integer_in(cost, "rows_screened");
    sum->rows_scored += integer_in(cost, "rows_scored");
    sum->lists_read += integer_in(cost, "lists_read");
    sum->bytes += integer_in(cost, "bytes");
    sum->queries = queries > sum->queries ? queries : sum->queries;
    if (!sum->some && json_type_of(device) == JSON_TEXT && (size_t)(json_end(device) - device) <= sizeof sum->device)
        sum->device[json_text_read(device, sum->device)] = '\0';
    sum->some = true;
}

void cost_put(const cost_sum *sum, int64_t proven, out *o)
{
    out_format(o, ",\"cost\":{\"rows_screened\":%lld,\"rows_scored\":%lld,\"lists_read\":%lld,\"bytes\":%lld,",
               (long long)sum->rows_screened, (long long)sum->rows_scored, (long long)sum->lists_read, (long long)sum->bytes);
    out_format(o, "\"queries\":%lld,\"exact\":%s,\"proven\":%lld,\"device\":", (long long)sum->queries,
               sum->lists_read == 0 ? "true" : "false", (long long)proven);
    out_quoted(o, sum->device, strlen(sum->device));
    out_text(o, "}");
}
