/* How many faults of each kind a test has injected, for docs/evidence/faults.md (scripts/fault-report.py). */
#ifndef TESTS_FAULT_COUNTS_H
#define TESTS_FAULT_COUNTS_H

/* Counts `count` more faults of a kind; the names are those of literals. The sums are appended to the file that
 * WARPWAVE_FAULT_COUNTS names when the program ends, a line a kind. */
void fault_count(const char *kind, long count);

/* The call to fail after the n-th (from 1). A long form (support/devices.h) takes the next one. Otherwise it is each of the
 * first eight, and then ever fewer, so that an operation of a thousand calls takes 28 attempts. */
long fault_next(long n);

#endif
