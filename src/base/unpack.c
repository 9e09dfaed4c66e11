/* Unpacking: the frame says how much memory it takes, and zstd does the rest. */
#include "base/unpack.h"

#include <zstd.h>

#include "base/memory.h"

/* Nothing packs better than this many times: a frame that promises more is damaged, and is not to ask for memory. */
enum { RATIO_MOST = 1 << 16 };

static ww_status refuse(const char *what, const char *why)
{
    return ww_fail(WW_CORRUPT_FILE, "%s is damaged: %s; install the library again", what, why);
}

ww_status unpack(const char *what, const void *packed, size_t packed_bytes, char **content, size_t *bytes)
{
    const unsigned long long promised = ZSTD_getFrameContentSize(packed, packed_bytes);
    if (promised == ZSTD_CONTENTSIZE_ERROR || promised == ZSTD_CONTENTSIZE_UNKNOWN)
        return refuse(what, "it is not a zstd frame");
    if (promised / RATIO_MOST > packed_bytes)
        return refuse(what, "its header states an impossible size");
    char *made = memory_alloc((size_t)promised + 1);
    if (!made)
        return memory_failed(what, (size_t)promised + 1);
    const size_t count = ZSTD_decompress(made, (size_t)promised, packed, packed_bytes);
    if (ZSTD_isError(count) || count != promised) {
        memory_free(made);
        return refuse(what, ZSTD_isError(count) ? ZSTD_getErrorName(count) : "it is shorter than its header states");
    }
    made[count] = '\0';
    *content = made;
    *bytes = count;
    return WW_OK;
}
