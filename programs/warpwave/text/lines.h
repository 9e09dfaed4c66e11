/* Text files: line by line, and lists of texts, one per line or one per JSON object. */
#ifndef CLI_TEXT_LINES_H
#define CLI_TEXT_LINES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"

/* Reads the lines of a text file without their line ends. */
typedef struct line_reader {
    const char *name; /* for messages */
    FILE *file;
    char *text; /* the line */
    size_t length, room;
    int64_t number; /* number of the line, from 1 */
} line_reader;

/* Opens the file; "-" is standard input. Close it in any case. */
ww_status lines_open(line_reader *lines, const char *path);
/* Reads the next line; sets `end` if there is none. */
ww_status lines_next(line_reader *lines, bool *end);
void lines_close(line_reader *lines);

/* All texts of a file. */
typedef struct text_file {
    char *bytes; /* all texts, each ending with a NUL */
    size_t used, room;
    size_t *begins; /* start of each text in the bytes */
    size_t count, capacity;
    const char **texts; /* pointers to the texts; set at the end */
} text_file;

/* Reads the texts of a file. If its name ends in .jsonl or a field is given, each line is an object, and the text is that field
 * ("text" by default). Otherwise each line is a text. Free the list in any case. */
ww_status text_file_read(text_file *file, const char *path, const char *field);
void text_file_free(text_file *file);

/* Reads standard input as one text, without its last line end; the caller frees it with memory_free(). Refuses a NUL in it. */
ww_status standard_input_read(char **text);

/* Reads a file as one text; the caller frees it with memory_free(). Refuses a NUL in it. */
ww_status whole_file_read(const char *path, char **text);

#endif
