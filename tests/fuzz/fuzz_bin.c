/* Any bytes as a file of the .fbin family, one name for each element type. */
#include "fuzz/reading.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    reading_try("fuzz.fbin", bytes, size);
    reading_try("fuzz.f16bin", bytes, size);
    reading_try("fuzz.u8bin", bytes, size);
    reading_try("fuzz.i8bin", bytes, size);
    reading_try("fuzz.ibin", bytes, size);
    return 0;
}
