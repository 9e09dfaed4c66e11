/* Any bytes as a .npy file, read as a matrix and as an array of any rank. */
#include "files/npy.h"
#include "fuzz/reading.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void fuzz_npy_array(const uint8_t *bytes, size_t size)
{
    ww_npy *npy = NULL;
    ww_matrix *matrix = NULL;
    ww_array_info info = ww_array_info_default();
    const ww_status status = npy_open_bytes("fuzz.npy", bytes, size, &npy);
    const ww_status as_matrix = matrix_open_bytes("fuzz.npy", bytes, size, &matrix);
    ww_matrix_close(matrix);
    if (status != WW_OK) {
        if (npy || as_matrix == WW_OK || (status != WW_CORRUPT_FILE && status != WW_UNSUPPORTED))
            abort();
        return;
    }
    if (ww_npy_describe(npy, &info) != WW_OK || info.bytes != info.elements * ww_element_bytes(info.element) ||
        (uint64_t)info.bytes != size - (uint64_t)info.offset)
        abort();
    unsigned char *data = malloc(info.bytes > 0 ? (size_t)info.bytes : 1);
    if (!data || ww_npy_read(npy, 0, data, (size_t)info.bytes) != WW_OK ||
        ww_npy_read(npy, 1, data, (size_t)info.bytes) != WW_OUT_OF_RANGE)
        abort();
    if (as_matrix == WW_OK && memcmp(data, bytes + info.offset, (size_t)info.bytes) != 0)
        abort();
    free(data);
    ww_npy_close(npy);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    reading_try("fuzz.npy", bytes, size);
    fuzz_npy_array(bytes, size);
    return 0;
}
