/* Does an SQL text stay within the brackets that it is put in? */
#ifndef WW_STORE_FILTER_FILTER_TEXT_H
#define WW_STORE_FILTER_FILTER_TEXT_H

#include "store/filter/filter.h"

/* Refuses a text that is empty, has a semicolon, closes a bracket that it did not open, or leaves a bracket, a quote or a
 * comment open: anything else is, between "(" and "\n)", one operand or no SQL at all. */
ww_status filter_text_check(const char *text);

/* Gives in `expanded` (sqlite3_free()) a checked text with lists in the place of their parameters, "x IN :langs" as
 * "x IN (SELECT value FROM json_each(:langs))"; NULL if there is no list among the values. Refuses a list without a name or
 * anywhere else than alone behind IN, and what is no JSON array of numbers, texts, true, false and null. */
ww_status filter_text_expand(const filter_where *where, char **expanded);

#endif
