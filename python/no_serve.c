/* Replaces programs/warpwave/serve in a wheel that was built without libmicrohttpd's archive: the command reports that. */
#include "base/status.h"
#include "warpwave/command.h"

static exit_code run(const char *const *arguments, size_t count)
{
    (void)arguments;
    (void)count;
    return command_end(
        &command_serve,
        ww_fail(WW_UNSUPPORTED,
                "this wheel was built without a server, since libmicrohttpd.a was missing; install the command from a "
                "package, or build it from source"));
}

const command command_serve = {
    .name = "serve",
    .summary = "Serve a store and models over HTTP (not in this build)",
    .operand = "STORE",
    .run = run,
};
