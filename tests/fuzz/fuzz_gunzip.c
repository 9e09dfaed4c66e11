/* Any bytes as a body that a client compressed with gzip: read or refused, and never more than the limit. */
#include <stdint.h>
#include <stdlib.h>

#include "server/body/gunzip.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    enum { BYTES_MAX = 1 << 16 };
    out made = {0};
    const int status = gunzip(bytes, size, BYTES_MAX, &made);
    if ((status != 200 && status != 400 && status != 413) || made.length > BYTES_MAX)
        abort();
    out_free(&made);
    return 0;
}
