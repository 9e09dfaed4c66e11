/* Collections that are kept elsewhere: made here, and what their owner may use of this room. */
#include "vectors/durable/operations.h"

#include "base/float_guard.h"
#include "base/memory.h"
#include "vectors/collection.h"
#include "vectors/payloads.h"
#include "vectors/results.h"

int32_t ww_durable_version(void)
{
    return DURABLE_VERSION;
}

ww_status ww_durable_create(ww_device *device, const ww_collection_config *config, const collection_operations *operations,
                            void *owner, ww_collection **collection)
{
    FLOAT_GUARD();
    ww_collection *made = NULL;
    const ww_status status = ww_collection_create(device, config, &made);
    if (status != WW_OK)
        return status;
    made->durable = operations;
    made->owner = owner;
    *collection = made;
    return WW_OK;
}

ww_status ww_durable_check_rows(const char *function, const ww_collection_config *config)
{
    FLOAT_GUARD();
    return collection_check_rows(function, config);
}

ww_status ww_durable_device_retain(ww_device *device, ww_device **retained)
{
    FLOAT_GUARD();
    const ww_status status = device_check(device);
    if (status == WW_OK)
        *retained = device_retain(device);
    return status;
}

bool ww_durable_tell(ww_progress progress, void *user, int64_t done, int64_t total)
{
    return progress_tell(progress, user, done, total);
}

ww_status ww_durable_check_payload(const char *name, int64_t number, const char *text)
{
    FLOAT_GUARD();
    return payload_check(name, number, text);
}

bool ww_durable_is_finite(const float *vector, int32_t dim)
{
    return vector_is_finite(vector, dim);
}

ww_status ww_durable_results_create(int64_t query_count, int64_t hits, ww_results **results)
{
    FLOAT_GUARD();
    return results_create(query_count, hits, results);
}

ww_status ww_durable_results_prepare(ww_results *results, uint32_t fetch, int32_t dim, size_t text_bytes)
{
    FLOAT_GUARD();
    return results_prepare(results, fetch, dim, text_bytes);
}

ww_status ww_durable_results_put(ww_results *results, int64_t *place, const char *text, size_t length)
{
    FLOAT_GUARD();
    return results_put(results, place, text, length);
}

ww_status ww_durable_results_totals(ww_results *results)
{
    FLOAT_GUARD();
    return results_totals(results);
}
