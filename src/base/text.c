/* Small things with text. */
#include "base/text.h"

#include <stdio.h>
#include <string.h>

char *human_bytes(char *text, int64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double amount = (double)bytes;
    size_t unit = 0;
    while (amount >= 1024.0 && unit + 1 < sizeof units / sizeof *units) {
        amount /= 1024.0;
        unit++;
    }
    snprintf(text, 32, unit == 0 ? "%.0f %s" : "%.1f %s", amount, units[unit]);
    return text;
}

void text_copy(char *to, size_t capacity, const char *from)
{
    if (capacity == 0)
        return;
    const size_t length = strnlen(from, capacity - 1);
    memcpy(to, from, length);
    to[length] = '\0';
}

void text_append(char *to, size_t capacity, const char *from)
{
    const size_t used = strnlen(to, capacity);
    text_copy(to + used, capacity - used, from);
}
