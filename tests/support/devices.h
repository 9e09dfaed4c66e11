/* One suite, many devices: a group of tests is run on each of them in turn.
 *
 * WARPWAVE_TEST_DEVICES names them ("cpu,cuda:0"); without it they are the CPU and every emulated device of the build. A device
 * that is named and cannot be opened is a failure, never a skip.
 */
#ifndef TESTS_DEVICES_H
#define TESTS_DEVICES_H

#include <stdbool.h>

#include "support/check.h"

/* Runs the tests once a device, with the open ww_device as *state, and returns the number of failures. */
int run_on_every_device(const char *group, const struct CMUnitTest *tests, size_t count);

#define RUN_ON_EVERY_DEVICE(group, tests) run_on_every_device(group, tests, sizeof(tests) / sizeof *(tests))

/* Is it emulated? Then a test takes smaller sizes. */
bool device_is_slow(ww_device *device);

#endif
