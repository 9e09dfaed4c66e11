/* The test's side of the stand-in for ROCm: configured before the library first looks for a runtime, and controlled and queried
 * through the functions that it exports.
 */
#ifndef TESTS_SUPPORT_STANDIN_H
#define TESTS_SUPPORT_STANDIN_H

#include "standin/standin.h"
#include "support/check.h"

typedef struct standin {
    void (*configure)(const char *text);
    void (*count)(standin_counts *out);
    long (*calls)(void);
    const char *(*victim)(void);
    const char *(*misuse)(void);
    const char *(*given_back)(void);
    void *library;
} standin;

/* Returns true if this build has kernels for the stand-in's chips; below, the message if it has not. */
bool standin_has_kernels(void);
#define STANDIN_WITHOUT_KERNELS "this build has no kernels for gfx90a and gfx1100, which the stand-in for ROCm stands for"

/* Opens the stand-in as ROCm 5, 6 or 7 and makes the library use it, including rocBLAS and hipRTC. Returns false, with a line
 * that starts with SKIP, if this build has no kernels for the stand-in's chips. Once per process. */
bool standin_open(int rocm, const char *settings, standin *out);

/* Returns how many objects are alive in it; below, a text that names them, in memory of the thread. */
long standin_alive(const standin *s);
const char *standin_alive_text(const standin *s);

#endif
