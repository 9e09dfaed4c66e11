#include <stdio.h>
#include <warpwave.h>

int main(void)
{
    const float vectors[3][2] = {{1, 0}, {0, 1}, {0.8f, 0.6f}}, query[2] = {0.9f, 0.1f};
    const char *ids[] = {"east", "north", "northeast"}, *payloads[] = {"{\"degrees\": 0}", "{\"degrees\": 90}", NULL};
    ww_collection_config config = ww_collection_config_default();
    config.dim = 2, config.metric = WW_COSINE;
    ww_rows rows = ww_rows_default();
    rows.count = 3, rows.dim = 2, rows.vectors = vectors[0], rows.ids = ids, rows.payloads = payloads;
    ww_search search = ww_search_default();
    search.query_count = 1, search.dim = 2, search.queries = query, search.k = 2;

    ww_device *device = NULL;
    ww_collection *collection = NULL;
    int64_t found[2];
    float scores[2];
    char id[WW_ID_BYTES_MAX + 1];
    int failed = ww_device_open("auto", &device) || ww_collection_create(device, &config, &collection) ||
                 ww_collection_add(collection, &rows) || ww_collection_search(collection, &search, found, scores);
    for (int i = 0; i < 2 && !failed; i++)
        failed = ww_collection_id(collection, found[i], id, sizeof id, NULL) || printf("%s %.4f\n", id, scores[i]) < 0;
    if (failed)
        fprintf(stderr, "%s\n", ww_error_message());
    ww_collection_destroy(collection);
    ww_device_close(device);
    return failed;
}
