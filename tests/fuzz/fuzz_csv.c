/* Any bytes as a CSV file. */
#include "fuzz/reading.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    reading_try("fuzz.csv", bytes, size);
    return 0;
}
