/* Searches whose thresholds are too strict and whose proofs are not checked: shows that the library detects such thresholds,
 * and what damage they would do. Programs linked with WRONG_THRESHOLDS (tests/CMakeLists.txt) use the functions of
 * wrong_thresholds.c instead of four of the library's.
 */
#ifndef TESTS_SEAMS_WRONG_THRESHOLDS_H
#define TESTS_SEAMS_WRONG_THRESHOLDS_H

#include <stdbool.h>
#include <stdint.h>

#include "arithmetic/canon.h"

extern uint32_t thresholds_lowered; /* each is made better by this many steps of a float */
extern bool keep_unproven;          /* a query whose certificate fails is not repeated */

/* The upper half of a key, the score; never 0, which nothing written would be. */
static inline canon_key lowered_key(canon_key key)
{
    const uint32_t score = (uint32_t)(key >> 32);
    const uint32_t better = score > thresholds_lowered ? score - thresholds_lowered : 1;
    return (canon_key)(thresholds_lowered == 0 ? score : better) << 32 | (uint32_t)key;
}

#endif
