/* Messages of the library for those who did not call it in C.
 *
 * A message begins with the C function that failed, "ww_store_open: ", which a C programmer wants to know. Users of the
 * command, of SQL and of Python called something else: these surfaces leave it out. No message names a C function anywhere
 * else; scripts/check-tree.py sees to that.
 */
#ifndef WW_BASE_MESSAGE_H
#define WW_BASE_MESSAGE_H

#include <stddef.h>

/* Copies as much of a message as fits, always with a NUL, without the names of C functions at its beginning and behind colons.
 */
void text_without_calls(char *to, size_t capacity, const char *message);

#endif
