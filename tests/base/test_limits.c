/* Limits of containers, read from recorded file trees, and memory that is promised before it is used. */
#include "support/check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/system/large_blocks.h"
#include "base/system/limits.h"
#include "support/scratch.h"

enum { MIB = 1 << 20 };

static char root[512];

/* Writes a file of the tree, and the folders above it. */
static void put(const char *path, const char *text)
{
    char whole[1024];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(whole, 0700);
        *slash = '/';
    }
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void put_bytes(const char *path, int64_t bytes)
{
    char text[32];
    snprintf(text, sizeof text, "%lld\n", (long long)bytes);
    put(path, text);
}

static int begin(void **state)
{
    (void)state;
    static int number;
    char name[32];
    snprintf(name, sizeof name, "limits-%d", number++);
    snprintf(root, sizeof root, "%s", scratch_path(name));
    return mkdir(root, 0700);
}

static const char v2_mount[] = "33 25 0:30 / /sys rw - sysfs sysfs rw\n"
                               "34 33 0:31 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n";

static void without_cgroups_nothing_is_limited(void **state)
{
    (void)state;
    const process_limits limits = limits_read(root);
    assert_true(limits.memory_bytes == INT64_MAX && limits.memory_left_bytes == INT64_MAX);
    assert_true(limits.cpus == 0);
}

static void version_2_counts_every_ancestor_and_reclaimable_cache(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/slice/service\n");
    put("/proc/self/mountinfo", v2_mount);
    put("/sys/fs/cgroup/slice/service/memory.max", "max\n");
    put_bytes("/sys/fs/cgroup/slice/service/memory.current", 20 * MIB);
    put("/sys/fs/cgroup/slice/service/cpu.max", "max 100000\n");
    put_bytes("/sys/fs/cgroup/slice/memory.max", 150 * MIB);
    put_bytes("/sys/fs/cgroup/slice/memory.current", 100 * MIB);
    put("/sys/fs/cgroup/slice/memory.stat", "anon 60000000\ninactive_file 10485760\nactive_file 20971520\nslab 1\n");
    put("/sys/fs/cgroup/slice/cpu.max", "150000 100000\n");
    const process_limits limits = limits_read(root);
    assert_int_equal(limits.memory_bytes, 150 * MIB);
    assert_int_equal(limits.memory_left_bytes, (150 - 100 + 30) * MIB);
    assert_true(limits.cpus == 1.5);
}

static void version_1_has_a_hierarchy_for_each_controller(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "5:devices:/\n4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n0::/\n");
    put("/proc/self/mountinfo", "34 33 0:31 /docker/abc /sys/fs/cgroup/memory ro shared:4 - cgroup cgroup rw,memory\n"
                                "35 33 0:32 / /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n");
    put_bytes("/sys/fs/cgroup/memory/memory.limit_in_bytes", 64 * MIB);
    put_bytes("/sys/fs/cgroup/memory/memory.usage_in_bytes", 70 * MIB);
    put("/sys/fs/cgroup/memory/memory.stat", "inactive_file 5\ntotal_inactive_file 12582912\n");
    put("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "50000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    const process_limits limits = limits_read(root);
    assert_int_equal(limits.memory_bytes, 64 * MIB);
    assert_int_equal(limits.memory_left_bytes, (64 - 70 + 12) * MIB);
    assert_true(limits.cpus == 0.5);
    put_bytes("/sys/fs/cgroup/memory/memory.limit_in_bytes", INT64_C(9223372036854771712));
    assert_true(limits_read(root).memory_bytes == INT64_MAX);
}

static void a_group_outside_of_the_mount_is_read_at_the_mount(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/../../other\n");
    put("/proc/self/mountinfo", v2_mount);
    put_bytes("/sys/fs/cgroup/memory.max", 32 * MIB);
    put_bytes("/sys/fs/cgroup/memory.current", 40 * MIB);
    const process_limits limits = limits_read(root);
    assert_int_equal(limits.memory_bytes, 32 * MIB);
    assert_int_equal(limits.memory_left_bytes, 0); /* over its limit already: nothing, not less */
}

static void files_that_make_no_sense_limit_nothing(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "nonsense\n\n0:\n0::/a\n");
    put("/proc/self/mountinfo",
        "- - -\n34 33 0:31 / /sys/fs/cgroup rw - cgroup2\n34 33 0:31 / /sys/fs/cgroup - cgroup2 c rw\n");
    put("/sys/fs/cgroup/a/memory.max", "plenty\n");
    put("/sys/fs/cgroup/a/cpu.max", "0 0\n");
    const process_limits limits = limits_read(root);
    assert_true(limits.memory_bytes == INT64_MAX && limits.memory_left_bytes == INT64_MAX && limits.cpus == 0);
}

/* A container of 200 MiB, 10 of which are used. */
static void container_of_200(void)
{
    put("/proc/self/cgroup", "0::/\n");
    put("/proc/self/mountinfo", v2_mount);
    put_bytes("/sys/fs/cgroup/memory.max", 200 * MIB);
    put_bytes("/sys/fs/cgroup/memory.current", 10 * MIB);
    large_blocks_limits_root(root);
}

static int leave_container(void **state)
{
    (void)state;
    large_blocks_limits_root(NULL);
    return 0;
}

static void promised_unused_memory_counts(void **state)
{
    (void)state;
    container_of_200();
    void *first = memory_alloc(120 * MIB);
    assert_non_null(first);
    assert_int_equal(large_blocks_available() / MIB, 70);
    assert_null(memory_alloc(120 * MIB));
    assert_null(memory_alloc_zeroed(120, MIB));
    assert_null(memory_alloc_aligned(120 * MIB));
    void *second = memory_alloc(60 * MIB);
    assert_non_null(second);
    memory_free(second);
    memory_free(first);
    assert_int_equal(large_blocks_available() / MIB, 190);
    void *again = memory_alloc(120 * MIB);
    assert_non_null(again);
    memory_free(again);
}

static void pages_that_were_used_count_once(void **state)
{
    (void)state;
    container_of_200();
    char *first = memory_alloc(120 * MIB);
    assert_non_null(first);
    memset(first, 1, 120 * MIB);
    put_bytes("/sys/fs/cgroup/memory.current", 130 * MIB);
    assert_int_equal(large_blocks_available() / MIB, 70);
    void *second = memory_alloc(60 * MIB); /* fits if used memory is counted once, but not if it is counted twice */
    assert_non_null(second);
    assert_null(memory_alloc(60 * MIB));
    memory_free(second);
    memory_free(first);
}

static void a_block_that_cannot_grow_stays_and_is_still_counted(void **state)
{
    (void)state;
    container_of_200();
    char *block = memory_alloc(100 * MIB);
    assert_non_null(block);
    assert_null(memory_resize(block, 300 * MIB));
    assert_int_equal(large_blocks_available() / MIB, 90);
    char *smaller = memory_resize(block, 20 * MIB);
    assert_non_null(smaller);
    const int64_t left = large_blocks_available() / MIB;
    assert_true(left == 170 || left == 190); /* a sanitizer's realloc copies, and written memory is no longer promised */
    memory_free(smaller);
}

static void a_reserve_that_cannot_be_filled_is_refused(void **state)
{
    (void)state;
    container_of_200();
    ww_device *device;
    CHECK_OK(ww_device_open("cpu", &device));
    ww_collection_config config = ww_collection_config_default();
    config.dim = 128;
    ww_collection *first, *second;
    CHECK_OK(ww_collection_create(device, &config, &first));
    CHECK_OK(ww_collection_create(device, &config, &second));
    CHECK_OK(ww_collection_reserve(first, 180000)); /* 123 MiB of rows, codes and planes */
    CHECK_FAILS(WW_OUT_OF_MEMORY, ww_collection_reserve(second, 180000));
    CHECK_OK(ww_collection_reserve(second, 80000));
    ww_collection_destroy(second);
    ww_collection_destroy(first);
    ww_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(without_cgroups_nothing_is_limited, begin),
        cmocka_unit_test_setup(version_2_counts_every_ancestor_and_reclaimable_cache, begin),
        cmocka_unit_test_setup(version_1_has_a_hierarchy_for_each_controller, begin),
        cmocka_unit_test_setup(a_group_outside_of_the_mount_is_read_at_the_mount, begin),
        cmocka_unit_test_setup(files_that_make_no_sense_limit_nothing, begin),
        cmocka_unit_test_setup_teardown(promised_unused_memory_counts, begin, leave_container),
        cmocka_unit_test_setup_teardown(pages_that_were_used_count_once, begin, leave_container),
        cmocka_unit_test_setup_teardown(a_block_that_cannot_grow_stays_and_is_still_counted, begin, leave_container),
        cmocka_unit_test_setup_teardown(a_reserve_that_cannot_be_filled_is_refused, begin, leave_container),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
