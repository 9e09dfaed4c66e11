/* Searches only some of the rows, using a mask with one bit per row. Here the even ones of eight rows are admitted.
 *   cc filter.c -o filter $(pkg-config --cflags --libs warpwave) && ./filter
 */
#include <stdio.h>
#include <warpwave.h>

int main(void)
{
    float vectors[8][1];
    for (int i = 0; i < 8; i++)
        vectors[i][0] = (float)i;
    const float wanted[1] = {5};
    uint64_t mask[1] = {0}; /* (rows + 63) / 64 words */
    for (int row = 0; row < 8; row += 2)
        mask[row / 64] |= UINT64_C(1) << (row % 64);

    ww_collection_config config = ww_collection_config_default();
    config.dim = 1, config.metric = WW_L2;
    ww_rows rows = ww_rows_default(); /* without ids: in a new collection a row's id is its number */
    rows.count = 8, rows.dim = 1, rows.vectors = vectors[0];
    ww_query query = ww_query_default();
    query.query_count = 1, query.dim = 1, query.queries = wanted, query.k = 3;
    query.mask = mask, query.mask_rows = 8;

    ww_device *device = NULL;
    ww_collection *collection = NULL;
    ww_results *results = NULL;
    int failed = ww_device_open("auto", &device) || ww_collection_create(device, &config, &collection) ||
                 ww_collection_add(collection, &rows) || ww_collection_query(collection, &query, &results);
    for (int64_t i = 0; i < ww_results_count(results, 0); i++)
        printf("row %lld at distance %g\n", (long long)ww_results_rows(results, 0)[i], ww_results_scores(results, 0)[i]);
    if (failed)
        fprintf(stderr, "%s\n", ww_error_message());
    ww_results_destroy(results);
    ww_collection_destroy(collection);
    ww_device_close(device);
    return failed;
}
