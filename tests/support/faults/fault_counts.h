/* How many faults of each kind a test has injected, for scripts/fault-report.py. */
#ifndef TESTS_FAULT_COUNTS_H
#define TESTS_FAULT_COUNTS_H

/* Counts `count` more faults of a kind; names must be literals. When the program ends, the sums are appended to the file that
 * WARPWAVE_FAULT_COUNTS names, one line per kind. */
void fault_count(const char *kind, long count);

/* Returns the call to fail after the n-th (from 1). In a long form (support/devices.h) that is the next one. In that of .ci/run
 * calls are skipped in increasing steps, so that an operation of a thousand calls takes 28 attempts; in the short form, 10:
 * each is twice as far as the last, alternately odd and even. */
long fault_next(long n);
/* The next one, also in the form of .ci/run; in the short form as fault_next(). */
long fault_after(long n);

#endif
