/* Any bytes as a CSV file of payloads: each one that comes out is JSON with a value for every field. */
#include <stdlib.h>

#include "base/json/json.h"
#include "base/json/json_value.h"
#include "warpwave/text/csv_payloads.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const int64_t RECORDS_MAX = 64; /* of an input */
    csv_payloads csv = {.lines = {.name = "fuzz.csv", .file = fmemopen((void *)(uintptr_t)bytes, size, "r")}};
    bool end = false;
    json_fault fault;
    if (!csv.lines.file) /* no bytes */
        return 0;
    ww_status status = csv_payloads_begin(&csv);
    for (int64_t i = 0; status == WW_OK && !end && i < RECORDS_MAX; i++) {
        status = csv_payloads_next(&csv, &end);
        if (status != WW_OK || end)
            continue;
        if (!json_check(csv.payload.text, csv.payload.bytes, &fault))
            abort();
        int64_t fields = 0;
        for (const char *at = json_first(json_root(csv.payload.text)); at; at = json_next(at))
            fields++;
        if (fields != csv.fields)
            abort();
    }
    csv_payloads_close(&csv);
    return 0;
}
