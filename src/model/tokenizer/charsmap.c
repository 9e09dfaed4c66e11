/* The precompiled map of characters. Every offset in it is checked when it is used, because the file is not trusted. */
#include "model/tokenizer/charsmap.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"

enum { REPLACEMENT_BYTES_MAX = 1024 }; /* Unicode's longest has 33; more would make texts grow without bounds */

static uint32_t read_u32(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static ww_status check_texts(const charsmap *map, const char *name)
{
    size_t length = 0;
    if (map->text_bytes == 0 || map->texts[map->text_bytes - 1] != '\0')
        return ww_fail(WW_CORRUPT_FILE, "%s: the replacements of the map of characters do not end with a NUL", name);
    for (size_t i = 0; i < map->text_bytes; i++) {
        length = map->texts[i] ? length + 1 : 0;
        if (length > REPLACEMENT_BYTES_MAX)
            return ww_fail(WW_CORRUPT_FILE, "%s: the map of characters has a replacement of more than %d bytes", name,
                           REPLACEMENT_BYTES_MAX);
    }
    return WW_OK;
}

ww_status charsmap_make(charsmap *map, const unsigned char *bytes, size_t count, const char *name)
{
    *map = (charsmap){0};
    if (count == 0)
        return WW_OK;
    const size_t tree = count >= 4 ? read_u32(bytes) : SIZE_MAX;
    if (tree == 0 || tree % 4 != 0 || tree > count - 4)
        return ww_fail(WW_CORRUPT_FILE, "%s: tokenizer.ggml.precompiled_charsmap has %zu bytes and is not a map of characters",
                       name, count);
    map->unit_count = tree / 4;
    map->text_bytes = count - 4 - tree;
    map->units = memory_alloc(tree);
    map->texts = memory_alloc(map->text_bytes + 1);
    if (!map->units || !map->texts)
        return memory_failed("map of characters", count);
    for (size_t i = 0; i < map->unit_count; i++)
        map->units[i] = read_u32(bytes + 4 + 4 * i);
    memcpy(map->texts, bytes + 4 + tree, map->text_bytes);
    return check_texts(map, name);
}

void charsmap_free(charsmap *map)
{
    memory_free(map->units);
    memory_free(map->texts);
    *map = (charsmap){0};
}

/* A unit has a label (bits 0 to 7), a flag for a leaf (8), and the offset of its children (10 to 30, times 256 if bit 9 is
 * set); a leaf has bit 31 and a value. */
static uint32_t offset_of(uint32_t unit)
{
    return (unit >> 10) << ((unit & (UINT32_C(1) << 9)) >> 6);
}

size_t charsmap_find(const charsmap *map, const char *text, size_t bytes, const char **replacement)
{
    size_t longest = 0;
    uint32_t at = map->unit_count > 0 ? offset_of(map->units[0]) : 0;
    for (size_t i = 0; i < bytes && map->unit_count > 0; i++) {
        const unsigned char byte = (unsigned char)text[i];
        at ^= byte;
        if (at >= map->unit_count || (map->units[at] & UINT32_C(0x800000FF)) != byte)
            break;
        const uint32_t unit = map->units[at];
        at ^= offset_of(unit);
        if (!(unit >> 8 & 1) || at >= map->unit_count)
            continue;
        const uint32_t value = map->units[at] & UINT32_C(0x7FFFFFFF);
        if (value < map->text_bytes) {
            longest = i + 1;
            *replacement = map->texts + value;
        }
    }
    return longest;
}
