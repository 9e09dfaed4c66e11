/* What the command knows of the terminal: progress bars, ctrl-C, what can be drawn, and the clock.
 *
 * A bar appears on stderr with the time that is left, and only when stderr is a terminal; a log or a pipe stays quiet.
 */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"

/* From here on ctrl-C asks the running command to stop; a second one ends the process as usual. */
void interrupts_catch(void);
bool interrupted(void);

/* From here on every ctrl-C asks what runs to stop, and none ends the process. The second forgets the one that came. */
void interrupts_catch_each(void);
void interrupts_forget(void);

/* Waits until standard input, a terminal, has a line; false after ctrl-C, also one that came before the wait. */
bool interrupts_wait_for_line(void);

/* WW_OK, or WW_CANCELLED after ctrl-C. */
ww_status interrupt_check(void);

/* From here on no bar is shown, and terminal_notes() says no. */
void terminal_be_quiet(void);

/* Whether notes on stderr are wanted: what a command did otherwise than asked, and is no failure. */
bool terminal_notes(void);

/* One bar over work that may take several calls of the library: `before` is what earlier calls have done. */
typedef struct progress {
    const char *what;
    int64_t before, total;
    bool shown;
    double begun_at, painted_at; /* seconds */
} progress;

void progress_begin(progress *bar, const char *what, int64_t total);
int progress_report(long long done, long long total, void *user); /* a ww_progress over a bar: non-zero after ctrl-C */
void progress_end(progress *bar);                                 /* takes the bar away */

/* Print a text that is not ours: from a file, a path, an argument, a driver. What a terminal would obey, what changes how its
 * neighbours look, and what is no UTF-8 is shown as \x1b, byte by byte (base/text.h); so it is where `to` is no terminal,
 * since what is kept in a file may be shown on one later. Where the locale says that the terminal has another encoding than
 * UTF-8, everything but ASCII is shown so. */
void print_plain(FILE *to, const char *text);
void print_plain_bytes(FILE *to, const char *text, size_t length);

/* Whether stdout is a terminal that shows UTF-8 and 256 colours, and how many columns it has (a pipe: 112). */
bool terminal_has_pictures(void);
int terminal_columns(void);

/* Seconds on a clock that only goes forward. */
double seconds_now(void);

/* The middle one; of an even number the mean of the middle two. Sorts in place. Takes at least one. */
double median(double *values, int64_t count);

#endif
