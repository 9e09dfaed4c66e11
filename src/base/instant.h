/* Instants: dates and times in the formats of ISO 8601 and RFC 3339, as microseconds since 1970. */
#ifndef WW_BASE_INSTANT_H
#define WW_BASE_INSTANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads "2024-01-31", "2024-01-31T12:30", "2024-01-31 12:30:05.25", a time may be followed by "Z", "+02:00" or " +0200"; the
 * default is UTC. Years are 0001 to 9999. Returns false for anything else, also for the 30th of February. */
bool instant_read(const char *text, size_t length, int64_t *microseconds);

#endif
