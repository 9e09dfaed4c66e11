/* How a command reads its arguments and how it ends: the one place that knows exit codes. */
#include "warpwave/command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/status.h"
#include "base/text.h"
#include "warpwave/json.h"
#include "warpwave/terminal.h"

/* Of this run of the program; main() sets them before anything else runs. */
static bool line_is_wrong, failures_as_json;
static const char *program = "warpwave";

void command_program_set(const char *name)
{
    program = name;
}

const char *command_program(void)
{
    return program;
}

ww_status command_line_wrong(ww_status status)
{
    line_is_wrong = status != WW_OK;
    return status;
}

ww_status command_read_recall(const char *text, float *recall)
{
    char *end = NULL;
    if (!text)
        return WW_OK;
    *recall = strtof(text, &end);
    if (end != text && *end == '\0' && *recall > 0.0f && *recall <= 1.0f)
        return WW_OK;
    return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--recall '%s': it must be a number above 0 and at most 1", text));
}

void command_watch_json(const char *const *arguments, size_t count)
{
    for (size_t i = 0; i < count; i++)
        failures_as_json = failures_as_json || strcmp(arguments[i], "--json") == 0;
}

ww_status command_open_device(const char *name, ww_device **device)
{
    const ww_status status = ww_device_open(name, device);
    return status == WW_INVALID_ARGUMENT || status == WW_UNSUPPORTED ? command_line_wrong(status) : status;
}

void command_print_device(FILE *to, const ww_device_info *info)
{
    fprintf(to, "%s: ", info->id);
    print_plain(to, info->name);
    putc('\n', to);
    if (!*info->passed_over)
        return;
    fputs("  passed over: ", to);
    print_plain(to, info->passed_over);
    putc('\n', to);
}

/* Prints the failure as JSON, in place of the report that a script expects. */
static void complain_json(ww_status status, exit_code code, const char *message)
{
    json_writer w = {.to = stdout, .digits = JSON_DIGITS_F32};
    json_open(&w, NULL, '{');
    json_put_bool(&w, "error", true);
    json_put_text(&w, "status", ww_status_name(status));
    json_put_integer(&w, "exit_code", (int)code);
    json_put_text(&w, "message", message);
    json_close(&w);
    fflush(stdout);
}

static void complain(const command *self, const char *message)
{
    fprintf(stderr, "%s%s%s: ", program, self ? " " : "", self ? self->name : "");
    print_plain(stderr, message);
    putc('\n', stderr);
}

static exit_code code_for(ww_status status)
{
    switch (status) {
    case WW_OK:
        return EXIT_CODE_OK;
    case WW_OUT_OF_RANGE: /* an option has a number that does not fit the files */
        return EXIT_CODE_USAGE;
    case WW_INVALID_ARGUMENT: /* options were checked before, so the data is wrong: a NaN, an id that is too long */
    case WW_DIMENSION_MISMATCH:
    case WW_DUPLICATE_ID:
    case WW_UNSUPPORTED:
    case WW_CORRUPT_FILE:
    case WW_IO_ERROR:
        return EXIT_CODE_DATA;
    case WW_NO_DEVICE:
    case WW_DRIVER_ERROR:
    case WW_OTHER_PROCESS:
    case WW_DAMAGED:
        return EXIT_CODE_DEVICE;
    case WW_OUT_OF_MEMORY:
        return EXIT_CODE_MEMORY;
    case WW_CANCELLED:
        return EXIT_CODE_INTERRUPTED;
    case WW_NOT_FOUND:
    case WW_BUSY:
    case WW_TIMEOUT:
    case WW_INTERNAL:
        break;
    }
    return EXIT_CODE_OTHER;
}

exit_code command_end(const command *self, ww_status status)
{
    if (status == WW_OK && (fflush(stdout) != 0 || ferror(stdout)))
        status = ww_fail_errno(WW_INTERNAL, errno, "cannot write to standard output");
    if (status == WW_OK)
        return EXIT_CODE_OK;
    char message[2048]; /* the code below may fail, too */
    text_without_calls(message, sizeof message, status == WW_CANCELLED ? "interrupted" : ww_error_message());
    const exit_code code = line_is_wrong ? EXIT_CODE_USAGE : code_for(status);
    complain(self, message);
    if (failures_as_json)
        complain_json(status, code, message);
    return code;
}

ww_status command_left_out(const char *what)
{
    return ww_fail(WW_UNSUPPORTED,
                   "this build has no '%s': it was made without SQLite, PCRE2, utf8proc or libmicrohttpd, or with "
                   "-DWARPWAVE_STORE=OFF or -DWARPWAVE_MODEL=OFF; scripts/setup.sh build installs what a full build needs",
                   what);
}

exit_code command_misused(const command *self, const char *format, ...)
{
    char quoted[1024], message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(quoted, sizeof quoted, format, arguments);
    va_end(arguments);
    text_plain_copy(message, sizeof message, quoted);
    complain(self, message);
    fprintf(stderr, "Run '%s help%s%s' for usage.\n", program, self ? " " : "", self ? self->name : "");
    if (failures_as_json)
        complain_json(WW_INVALID_ARGUMENT, EXIT_CODE_USAGE, message);
    return EXIT_CODE_USAGE;
}

exit_code command_parse(const command *self, const char *const *arguments, size_t count, void *settings)
{
    if (options_parse(self->options, self->option_count, arguments, count, settings) == WW_OK)
        return EXIT_CODE_OK;
    return command_misused(self, "%s", ww_error_message());
}

const action *action_named(const command *c, const char *name)
{
    for (size_t i = 0; i < c->action_count; i++)
        if (strcmp(c->actions[i].name, name) == 0)
            return &c->actions[i];
    return NULL;
}

const action *command_action(const command *self, const char *const *arguments, size_t count)
{
    const action *found = count > 0 ? action_named(self, arguments[0]) : NULL;
    char names[256] = "";
    for (size_t i = 0; !found && i < self->action_count; i++) {
        text_append(names, sizeof names, i == 0 ? "" : i + 1 < self->action_count ? ", " : " and ");
        text_append(names, sizeof names, self->actions[i].name);
    }
    const char *verb = self->action_count == 1 ? "action is" : "actions are";
    if (!found && count == 0)
        (void)command_misused(self, "no action given; the %s %s", verb, names);
    else if (!found)
        (void)command_misused(self, "unknown action '%s'; the %s %s", arguments[0], verb, names);
    return found;
}
