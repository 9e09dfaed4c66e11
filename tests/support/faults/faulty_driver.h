/* A driver table that fails on demand: the n-th call of any function, or of one, returns a status chosen by the test.
 *
 * It wraps another table. A call that acquires something fails before it acts. A call that releases something acts and then
 * fails, as drivers do when they report a late error. A status that means a lost device is permanent: every later call returns
 * it, but releasing still works.
 */
#ifndef TESTS_FAULTY_DRIVER_H
#define TESTS_FAULTY_DRIVER_H

#include "gpu/driver/driver.h"

extern const gpu_driver faulty_driver;

/* From now on calls go to `table`, and the n-th call (from 1) of `function`, or of any function if that is NULL, fails with
 * `number`. n = 0: none fails. Resets all counts and the loss of the device. */
void faulty_arm(const gpu_driver *table, int64_t n, int number, const char *function);

/* The name of the function that was made to fail since, or NULL. */
const char *faulty_victim(void);

/* The functions that can fail, by number; NULL past the end. */
const char *faulty_function(int32_t index);

#endif
