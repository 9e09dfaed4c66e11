/* Does an SQL text stay within the brackets that it is put in? */
#ifndef WW_STORE_FILTER_FILTER_TEXT_H
#define WW_STORE_FILTER_FILTER_TEXT_H

#include "store/filter/filter.h"

/* Refuses a text that is empty, has a semicolon, closes a bracket that it did not open, or leaves a bracket, a quote or a
 * comment open: any other text, between "(" and "\n)", is one operand or invalid SQL. */
ww_status filter_text_check(const char *text);

/* Expands the lists of a checked text: "x IN :langs" becomes "x IN (SELECT value FROM json_each(:langs))". `expanded`
 * (sqlite3_free()) is NULL if no value is a list. Refuses a list without a name, a list that does not stand alone after IN, and
 * one that is not a JSON array of numbers, texts, true, false and null. */
ww_status filter_text_expand(const filter_where *where, char **expanded);

#endif
