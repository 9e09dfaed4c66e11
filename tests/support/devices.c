/* Chooses the devices of a suite and runs it on each. */
#include "support/devices.h"

#include <stdlib.h>
#include <string.h>

#include "device/backend.h"

enum { DEVICES_MAX = 32 };

static char names[DEVICES_MAX][32];
static const char *current;

static int add_name(int count, const char *name)
{
    if (count < DEVICES_MAX)
        snprintf(names[count++], sizeof names[0], "%s", name);
    return count;
}

static int list_devices(void)
{
    int count = 0;
    const char *asked = getenv("WARPWAVE_TEST_DEVICES");
    if (asked && *asked) {
        char *list = strdup(asked);
        char *rest = NULL;
        for (char *name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
            count = add_name(count, name);
        free(list);
        return count;
    }
    ww_device_info infos[DEVICES_MAX];
    size_t found = 0;
    for (int i = 0; i < DEVICES_MAX; i++)
        infos[i] = ww_device_info_default();
    if (ww_devices(infos, DEVICES_MAX, &found) != WW_OK)
        return 0;
    for (size_t i = 0; i < found && i < DEVICES_MAX; i++)
        if (strcmp(infos[i].backend, "cpu") == 0 || strcmp(infos[i].backend, "emulator") == 0)
            count = add_name(count, infos[i].id);
    return count;
}

static int open_current(void **state)
{
    ww_device *device = NULL;
    if (ww_device_open(current, &device) != WW_OK) {
        printf("cannot open %s: %s\n", current, ww_error_message());
        return -1;
    }
    device->tuning.group_even = true; /* so that every member of a group has rows */
    *state = device;
    return 0;
}

static int close_current(void **state)
{
    ww_device_close(*state);
    return 0;
}

int run_on_every_device(const char *group, const struct CMUnitTest *tests, size_t count)
{
    const int devices = list_devices();
    int failures = devices == 0;
    for (int d = 0; d < devices; d++) {
        char name[160];
        snprintf(name, sizeof name, "%.64s on %.31s", group, names[d]);
        current = names[d];
        printf("%s\n", name);
        fflush(stdout);
        failures += _cmocka_run_group_tests(name, tests, count, open_current, close_current);
    }
    return failures;
}

bool test_is_long(void)
{
    return getenv("WARPWAVE_TEST_LONG") != NULL;
}

bool test_is_short(void)
{
    return !test_is_long() && getenv("WARPWAVE_TEST_CHECK") == NULL;
}

bool device_is_slow(ww_device *device)
{
    ww_device_info info = ww_device_info_default();
    CHECK_OK(ww_device_describe(device, &info));
    return strstr(info.id, "emulator") != NULL || strstr(info.name, "stand-in") != NULL;
}

bool device_is_quick_gpu(ww_device *device)
{
    ww_device_info info = ww_device_info_default();
    CHECK_OK(ww_device_describe(device, &info));
    return strcmp(info.backend, "cpu") != 0 && !device_is_slow(device);
}
