/* Checksums of stored rows: XXH3 with 64 bits, which is the same on every machine and faster than memory.
 *
 * A row's checksum covers its id, the bits of its vector, its text and its payload, and nothing else: not its handle, its place
 * or the file that it is in. So the sum of the checksums of all rows, modulo 2^64, is the same for two collections with the
 * same rows, in whatever order they were written: it is the digest of the collection.
 *
 * The checksum is made of two parts, so that a part can be verified alone and changed alone: the *entry* (id, payload, text)
 * and the vector. They are hashed together, not added, because a sum would not notice two rows that exchange their vectors.
 */
#ifndef WW_BASE_CHECKSUM_H
#define WW_BASE_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The checksum of some bytes. That of no bytes is not 0. */
uint64_t checksum_bytes(const void *bytes, size_t count);

/* The checksum of a text; 0 for NULL, so that no text differs from an empty one. */
uint64_t checksum_text(const char *text);

/* What a row's entry consists of. */
typedef struct checksum_parts {
    const char *id;
    size_t id_bytes;
    const char *payload; /* NULL: none */
    size_t payload_bytes;
    uint64_t text; /* checksum_text() of the row's text */
} checksum_parts;

uint64_t checksum_entry(const checksum_parts *parts);

/* The checksum of a row, from those of its entry and of its vector (checksum_bytes() of its elements as stored). */
uint64_t checksum_row(uint64_t entry, uint64_t vector);

/* The mark of a handle and a place. A file keeps a checksum exclusive-or this mark, so that a damaged handle or place shows. */
uint64_t checksum_mark(int64_t handle, int64_t place);

/* Is `stored` the checksum of these bytes with the mark of the handle and the place? */
bool checksum_agrees(const void *bytes, size_t count, int64_t handle, int64_t place, int64_t stored);

#endif
