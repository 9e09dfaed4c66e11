/* Replaces programs/warpwave/serve in a build without libmicrohttpd, stores or models: the command reports that. */
#include "base/status.h"
#include "warpwave/command.h"

static exit_code run(const char *const *arguments, size_t count)
{
    (void)arguments;
    (void)count;
    return command_end(&command_serve,
                       ww_fail(WW_UNSUPPORTED,
                               "this command was built without a server, since libmicrohttpd, SQLite, PCRE2 or "
                               "utf8proc was missing; install libmicrohttpd-dev, libsqlite3-dev, libpcre2-dev and "
                               "libutf8proc-dev and build it again"));
}

const command command_serve = {
    .name = "serve",
    .summary = "Serve a store and models over HTTP (not in this build)",
    .operand = "STORE",
    .run = run,
};
