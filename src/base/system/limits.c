/* Reads limits from the cgroup file systems.
 *
 * /proc/self/cgroup names the process's group in each hierarchy, /proc/self/mountinfo where the hierarchies are mounted. Inside
 * a container the path in the first may not be visible below the mount; then the mount itself is the group. A limit applies to
 * all levels below the one where it is set, so every level from the group up to the mount is read.
 */
#include "base/system/limits.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/integers.h"
#include "base/text.h"

enum { PATH_BYTES = 4096, LINE_BYTES = 2 * PATH_BYTES };

/* The files of one version of the memory and CPU controllers. */
typedef struct hierarchy {
    const char *memory; /* the controller's name in version 1; NULL in version 2, which has a single hierarchy */
    const char *memory_limit, *memory_usage, *inactive_file, *active_file;
    const char *cpu;
} hierarchy;

static const hierarchy version_1 = {.memory = "memory",
                                    .memory_limit = "memory.limit_in_bytes",
                                    .memory_usage = "memory.usage_in_bytes",
                                    .inactive_file = "total_inactive_file",
                                    .active_file = "total_active_file",
                                    .cpu = "cpu"};
static const hierarchy version_2 = {.memory_limit = "memory.max",
                                    .memory_usage = "memory.current",
                                    .inactive_file = "inactive_file",
                                    .active_file = "active_file"};

/* Returns true if `word` is one of the words of `list`, which are separated by `separator`. */
static bool list_has(const char *list, const char *word, char separator)
{
    const size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, separator), at = at ? at + 1 : NULL)
        if (strncmp(at, word, length) == 0 && (at[length] == separator || at[length] == '\0'))
            return true;
    return false;
}

static FILE *open_below(const char *root, const char *path)
{
    char whole[PATH_BYTES];
    const int length = snprintf(whole, sizeof whole, "%s%s", root, path);
    return length > 0 && length < (int)sizeof whole ? fopen(whole, "re") : NULL;
}

/* Finds the process's group in the hierarchy of `controller` (NULL: version 2); "/" if it has none. */
static bool group_path(const char *root, const char *controller, char *path)
{
    FILE *file = open_below(root, "/proc/self/cgroup");
    if (!file)
        return false;
    bool found = false;
    char line[LINE_BYTES];
    while (!found && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        controllers++;
        found = controller ? list_has(controllers, controller, ',') : *controllers == '\0';
        if (found)
            text_copy(path, PATH_BYTES, group);
    }
    fclose(file);
    return found;
}

/* Finds where the hierarchy is mounted, and which part of it. mountinfo: id parent device root mountpoint options... - type
 * source superblock-options. */
static bool mount_of(const char *root, const char *controller, char *mounted_root, char *mountpoint)
{
    FILE *file = open_below(root, "/proc/self/mountinfo");
    if (!file)
        return false;
    bool found = false;
    char line[LINE_BYTES];
    while (!found && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *rest = strstr(line, " - ");
        char type[32], options[PATH_BYTES];
        if (!rest || sscanf(rest, " - %31s %*s %4095s", type, options) != 2)
            continue;
        found = controller ? strcmp(type, "cgroup") == 0 && list_has(options, controller, ',') : strcmp(type, "cgroup2") == 0;
        found = found && sscanf(line, "%*s %*s %*s %4095s %4095s", mounted_root, mountpoint) == 2;
    }
    fclose(file);
    return found;
}

/* Finds the folder of the process's own group. Returns the length of the part that is the mount; 0 if there is none. */
static size_t group_folder(const char *root, const char *controller, char *folder)
{
    char group[PATH_BYTES], mounted_root[PATH_BYTES], mountpoint[PATH_BYTES];
    if (!group_path(root, controller, group) || !mount_of(root, controller, mounted_root, mountpoint))
        return 0;
    const size_t visible = strcmp(mounted_root, "/") == 0 ? 0 : strlen(mounted_root);
    const bool below_mount = strncmp(group, mounted_root, visible) == 0 && strchr("/", group[visible]);
    const char *below = below_mount ? group + visible : "";
    const size_t mount_length = strlen(root) + strlen(mountpoint);
    if (mount_length + strlen(below) >= PATH_BYTES || strstr(below, "/../") || strncmp(below, "/..", 3) == 0)
        below = "";
    if (mount_length >= PATH_BYTES)
        return 0;
    memcpy(folder, root, strlen(root));
    memcpy(folder + strlen(root), mountpoint, strlen(mountpoint));
    memcpy(folder + mount_length, below, strlen(below) + 1);
    return mount_length;
}

/* Reads the first line of a file of the group. Returns false if it cannot be read. */
static bool group_read(const char *folder, const char *name, char *text, int capacity)
{
    FILE *file = open_below(folder, name);
    if (!file)
        return false;
    const bool read = fgets(text, capacity, file) != NULL;
    fclose(file);
    return read;
}

static bool group_number(const char *folder, const char *name, int64_t *number)
{
    char path[64], text[64];
    snprintf(path, sizeof path, "/%s", name);
    char *end;
    if (!group_read(folder, path, text, sizeof text))
        return false;
    const long long value = strtoll(text, &end, 10);
    *number = value;
    return end != text && value >= 0;
}

/* Returns the cache that the kernel frees before it refuses memory or kills a process. */
static int64_t group_reclaimable(const char *folder, const hierarchy *files)
{
    FILE *file = open_below(folder, "/memory.stat");
    if (!file)
        return 0;
    int64_t bytes = 0;
    char line[128], name[64];
    long long value;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "%63s %lld", name, &value) == 2 && value > 0 &&
            (strcmp(name, files->inactive_file) == 0 || strcmp(name, files->active_file) == 0))
            bytes += value;
    fclose(file);
    return bytes;
}

static void read_memory(const char *folder, const hierarchy *files, process_limits *limits)
{
    const int64_t none = INT64_C(1) << 60; /* version 1 writes "no limit" as a number near 2^63 */
    int64_t limit, usage;
    if (!group_number(folder, files->memory_limit, &limit) || limit >= none)
        return;
    limits->memory_bytes = min_i64(limits->memory_bytes, limit);
    if (!group_number(folder, files->memory_usage, &usage))
        return;
    const int64_t held = max_i64(usage - group_reclaimable(folder, files), 0);
    limits->memory_left_bytes = min_i64(limits->memory_left_bytes, max_i64(limit - held, 0));
}

static void read_cpu(const char *folder, const hierarchy *files, process_limits *limits)
{
    char text[64];
    long long quota = 0, period = 0;
    int64_t number;
    if (!files->cpu) {
        if (!group_read(folder, "/cpu.max", text, sizeof text) || sscanf(text, "%lld %lld", &quota, &period) != 2)
            return;
    } else {
        quota = group_number(folder, "cpu.cfs_quota_us", &number) ? number : 0;
        period = group_number(folder, "cpu.cfs_period_us", &number) ? number : 0;
    }
    if (quota <= 0 || period <= 0 || quota > INT64_MAX / 1000)
        return;
    const int64_t thousandths = quota * 1000 / period;
    const double cpus = (double)thousandths / 1000.0;
    if (limits->cpus == 0 || cpus < limits->cpus)
        limits->cpus = cpus;
}

typedef void (*read_level)(const char *folder, const hierarchy *files, process_limits *limits);

static void read_levels(const char *root, const char *controller, const hierarchy *files, read_level read,
                        process_limits *limits)
{
    char folder[PATH_BYTES];
    const size_t mount_length = group_folder(root, controller, folder);
    while (mount_length > 0) {
        read(folder, files, limits);
        char *slash = strrchr(folder, '/');
        if (strlen(folder) <= mount_length || !slash)
            break;
        *slash = '\0';
        if ((size_t)(slash - folder) < mount_length)
            break;
    }
}

process_limits limits_read(const char *root)
{
    process_limits limits = {.memory_bytes = INT64_MAX, .memory_left_bytes = INT64_MAX};
    read_levels(root, version_1.memory, &version_1, read_memory, &limits);
    read_levels(root, version_1.cpu, &version_1, read_cpu, &limits);
    read_levels(root, NULL, &version_2, read_memory, &limits);
    read_levels(root, NULL, &version_2, read_cpu, &limits);
    return limits;
}
