/* Small things with text that more than one room needs. */
#ifndef WW_BASE_TEXT_H
#define WW_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes "4.0 GiB", "512 B" into `text`, of 32 bytes at least, and returns it. */
char *human_bytes(char *text, int64_t bytes);

/* Copies as much of `from` as fits, always with a NUL. */
void text_copy(char *to, size_t capacity, const char *from);

/* Appends in the same way. */
void text_append(char *to, size_t capacity, const char *from);

/* Returns the bytes of the UTF-8 character that `text`, of `length` bytes, begins with, and gives the character; 0 where it
 * begins with none: a stray or missing byte, more bytes than needed, a surrogate, above U+10FFFF. */
size_t utf8_read(const char *text, size_t length, uint32_t *character);

/* Is all of it UTF-8? */
bool utf8_check(const char *text, size_t length);

/* How many bytes at the beginning of `text` may be shown as they are: up to the first that a terminal would obey, or that
 * changes how its neighbours look, or that is no UTF-8. Those are controls (C0, C1, DEL), orders for the direction of writing,
 * separators of lines, and characters that are not seen. 0 if it begins so; then `*bad` bytes belong to that character. */
size_t text_plain_span(const char *text, size_t length, size_t *bad);

/* Copies as much of `from` as fits, always with a NUL; what text_plain_span() stops at becomes \x1b, byte by byte, so that the
 * copy is UTF-8 and moves no cursor. Nothing is cut in the middle of a character. */
void text_plain_copy(char *to, size_t capacity, const char *from);

#endif
