/* Unpacks frames: a frame says how much memory it takes, and zstd does the rest. */
#include "base/unpack.h"

#include <zstd.h>

#include "base/memory.h"

/* No data is packed better than this. A frame that claims more is damaged, and must not make us allocate that much. */
enum { RATIO_MAX = 1 << 16 };

static ww_status refuse(const char *what, const char *why)
{
    return ww_fail(WW_CORRUPT_FILE, "%s is damaged: %s; install the library again", what, why);
}

ww_status unpack_difference(const char *what, const packed_difference *difference, char **content, size_t *bytes)
{
    const unsigned long long promised = ZSTD_getFrameContentSize(difference->packed, difference->packed_bytes);
    if (promised == ZSTD_CONTENTSIZE_ERROR || promised == ZSTD_CONTENTSIZE_UNKNOWN)
        return refuse(what, "it is not a zstd frame");
    if (promised / RATIO_MAX > difference->packed_bytes + difference->base_bytes)
        return refuse(what, "its header states an impossible size");
    char *made = memory_alloc((size_t)promised + 1);
    if (!made)
        return memory_failed(what, (size_t)promised + 1);
    ZSTD_DCtx *context = ZSTD_createDCtx();
    size_t count = 0;
    ww_status status = context ? WW_OK : ww_fail(WW_OUT_OF_MEMORY, "%s: no memory to unpack it", what);
    if (status == WW_OK) {
        (void)ZSTD_DCtx_refPrefix(context, difference->base, difference->base_bytes);
        count = ZSTD_decompressDCtx(context, made, (size_t)promised, difference->packed, difference->packed_bytes);
        if (ZSTD_isError(count) || count != promised)
            status = refuse(what, ZSTD_isError(count) ? ZSTD_getErrorName(count) : "it is shorter than its header states");
    }
    ZSTD_freeDCtx(context);
    if (status != WW_OK) {
        memory_free(made);
        return status;
    }
    made[count] = '\0';
    *content = made;
    *bytes = count;
    return WW_OK;
}

ww_status unpack(const char *what, const void *packed, size_t packed_bytes, char **content, size_t *bytes)
{
    const packed_difference whole = {.packed = packed, .packed_bytes = packed_bytes};
    return unpack_difference(what, &whole, content, bytes);
}
