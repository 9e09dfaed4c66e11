/* Does an SQL text stay within the brackets that it is put in? */
#ifndef WW_STORE_FILTER_TEXT_H
#define WW_STORE_FILTER_TEXT_H

#include "base/status.h"

/* Refuses a text that is empty, has a semicolon, closes a bracket that it did not open, or leaves a bracket, a quote or a
 * comment open: anything else is, between "(" and "\n)", one operand or no SQL at all. */
ww_status filter_text_check(const char *text);

#endif
