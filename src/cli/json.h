/* JSON on stdout. Numbers have nine digits, enough for every f32 to read back as the same f32. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <jansson.h>

#include <warpwave/vectors.h>

#include "base/status.h"

#define JSON_STYLE (JSON_REAL_PRECISION(9) | JSON_ENSURE_ASCII)

/* Prints a value on a line of its own and gives it back; a NULL is the value that could not be made for want of memory. The
 * second has 17 digits, for numbers that are f64. */
ww_status json_print(json_t *value);
ww_status json_print_f64(json_t *value);

/* What a search did, as an object; an infinite certificate is null. NULL for want of memory. */
json_t *json_statistics(ww_screen screen, const ww_search_stats *stats);

#endif
