/* Messages of the library for users of other languages than C. */
#include "base/message.h"

#include <string.h>

/* Returns the length of "ww_name: " at the start of a text; 0 if it starts differently. */
static size_t call_length(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    const size_t name = strncmp(text, "ww_", 3) == 0 ? strspn(text, letters) : 0;
    return name > 3 && text[name] == ':' && text[name + 1] == ' ' ? name + 2 : 0;
}

void text_without_calls(char *to, size_t capacity, const char *message)
{
    size_t used = 0;
    for (const char *at = message; capacity > 0; at++) {
        if (at == message || (at - message >= 2 && at[-2] == ':' && at[-1] == ' '))
            for (size_t length = call_length(at); length > 0; length = call_length(at))
                at += length;
        if (*at == '\0' || used + 1 == capacity)
            break;
        to[used++] = *at;
    }
    if (capacity > 0)
        to[used] = '\0';
}
