/* A collection lives in memory. This writes its vectors to a .npy file and its ids to a text file, one a line, and makes the
 * same collection again from the two. Payloads would go the same way as ids.
 *   cc save.c -o save $(pkg-config --cflags --libs warpwave) && ./save
 */
#include <stdio.h>
#include <string.h>
#include <warpwave.h>

enum { ROWS = 3, DIM = 2 };

static ww_status make(ww_device *device, const float *vectors, const char *const *ids, ww_collection **collection)
{
    ww_collection_config config = ww_collection_config_default();
    config.dim = DIM, config.metric = WW_L2;
    ww_rows rows = ww_rows_default();
    rows.count = ROWS, rows.dim = DIM, rows.vectors = vectors, rows.ids = ids;
    const ww_status status = ww_collection_create(device, &config, collection);
    return status == WW_OK ? ww_collection_add(*collection, &rows) : status;
}

static ww_status save(ww_collection *collection, const char *vectors_path, FILE *ids)
{
    ww_get all = ww_get_default(); /* without a list: a snapshot of all rows, even if other threads write */
    all.count = WW_ROWS_MAX, all.fetch = WW_FETCH_IDS | WW_FETCH_VECTORS;
    ww_results *saved = NULL;
    ww_status status = ww_collection_get(collection, &all, &saved);
    for (int64_t i = 0; status == WW_OK && i < ww_results_count(saved, 0); i++)
        if (fprintf(ids, "%s\n", ww_results_id(saved, 0, i)) < 0)
            status = WW_IO_ERROR;
    if (status == WW_OK) /* the vectors are contiguous, bit for bit as they were added */
        status = ww_matrix_write_f32(vectors_path, ww_results_vector(saved, 0, 0), ww_results_count(saved, 0), DIM);
    ww_results_destroy(saved);
    return status;
}

static ww_status load(ww_device *device, const char *vectors_path, FILE *ids, ww_collection **collection)
{
    float vectors[ROWS][DIM];
    char text[ROWS][WW_ID_BYTES_MAX + 2];
    const char *list[ROWS];
    ww_matrix *matrix = NULL;
    ww_status status = ww_matrix_open(vectors_path, &matrix);
    if (status == WW_OK)
        status = ww_matrix_read_f32(matrix, 0, ROWS, vectors[0]);
    ww_matrix_close(matrix);
    for (int i = 0; i < ROWS && status == WW_OK; i++) {
        status = fgets(text[i], sizeof text[i], ids) ? WW_OK : WW_IO_ERROR;
        text[i][strcspn(text[i], "\n")] = '\0';
        list[i] = text[i];
    }
    return status == WW_OK ? make(device, vectors[0], list, collection) : status;
}

int main(void)
{
    const float vectors[ROWS * DIM] = {1, 0, 0, 1, 0.8f, 0.6f};
    const char *const ids[ROWS] = {"east", "north", "northeast"};
    ww_device *device = NULL;
    ww_collection *first = NULL, *second = NULL;
    FILE *file = fopen("saved.ids", "w+");
    ww_status status = file ? ww_device_open("cpu", &device) : WW_IO_ERROR;
    if (status == WW_OK)
        status = make(device, vectors, ids, &first);
    if (status == WW_OK)
        status = save(first, "saved.npy", file);
    if (status == WW_OK)
        status = fseek(file, 0, SEEK_SET) == 0 ? load(device, "saved.npy", file, &second) : WW_IO_ERROR;
    if (status == WW_OK)
        printf("%lld rows saved, %lld loaded\n", (long long)ww_collection_count(first), (long long)ww_collection_count(second));
    else
        fprintf(stderr, "%s: %s\n", ww_status_name(status), ww_error_message());
    if (file)
        fclose(file);
    ww_collection_destroy(second);
    ww_collection_destroy(first);
    ww_device_close(device);
    return status != WW_OK;
}
