/* Ids of points as Qdrant's clients write them: unsigned numbers of 64 bits, and UUIDs. Here both are texts: a number in
 * decimal, a UUID in its usual form with lower-case letters. */
#ifndef WW_SERVER_QDRANT_POINT_ID_H
#define WW_SERVER_QDRANT_POINT_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { POINT_ID_BYTES = 40 };

/* Reads a number, or a text that is a UUID: with or without hyphens, in braces, or after "urn:uuid:". Writes it with a NUL to
 * `id`, which has POINT_ID_BYTES. Returns false for anything else. */
bool point_id_read(const char *json, char *id);

/* Returns true if the text is a number as point_id_read() writes it, and stores its value in `number`. */
bool point_id_is_number(const char *id, size_t length, uint64_t *number);

/* Orders ids: numbers first, by value; then the others, by their bytes. */
int point_id_compare(const char *a, const char *b);

#endif
