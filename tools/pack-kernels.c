/* Packs a compiled kernel for the Python wheel, as hard as zstd can: alone, or against the same module for a chip with almost
 * the same code, of which then only the differences are kept. What was packed is unpacked again and compared. pack-kernels
 * PACKED OBJECT [BASE]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { WINDOW_LOG = 24 }; /* 16 MiB: both contents, whole */

typedef struct content {
    char *data;
    size_t bytes;
} content;

static void give_up(const char *path, const char *why)
{
    fprintf(stderr, "pack-kernels: %s: %s\n", path, why);
    exit(1);
}

static content read_file(const char *path)
{
    content read = {0};
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        give_up(path, "cannot be read");
    read.bytes = (size_t)ftell(file);
    rewind(file);
    read.data = malloc(read.bytes + 1);
    if (read.data == NULL || fread(read.data, 1, read.bytes, file) != read.bytes)
        give_up(path, "cannot be read");
    fclose(file);
    return read;
}

static content pack(const char *path, content object, content base)
{
    content packed = {.bytes = ZSTD_compressBound(object.bytes)};
    packed.data = malloc(packed.bytes);
    ZSTD_CCtx *context = ZSTD_createCCtx();
    if (packed.data == NULL || context == NULL)
        give_up(path, "no memory to pack it");
    (void)ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, ZSTD_maxCLevel());
    (void)ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    if (base.data != NULL) {
        (void)ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, WINDOW_LOG);
        (void)ZSTD_CCtx_refPrefix(context, base.data, base.bytes);
    }
    packed.bytes = ZSTD_compress2(context, packed.data, packed.bytes, object.data, object.bytes);
    if (ZSTD_isError(packed.bytes))
        give_up(path, ZSTD_getErrorName(packed.bytes));
    ZSTD_freeCCtx(context);
    return packed;
}

static void check(const char *path, content packed, content object, content base)
{
    char *again = malloc(object.bytes + 1);
    ZSTD_DCtx *context = ZSTD_createDCtx();
    if (again == NULL || context == NULL)
        give_up(path, "no memory to unpack it");
    if (base.data != NULL)
        (void)ZSTD_DCtx_refPrefix(context, base.data, base.bytes);
    const size_t bytes = ZSTD_decompressDCtx(context, again, object.bytes, packed.data, packed.bytes);
    if (ZSTD_isError(bytes) || bytes != object.bytes || memcmp(again, object.data, bytes) != 0)
        give_up(path, "what was packed is not what is unpacked");
    ZSTD_freeDCtx(context);
    free(again);
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 4)
        give_up("usage", "pack-kernels PACKED OBJECT [BASE]");
    const content object = read_file(argv[2]);
    const content base = argc == 4 ? read_file(argv[3]) : (content){0};
    const content packed = pack(argv[2], object, base);
    check(argv[2], packed, object, base);
    FILE *file = fopen(argv[1], "wb");
    if (file == NULL || fwrite(packed.data, 1, packed.bytes, file) != packed.bytes || fclose(file) != 0)
        give_up(argv[1], "cannot be written");
    free(object.data);
    free(base.data);
    free(packed.data);
    return 0;
}
