/* Any bytes as the file of a store: opened, searched, read, checked and written to. Every fault is a status. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <warpwave.h>
#include <warpwave/store.h>

#include "fuzz/storing.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static ww_device *device;

/* Everything that a caller may do with an opened collection; none of it may end the process. */
static void use(ww_store *store, ww_collection *collection)
{
    const float vector[WW_DIM_MAX] = {1.0f};
    ww_collection_info info = ww_collection_info_default();
    ww_results *results = NULL;
    if (ww_collection_describe(collection, &info) != WW_OK)
        return;
    ww_query query = ww_query_default();
    query.queries = vector, query.query_count = 1, query.dim = info.dim, query.k = 3;
    query.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS | WW_FETCH_VECTORS;
    query.where = "payload->>'$.n' >= 0 OR id > 'a'";
    (void)ww_collection_query(collection, &query, &results);
    ww_results_destroy(results);
    results = NULL;
    ww_get get = ww_get_default();
    get.count = 100, get.fetch = query.fetch;
    (void)ww_collection_get(collection, &get, &results);
    ww_results_destroy(results);
    (void)ww_store_check(store, NULL, NULL);
    const char *id = "new";
    ww_rows rows = ww_rows_default();
    rows.count = 1, rows.dim = info.dim, rows.vectors = vector, rows.ids = &id;
    (void)ww_collection_upsert(collection, &rows);
    (void)ww_collection_discard(collection, &id, 1, NULL);
    (void)ww_collection_compact(collection, NULL, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (!device) {
        storing_begin("store");
        if (ww_device_open("cpu", &device) != WW_OK)
            abort();
    }
    storing_remove();
    FILE *file = fopen(storing_path, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
        abort();
    ww_store_config config = ww_store_config_default();
    config.synchronous = WW_SYNCHRONOUS_OFF;
    config.must_exist = 1;
    config.busy_ms = 0;
    ww_store *store = NULL;
    ww_results *list = NULL;
    if (ww_store_open(storing_path, device, &config, &store) == WW_OK) {
        (void)ww_store_list(store, &list);
        for (int64_t i = 0; i < ww_results_count(list, 0); i++) {
            ww_collection *collection = NULL;
            if (ww_store_collection(store, ww_results_id(list, 0, i), &collection) == WW_OK)
                use(store, collection);
            ww_collection_destroy(collection);
        }
    }
    ww_results_destroy(list);
    ww_store_close(store);
    storing_remove();
    return 0;
}
