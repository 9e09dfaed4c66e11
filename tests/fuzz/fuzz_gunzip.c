/* Any bytes as a body that a client compressed with gzip, which are read or refused, and never more than the limit; as a text
 * that is compressed, and read again; and as Accept-Encoding. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/body/encoding.h"
#include "server/body/gzip.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static bool always(const void *user)
{
    return user == NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    enum { BYTES_MAX = 1 << 16 };
    out made = {0}, packed = {0}, again = {0};
    const int status = gunzip(bytes, size, BYTES_MAX, &made);
    if ((status != 200 && status != 400 && status != 413) || made.length > BYTES_MAX)
        abort();
    if (!gzip(bytes, size, always, NULL, &packed) || gunzip(packed.bytes, packed.length, size, &again) != 200 ||
        again.length != size || (size > 0 && memcmp(again.bytes, bytes, size) != 0))
        abort();
    char *header = malloc(size + 1);
    if (header) {
        memcpy(header, bytes, size);
        header[size] = '\0';
        const char *name = encoding_accepted(header);
        if (name && strcmp(name, "gzip") != 0 && strcmp(name, "zstd") != 0)
            abort();
    }
    free(header);
    out_free(&made);
    out_free(&packed);
    out_free(&again);
    return 0;
}
