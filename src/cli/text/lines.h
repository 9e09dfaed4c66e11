/* Files of texts: lines one after the other, and lists of texts, one a line or one a JSON object. */
#ifndef CLI_TEXT_LINES_H
#define CLI_TEXT_LINES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"

/* Lines of a file of texts, one after the other, without their ends. */
typedef struct line_reader {
    const char *name; /* for messages */
    FILE *file;
    char *text; /* the line */
    size_t length, room;
    int64_t number; /* of the line, from 1 */
} line_reader;

/* Opens the file, "-" is standard input. Close in any case. */
ww_status lines_open(line_reader *lines, const char *path);
/* Reads the next line; `end` says that there is none. */
ww_status lines_next(line_reader *lines, bool *end);
void lines_close(line_reader *lines);

/* The texts of a whole file. */
typedef struct text_file {
    char *bytes; /* all texts, each with a NUL */
    size_t used, room;
    size_t *begins; /* of each text in the bytes */
    size_t count, capacity;
    const char **texts; /* they; made at the end */
} text_file;

/* Reads the texts of a file: one a line, or, if its name ends in .jsonl or a field is named, the field (or "text") of an object
 * a line. Free it in any case. */
ww_status text_file_read(text_file *file, const char *path, const char *field);
void text_file_free(text_file *file);

/* All of standard input as one text with a NUL, without the end of its last line, in memory that memory_free() frees. Refuses
 * a NUL in it. */
ww_status standard_input_read(char **text);

/* All of a file as one text with a NUL, in memory that memory_free() frees. Refuses a NUL in it. */
ww_status whole_file_read(const char *path, char **text);

#endif
