/* Payloads from a CSV file: the first record names the fields, and every other record is a payload, an object in JSON.
 *
 * A value is a number, true or false if JSON would read it as one, and null if it is empty; everything else is a text. Records
 * are those of RFC 4180: a quoted value may contain commas, line breaks and doubled quotes.
 */
#ifndef CLI_TEXT_CSV_PAYLOADS_H
#define CLI_TEXT_CSV_PAYLOADS_H

#include "base/strings/text_buffer.h"
#include "warpwave/text/lines.h"

typedef struct csv_payloads {
    line_reader lines;
    text_buffer names;   /* the record that names the fields */
    text_buffer record;  /* the current one */
    text_buffer payload; /* of it, with a NUL */
    int64_t fields;
} csv_payloads;

/* Opens the file and reads the names. Refuses a file without names, and a name that is empty or there twice. Close it in any
 * case. */
ww_status csv_payloads_open(csv_payloads *csv, const char *path);
/* The same with `lines` open and everything else zeroed. */
ww_status csv_payloads_begin(csv_payloads *csv);
/* Makes the next payload; sets `end` if there is none. Refuses a record with another number of values than there are names. */
ww_status csv_payloads_next(csv_payloads *csv, bool *end);
void csv_payloads_close(csv_payloads *csv);

#endif
