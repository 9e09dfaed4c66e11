/* The demo's digits in a store. */
#include <warpwave/store.h>

#include "warpwave/demo/digits.h"

/* An existing collection must fit these digits. */
static ww_status check(const char *path, ww_collection *found, const ww_collection_config *config)
{
    ww_collection_info info = ww_collection_info_default();
    const ww_status status = ww_collection_describe(found, &info);
    if (status != WW_OK || (info.dim == config->dim && info.metric == config->metric))
        return status;
    return ww_fail(WW_INVALID_ARGUMENT,
                   "%s: its collection '%s' has dimension %d and metric %s; give --metric %s, or another file", path,
                   config->name, info.dim, ww_metric_name(info.metric), ww_metric_name(info.metric));
}

ww_status digits_in_store(const char *path, ww_device *device, const ww_collection_config *config, ww_collection **collection)
{
    ww_store *store = NULL;
    ww_collection *found = NULL;
    ww_status status = ww_store_open(path, device, NULL, &store);
    if (status != WW_OK)
        return status;
    status = ww_store_collection(store, config->name, &found);
    if (status == WW_NOT_FOUND)
        status = ww_store_create(store, config, &found);
    else if (status == WW_OK)
        status = check(path, found, config);
    ww_store_close(store); /* the collection keeps the store open */
    if (status == WW_OK)
        *collection = found;
    else
        ww_collection_destroy(found);
    return status;
}
