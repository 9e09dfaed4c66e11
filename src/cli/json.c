/* JSON on stdout. */
#include "cli/json.h"

#include <stdio.h>

ww_status json_print(json_t *value)
{
    if (!value)
        return ww_fail(WW_OUT_OF_MEMORY, "the JSON report could not be made: out of memory");
    const int failed = json_dumpf(value, stdout, JSON_STYLE | JSON_INDENT(2));
    json_decref(value);
    putchar('\n');
    return failed ? ww_fail(WW_IO_ERROR, "the JSON report could not be written") : WW_OK;
}
