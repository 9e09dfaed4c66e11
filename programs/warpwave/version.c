/* `warpwave version`: the version of the library in use, which may differ from the one that the command was compiled with, and
 * the chips and compilers of its kernels. */
#include <stdio.h>

#include <warpwave/device.h>

#include "warpwave/command.h"

static exit_code version_run(const char *const *arguments, size_t count)
{
    const exit_code code = command_parse(&command_version, arguments, count, NULL);
    if (code != EXIT_CODE_OK)
        return code;
    printf("warpwave %s\n", ww_version());
    if (ww_kernel_chip_count() == 0) {
        printf("no GPU kernels\n");
        return command_end(&command_version, WW_OK);
    }
    printf("GPU kernels for");
    for (size_t i = 0; i < ww_kernel_chip_count(); i++)
        printf(" %s", ww_kernel_chip(i));
    printf(", by %s\n", KERNEL_COMPILER); /* cmake/Kernels.cmake defines it */
    return command_end(&command_version, WW_OK);
}

const command command_version = {
    .name = "version",
    .summary = "Print the version, the chips that kernels are for, and their compiler",
    .run = version_run,
};
