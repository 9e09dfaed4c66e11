/* Any bytes as a .npy file. */
#include "fuzz/reading.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    reading_try("fuzz.npy", bytes, size);
    return 0;
}
