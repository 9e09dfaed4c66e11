#include <stdio.h>
#include <warpwave.h>

int main(void)
{
    const float vectors[3][2] = {{1, 0}, {0, 1}, {0.8f, 0.6f}}, wanted[2] = {0.9f, 0.1f};
    const char *ids[] = {"east", "north", "northeast"}, *payloads[] = {"{\"degrees\": 0}", "{\"degrees\": 90}", NULL};
    ww_collection_config config = ww_collection_config_default();
    config.dim = 2, config.metric = WW_COSINE;
    ww_rows rows = ww_rows_default();
    rows.count = 3, rows.dim = 2, rows.vectors = vectors[0], rows.ids = ids, rows.payloads = payloads;
    ww_query query = ww_query_default();
    query.query_count = 1, query.dim = 2, query.queries = wanted, query.k = 2, query.fetch = WW_FETCH_IDS | WW_FETCH_PAYLOADS;

    ww_device *device = NULL;
    ww_collection *collection = NULL;
    ww_results *results = NULL;
    int failed = ww_device_open("auto", &device) || ww_collection_create(device, &config, &collection) ||
                 ww_collection_add(collection, &rows) || ww_collection_query(collection, &query, &results);
    for (int64_t i = 0; i < ww_results_count(results, 0); i++)
        printf("%s %.4f\n", ww_results_id(results, 0, i), ww_results_scores(results, 0)[i]);
    if (failed)
        fprintf(stderr, "%s\n", ww_error_message());
    ww_results_destroy(results);
    ww_collection_destroy(collection);
    ww_device_close(device);
    return failed;
}
