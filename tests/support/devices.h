/* Runs a group of tests on several devices in turn.
 *
 * WARPWAVE_TEST_DEVICES names them ("cpu,cuda:0"); the default is the CPU and every emulated device of the build. A named
 * device that cannot be opened is a failure, never a skip.
 */
#ifndef TESTS_DEVICES_H
#define TESTS_DEVICES_H

#include <stdbool.h>

#include "support/check.h"

/* Runs the tests once per device, with the open ww_device as *state, and returns the number of failures. */
int run_on_every_device(const char *group, const struct CMUnitTest *tests, size_t count);

#define RUN_ON_EVERY_DEVICE(group, tests) run_on_every_device(group, tests, sizeof(tests) / sizeof *(tests))

/* Under the address sanitizer emulated kernels take several times as long, and a test takes fewer of its cases. */
#ifdef __SANITIZE_ADDRESS__
enum { TEST_INSTRUMENTED = 1 };
#else
enum { TEST_INSTRUMENTED = 0 };
#endif

/* A test has up to three forms (tests/long.cmake): the long one tries everything, the one of .ci/run a good part of it, and the
 * short one a sample, so that `make test` stays within ten minutes. */
bool test_is_long(void);
bool test_is_short(void);

/* Returns true if it is emulated; then a test uses smaller sizes. */
bool device_is_slow(ww_device *device);
/* Returns true if it is a real GPU. */
bool device_is_quick_gpu(ww_device *device);

#endif
