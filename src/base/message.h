/* Messages of the library for users of other languages than C.
 *
 * A message starts with the C function that failed, "ww_store_open: ", for C programmers. Users of the command, of SQL and of
 * Python called something else, so these interfaces remove it. No message has the name of a C function anywhere else;
 * scripts/check-tree.py checks that.
 */
#ifndef WW_BASE_MESSAGE_H
#define WW_BASE_MESSAGE_H

#include <stddef.h>

/* Copies as much of a message as fits, always with a NUL, without names of C functions at its start or after colons. */
void text_without_calls(char *to, size_t capacity, const char *message);

#endif
