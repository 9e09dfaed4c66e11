/* Replaces programs/warpwave/store in a build without SQLite: the command reports that. */
#include "warpwave/command.h"
#include "warpwave/demo/digits.h"
#include "warpwave/search/search.h"

static ww_status say_missing(void)
{
    return ww_fail(WW_UNSUPPORTED, "this command was built without stores, since SQLite 3.38 or later was missing; install "
                                   "libsqlite3-dev and build it again");
}

ww_status search_in_store(const search_settings *settings)
{
    (void)settings;
    return say_missing();
}

ww_status digits_in_store(const char *path, ww_device *device, const ww_collection_config *config, ww_collection **collection)
{
    (void)path, (void)device, (void)config, (void)collection;
    return say_missing();
}

static exit_code run(const char *const *arguments, size_t count)
{
    (void)arguments;
    (void)count;
    return command_end(&command_store, say_missing());
}

const command command_store = {
    .name = "store",
    .summary = "Keep vectors, ids and payloads in a SQLite file (not in this build)",
    .operand = "ACTION STORE...",
    .run = run,
};
