/* Replaces programs/warpwave/serve and cluster in a wheel that was built without libmicrohttpd's archive: the commands report
 * that. */
#include "base/status.h"
#include "warpwave/command.h"

static exit_code fail(const command *self)
{
    return command_end(
        self, ww_fail(WW_UNSUPPORTED,
                      "this wheel was built without a server, since libmicrohttpd.a was missing; install the command from a "
                      "package, or build it from source"));
}

static exit_code run_serve(const char *const *arguments, size_t count)
{
    (void)arguments;
    (void)count;
    return fail(&command_serve);
}

static exit_code run_cluster(const char *const *arguments, size_t count)
{
    (void)arguments;
    (void)count;
    return fail(&command_cluster);
}

static exit_code run_key(const char *const *arguments, size_t count)
{
    (void)arguments;
    (void)count;
    return fail(&command_key);
}

const command command_serve = {
    .name = "serve",
    .summary = "Serve a store and models over HTTP (not in this build)",
    .operand = "STORE",
    .run = run_serve,
};

const command command_cluster = {
    .name = "cluster",
    .summary = "List and remove the servers that follow a PostgreSQL database (not in this build)",
    .operand = "ACTION",
    .run = run_cluster,
};

const command command_key = {
    .name = "key",
    .summary = "Make, list and revoke limited keys of a server (not in this build)",
    .operand = "ACTION",
    .run = run_key,
};
