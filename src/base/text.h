/* Small functions for text that several rooms use. */
#ifndef WW_BASE_TEXT_H
#define WW_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes "4.0 GiB" or "512 B" to `text`, which has at least 32 bytes, and returns it. */
char *human_bytes(char *text, int64_t bytes);

/* Copies as much of `from` as fits, always with a NUL. */
void text_copy(char *to, size_t capacity, const char *from);

/* Appends in the same way. */
void text_append(char *to, size_t capacity, const char *from);

/* Returns the number of bytes of the UTF-8 character at the start of `text`, of `length` bytes, and stores the character.
 * Returns 0 if there is none: a stray or missing byte, more bytes than needed, a surrogate, or above U+10FFFF. */
size_t utf8_read(const char *text, size_t length, uint32_t *character);

/* Returns true if all of it is UTF-8. */
bool utf8_check(const char *text, size_t length);

/* Returns how many bytes at the start of `text` can be shown as they are: up to the first character that controls a terminal,
 * changes how its neighbours look, or is not UTF-8. These are controls (C0, C1, DEL), bidirectional controls, line separators,
 * and invisible characters. If it returns 0, `*bad` is the number of bytes of that character. */
size_t text_plain_span(const char *text, size_t length, size_t *bad);

/* Copies as much of `from` as fits, always with a NUL. Characters at which text_plain_span() stops become \x1b, byte by byte,
 * so that the copy is UTF-8 and controls no terminal. Characters are never cut. */
void text_plain_copy(char *to, size_t capacity, const char *from);

/* Returns true if `path` ends in `ending`, such as ".npy", in any case, with something before it. */
bool path_ends_in(const char *path, const char *ending);

#endif
