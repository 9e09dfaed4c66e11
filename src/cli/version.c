/* `warpwave version`: the version of the library that runs, which may not be the one it was compiled with. */
#include <stdio.h>
#include <warpwave/status.h>

#include "cli/command.h"

static exit_code version_run(const char *const *arguments, size_t count)
{
    const exit_code code = command_parse(&command_version, arguments, count, NULL);
    if (code != EXIT_CODE_OK)
        return code;
    printf("warpwave %s\n", ww_version());
    return command_end(&command_version, WW_OK);
}

const command command_version = {
    .name = "version",
    .summary = "Print the version",
    .run = version_run,
};
