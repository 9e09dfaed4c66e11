/* Progress bars, ctrl-C, what the terminal can draw, and the clock.
 *
 * A bar with the remaining time appears on stderr only if that is a terminal; logs and pipes stay quiet.
 */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"

/* From this call on, ctrl-C asks the running command to stop; a second one ends the process as usual. */
void interrupts_catch(void);
bool interrupted(void);

/* After interrupts_catch_each() every ctrl-C asks the running work to stop, and none ends the process. interrupts_forget()
 * clears a pending one. */
void interrupts_catch_each(void);
void interrupts_forget(void);

/* Waits until standard input, a terminal, has a line; false after ctrl-C, even one before the wait. */
bool interrupts_wait_for_line(void);

/* WW_OK, or WW_CANCELLED after ctrl-C. */
ww_status interrupt_check(void);

/* From this call on, no bar is shown, and terminal_notes() returns false. */
void terminal_be_quiet(void);

/* Whether to print notes on stderr: what a command did differently from what was asked, without failing. */
bool terminal_notes(void);

/* One bar for work that may take several library calls: `before` counts what earlier calls have done. */
typedef struct progress {
    const char *what;
    int64_t before, total;
    bool shown;
    bool bytes;                  /* it also shows them, and how many come in a second */
    double begun_at, painted_at; /* seconds */
    int64_t begun_with;          /* bytes that were there already; -1: not known yet */
} progress;

void progress_begin(progress *bar, const char *what, int64_t total);

/* For a fetch: if standard error is no terminal, a line every ten seconds. `total` may come later. */
void progress_begin_bytes(progress *bar, const char *what);
int progress_report(int64_t done, int64_t total, void *user); /* a ww_progress over a bar: non-zero after ctrl-C */
void progress_end(progress *bar);                             /* removes the bar */

/* Print a text that we did not write: from a file, a path, an argument or a driver. Control characters, characters that change
 * how their neighbours look, and invalid UTF-8 are printed byte by byte as \x1b (base/text.h). This also applies if `to` is not
 * a terminal, because the file may be shown on one later. If the locale is not UTF-8, everything outside ASCII is escaped. */
void print_plain(FILE *to, const char *text);
void print_plain_bytes(FILE *to, const char *text, size_t length);

/* The ending of a noun that `count` things need: "%lld row%s". */
static inline const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

/* Whether stdout is a terminal with UTF-8 and 256 colours, and its number of columns (112 for a pipe). */
bool terminal_has_pictures(void);
int terminal_columns(void);

/* Seconds on a monotonic clock. */
double seconds_now(void);

/* The median; for an even number, the mean of the middle two. Sorts in place. Needs at least one value. */
double median(double *values, int64_t count);

#endif
