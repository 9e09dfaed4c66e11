/* JSON on stdout. */
#include "cli/json.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

static ww_status print_in_style(json_t *value, size_t style)
{
    if (!value)
        return ww_fail(WW_OUT_OF_MEMORY, "the JSON report could not be made: out of memory");
    const int failed = json_dumpf(value, stdout, style | JSON_INDENT(2));
    json_decref(value);
    putchar('\n');
    return failed ? ww_fail(WW_IO_ERROR, "cannot write the JSON report") : WW_OK;
}

ww_status json_print(json_t *value)
{
    return print_in_style(value, JSON_STYLE);
}

ww_status json_print_f64(json_t *value)
{
    return print_in_style(value, JSON_REAL_PRECISION(17) | JSON_ENSURE_ASCII);
}

json_t *json_statistics(ww_screen screen, const ww_search_stats *stats)
{
    json_t *certificate = isfinite(stats->certificate) ? json_real((double)stats->certificate) : json_null();
    const bool proven = stats->certificate >= 0.0f; /* and not NaN */
    return json_pack("{s:s, s:b, s:I, s:I, s:I, s:I, s:o, s:I}", "screen", ww_screen_name(screen), "exact", proven,
                     "rows_screened", (json_int_t)stats->rows_screened, "rows_kept", (json_int_t)stats->rows_kept,
                     "rows_scored", (json_int_t)stats->rows_scored, "fallback_queries", (json_int_t)stats->fallback_queries,
                     "certificate", certificate, "repeated_queries", (json_int_t)stats->repeated_queries);
}
