/* Any bytes as each of the .vecs files: they differ only in the size of an element. */
#include "fuzz/reading.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    reading_try("fuzz.fvecs", bytes, size);
    reading_try("fuzz.bvecs", bytes, size);
    reading_try("fuzz.ivecs", bytes, size);
    return 0;
}
