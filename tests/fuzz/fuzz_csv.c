/* Any bytes as a CSV file, without a column of ids and with one. */
#include "files/csv.h"
#include "fuzz/reading.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* An accepted file has an id for every row, and numbers. */
static void fuzz_csv_ids(const uint8_t *bytes, size_t size, const char *column)
{
    file_source source;
    csv_table table = {0};
    source_over(&source, "fuzz.csv", bytes, size);
    if (csv_read(&source, column, &table) != WW_OK) {
        if (table.values || table.ids || strncmp(ww_error_message(), "fuzz.csv", 8) != 0)
            abort();
        return;
    }
    if (table.rows < 1 || table.dim < 1 || !table.ids)
        abort();
    for (int64_t i = 0; i < table.rows; i++)
        if (strlen(table.ids + table.id_at[i]) == 0)
            abort();
    csv_free(&table);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    reading_try("fuzz.csv", bytes, size);
    fuzz_csv_ids(bytes, size, "1");
    fuzz_csv_ids(bytes, size, "3");
    fuzz_csv_ids(bytes, size, "y");
    return 0;
}
