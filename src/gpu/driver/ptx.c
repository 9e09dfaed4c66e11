/* PTX states the version of its language in its first lines; each version came with one release of CUDA. */
#include "gpu/driver/ptx.h"

#include <stdio.h>
#include <string.h>

/* Which CUDA first took a version of PTX: the table of the PTX manual's release notes. */
static const struct {
    int major, minor;
    const char *cuda;
} releases[] = {
    {6, 3, "10.0"}, {6, 4, "10.1"}, {6, 5, "10.2"}, {7, 0, "11.0"}, {7, 1, "11.1"}, {7, 2, "11.2"},
    {7, 3, "11.3"}, {7, 4, "11.4"}, {7, 5, "11.5"}, {7, 6, "11.6"}, {7, 7, "11.7"}, {7, 8, "11.8"},
    {8, 0, "12.0"}, {8, 1, "12.1"}, {8, 2, "12.2"}, {8, 3, "12.3"}, {8, 4, "12.4"}, {8, 5, "12.5"},
    {8, 6, "12.7"}, {8, 7, "12.8"}, {8, 8, "12.9"}, {9, 0, "13.0"},
};

void ptx_explain_old_driver(const char *ptx, int have, char *text, size_t capacity)
{
    int major = 0;
    int minor = 0;
    const char *version = strstr(ptx, ".version");
    if (version == NULL || sscanf(version, ".version %d.%d", &major, &minor) != 2)
        return;
    const char *needed = "a later version";
    for (size_t i = 0; i < sizeof releases / sizeof releases[0]; i++)
        if (releases[i].major == major && releases[i].minor == minor)
            needed = releases[i].cuda;
    snprintf(text, capacity,
             "this NVIDIA driver is for CUDA %d.%d, and too old for PTX %d.%d: install a driver for CUDA %s or newer",
             have / 1000, have % 1000 / 10, major, minor, needed);
}
