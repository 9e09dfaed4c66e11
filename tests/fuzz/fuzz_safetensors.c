/* Any bytes as a .safetensors file: refused with a message that names the file, or opened. Then every tensor is inside the
 * file, can be found by name, and can be read and viewed.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "files/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void fuzz_safetensors_tensor(ww_safetensors *file, int64_t index, const uint8_t *bytes, size_t size)
{
    ww_array_info info = ww_array_info_default();
    int64_t found = -1;
    const void *view = NULL;
    if (ww_safetensors_at(file, index, &info) != WW_OK || ww_safetensors_find(file, info.name, &found) != WW_OK ||
        found != index)
        abort();
    if (info.offset < 8 || info.bytes < 0 || (uint64_t)info.offset > size ||
        (uint64_t)info.bytes > size - (uint64_t)info.offset)
        abort();
    if (info.element != WW_ELEMENT_UNKNOWN && info.bytes != info.elements * ww_element_bytes(info.element))
        abort();
    char *data = malloc(info.bytes > 0 ? (size_t)info.bytes : 1);
    if (!data || ww_safetensors_read(file, index, 0, data, (size_t)info.bytes) != WW_OK ||
        memcmp(data, bytes + info.offset, (size_t)info.bytes) != 0 ||
        ww_safetensors_read(file, index, 1, data, (size_t)info.bytes) != WW_OUT_OF_RANGE)
        abort();
    free(data);
    const uintptr_t each = info.element != WW_ELEMENT_UNKNOWN ? (uintptr_t)ww_element_bytes(info.element) : 1;
    if (ww_safetensors_map(file, index, &view) != WW_OK || (uintptr_t)view % each != 0 ||
        memcmp(view, bytes + info.offset, (size_t)info.bytes) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    ww_safetensors *file = NULL;
    const ww_status status = safetensors_open_bytes("fuzz.safetensors", bytes, size, &file);
    if (status != WW_OK) {
        if (file || (status != WW_CORRUPT_FILE && status != WW_UNSUPPORTED) ||
            strncmp(ww_error_message(), "fuzz.safetensors: offset ", 25) != 0)
            abort();
        return 0;
    }
    int64_t total = 0;
    for (int64_t i = 0; i < ww_safetensors_count(file); i++) {
        ww_array_info info = ww_array_info_default();
        fuzz_safetensors_tensor(file, i, bytes, size);
        if (ww_safetensors_at(file, i, &info) != WW_OK)
            abort();
        total += info.bytes;
    }
    if (total > (int64_t)size)
        abort();
    for (int64_t i = 0; i < ww_safetensors_metadata_count(file); i++) {
        const char *key, *value, *again;
        if (ww_safetensors_metadata_at(file, i, &key, &value) != WW_OK || ww_safetensors_metadata(file, key, &again) != WW_OK ||
            strcmp(value, again) != 0)
            abort();
    }
    ww_safetensors_close(file);
    return 0;
}
