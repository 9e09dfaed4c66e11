/* Progress bars, ctrl-C, what the terminal can draw, and the clock. */
#include "warpwave/terminal.h"

#include <errno.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

enum { BAR_COLUMNS = 40, PIPE_COLUMNS = 112 };

static const double paint_every_seconds = 0.1, line_every_seconds = 10.0;

/* Before this much time has passed, an estimate of the rest would be a guess. */
static const double estimate_after_seconds = 1.0;

/* A process has one terminal, and signals come to the process. */
static bool quiet;
static volatile sig_atomic_t interrupt_came;

static void on_interrupt(int number)
{
    (void)number;
    interrupt_came = 1;
}

void interrupts_catch(void)
{
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

void interrupts_catch_each(void)
{
    struct sigaction action = {.sa_handler = on_interrupt};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

void interrupts_forget(void)
{
    interrupt_came = 0;
}

bool interrupts_wait_for_line(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    pthread_sigmask(SIG_BLOCK, &blocked,
                    &before); /* blocked except during ppoll(), so that none is lost between a check and the wait */
    while (!interrupted() && ppoll(&input, 1, NULL, &before) < 0 && errno == EINTR)
        continue;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return !interrupted();
}

bool interrupted(void)
{
    return interrupt_came != 0;
}

/* UTF-8, or plain ASCII: the C locale reports that, but every current terminal can do more. */
static bool speaks_utf8(void)
{
    const char *codes = nl_langinfo(CODESET);
    return strcmp(codes, "UTF-8") == 0 || strcmp(codes, "ANSI_X3.4-1968") == 0;
}

void print_plain_bytes(FILE *to, const char *text, size_t length)
{
    const bool utf8 = speaks_utf8();
    for (size_t at = 0; at < length;) {
        size_t bad, plain = text_plain_span(text + at, length - at, &bad);
        for (size_t i = 0; i < plain + bad; i++) {
            const unsigned char c = (unsigned char)text[at + i];
            if (i < plain && (utf8 || c < 0x80))
                putc(c, to);
            else
                fprintf(to, "\\x%02x", c);
        }
        at += plain + bad;
    }
}

void print_plain(FILE *to, const char *text)
{
    print_plain_bytes(to, text, strlen(text));
}

ww_status interrupt_check(void)
{
    return interrupted() ? ww_fail(WW_CANCELLED, "interrupted") : WW_OK;
}

void terminal_be_quiet(void)
{
    quiet = true;
}

bool terminal_notes(void)
{
    return !quiet;
}

void progress_begin(progress *bar, const char *what, int64_t total)
{
    *bar = (progress){.what = what, .total = total, .shown = !quiet && isatty(STDERR_FILENO) != 0};
    bar->begun_at = bar->shown ? seconds_now() : 0.0;
}

static void seconds_left(double left, char text[24])
{
    const int seconds = (int)(left + 0.5), hours = seconds / 3600;
    if (hours > 0)
        snprintf(text, 24, "  %d:%02d:%02d left", hours, seconds / 60 % 60, seconds % 60);
    else
        snprintf(text, 24, "  %d:%02d left", seconds / 60, seconds % 60);
}

void progress_begin_bytes(progress *bar, const char *what)
{
    *bar = (progress){.what = what, .shown = !quiet, .bytes = true, .begun_at = seconds_now(), .begun_with = -1};
    if (!isatty(STDERR_FILENO))
        bar->painted_at = bar->begun_at; /* the first line comes after the time of one */
}

/* "fetching: 12.0 MiB of 86.7 MiB, 3.1 MiB/s, 0:24 left" */
static void paint_bytes(progress *bar, int64_t done, double now)
{
    char so_far[32], all[32], speed[32], left[24] = "";
    const bool terminal = isatty(STDERR_FILENO) != 0;
    bar->begun_with = bar->begun_with < 0 ? done : bar->begun_with;
    const double passed = now - bar->begun_at, came = (double)(done - bar->begun_with);
    const double each = passed > 0.0 ? came / passed : 0.0;
    if (now - bar->painted_at < (terminal ? paint_every_seconds : line_every_seconds))
        return;
    fprintf(stderr, "%s%s: %s", terminal ? "\r" : "", bar->what, human_bytes(so_far, done));
    if (bar->total > 0)
        fprintf(stderr, " of %s", human_bytes(all, bar->total));
    if (bar->total > done && each > 0.0 && passed >= estimate_after_seconds && (double)(bar->total - done) / each < 359999.0)
        seconds_left((double)(bar->total - done) / each, left);
    fprintf(stderr, ", %s/s%s%s", human_bytes(speed, (int64_t)each), left, terminal ? "\033[K" : "\n");
    fflush(stderr);
    bar->painted_at = now;
}

/* "  1:05 left", or "" while there is no estimate. */
static const char *time_left(const progress *bar, double part, double now, char text[24])
{
    const double passed = now - bar->begun_at, left = part > 0.0 ? passed * (1.0 - part) / part : 0.0;
    text[0] = '\0';
    if (passed < estimate_after_seconds || part <= 0.0 || left > 359999.0)
        return text;
    seconds_left(left, text);
    return text;
}

int progress_report(int64_t done, int64_t total, void *user)
{
    progress *bar = user;
    (void)total; /* progress of this call only; the bar covers all calls */
    const double now = bar->shown ? seconds_now() : 0.0;
    if (bar->shown && bar->bytes)
        paint_bytes(bar, done, now);
    else if (bar->shown && bar->total > 0 && (bar->painted_at == 0.0 || now - bar->painted_at >= paint_every_seconds)) {
        double part = (double)(bar->before + done) / (double)bar->total;
        part = part > 1.0 ? 1.0 : part;
        const int filled = (int)(part * BAR_COLUMNS);
        char left[24];
        fprintf(stderr, "\r%s [%.*s%*s] %3d%%%s\033[K", bar->what, filled, "########################################",
                BAR_COLUMNS - filled, "", (int)(part * 100.0), time_left(bar, part, now, left));
        fflush(stderr);
        bar->painted_at = now;
    }
    return interrupted();
}

void progress_end(progress *bar)
{
    if (bar->shown && bar->painted_at != 0.0 && isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    bar->painted_at = 0.0;
}

bool terminal_has_pictures(void)
{
    const char *kind = getenv("TERM");
    return isatty(STDOUT_FILENO) && !getenv("NO_COLOR") && kind && strcmp(kind, "dumb") != 0 &&
           strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

int terminal_columns(void)
{
    struct winsize size;
    if (!isatty(STDOUT_FILENO))
        return PIPE_COLUMNS;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

double seconds_now(void)
{
    return clock_seconds();
}

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

double median(double *values, int64_t count)
{
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return 0.5 * (values[(count - 1) / 2] + values[count / 2]);
}
