/* The golden blocks of tests/golden/quant: floats, and the reference's result for them. */
#ifndef TESTS_GOLDEN_H
#define TESTS_GOLDEN_H

#include "support/check.h"

enum { GOLDEN_ROWS = 8, GOLDEN_COLS = 1024 };

/* The content of tests/golden/quant/NAME, to be freed; NULL if there is no such file. A size other than `size` fails. */
void *golden_read(const char *name, size_t size);

/* Every type, ending with one that has no name. */
typedef struct golden_type {
    ww_quant_type type;
    const char *name;
} golden_type;
extern const golden_type golden_types[];

#endif
