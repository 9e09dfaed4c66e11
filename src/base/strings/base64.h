/* Base64 (RFC 4648). */
#ifndef WW_BASE_BASE64_H
#define WW_BASE_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* Decodes text without padding and appends a NUL. `last` are the alphabet's last two letters: "+/", or "-_" in URLs. Returns
 * the number of bytes, or -1 if the text is something else, also if it has bits left over. `to` has room for three bytes for
 * each four letters, and one more. */
int64_t base64_decode(const char *text, size_t length, const char last[2], char *to);

#endif
