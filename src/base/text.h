/* Small things with text that more than one room needs. */
#ifndef WW_BASE_TEXT_H
#define WW_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Writes "4.0 GiB", "512 B" into `text`, of 32 bytes at least, and returns it. */
char *human_bytes(char *text, int64_t bytes);

/* Copies as much of `from` as fits, always with a NUL. */
void text_copy(char *to, size_t capacity, const char *from);

/* Appends in the same way. */
void text_append(char *to, size_t capacity, const char *from);

#endif
