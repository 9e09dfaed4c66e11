/* Checksums of stored rows. */
#include "base/checksum.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are hashed in the byte order of files");

uint64_t checksum_bytes(const void *bytes, size_t count)
{
    return XXH3_64bits(bytes, count);
}

uint64_t checksum_text(const char *text)
{
    return text ? checksum_bytes(text, strlen(text)) : 0;
}

uint64_t checksum_entry(const checksum_parts *parts)
{
    const uint64_t sums[] = {checksum_bytes(parts->id, parts->id_bytes),
                             parts->payload ? checksum_bytes(parts->payload, parts->payload_bytes) : 0, parts->text};
    return checksum_bytes(sums, sizeof sums);
}

uint64_t checksum_row(uint64_t entry, uint64_t vector)
{
    const uint64_t sums[] = {entry, vector};
    return checksum_bytes(sums, sizeof sums);
}

uint64_t checksum_mark(int64_t handle, int64_t place)
{
    const int64_t numbers[] = {handle, place};
    return checksum_bytes(numbers, sizeof numbers);
}

bool checksum_agrees(const void *bytes, size_t count, int64_t handle, int64_t place, int64_t stored)
{
    return (checksum_bytes(bytes, count) ^ checksum_mark(handle, place)) == (uint64_t)stored;
}
