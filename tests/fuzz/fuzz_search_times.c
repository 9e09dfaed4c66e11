/* Any bytes as the file of remembered times of searches: reading never fails, and what it takes from it are times. The input is
 * the lines; half of the inputs get the right hash, which a fuzzer does not find. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tables/hash.h"
#include "gpu/search/choice/trials_file.h"

enum { HEAD_BYTES = 24, LINE_BYTES = 61, HASHED_BYTES = 52 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void put_hashes(char *text, size_t size)
{
    for (size_t at = HEAD_BYTES; at + LINE_BYTES <= size; at += LINE_BYTES) {
        char digits[16];
        const uint64_t hash = fnv_bytes(FNV_BEGIN, text + at, HASHED_BYTES);
        snprintf(digits, sizeof digits, "%08x", (unsigned)(uint32_t)(hash ^ hash >> 32));
        memcpy(text + at + HASHED_BYTES, digits, 8);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    search_trials *trials = calloc(1, sizeof *trials);
    char *text = malloc(size + HEAD_BYTES + 1);
    if (!trials || !text)
        abort();
    memcpy(text, "warpwave search times 1\n", HEAD_BYTES);
    if (size > 0)
        memcpy(text + HEAD_BYTES, bytes, size);
    if (size % 2 == 0)
        put_hashes(text, size + HEAD_BYTES);
    trials_text_read(text, size + HEAD_BYTES, UINT64_C(0x1111111111111111), trials);
    for (size_t i = 0; i < TRIALS_KEPT; i++) {
        search_trial found;
        if (search_trials_settled(trials, i, &found) &&
            (found.shape % TRIALS_KEPT != i || !(found.best[0] > 0.0f) || !(found.best[1] > 0.0f) || isinf(found.best[0]) ||
             isinf(found.best[1])))
            abort();
    }
    free(text);
    free(trials);
    return 0;
}
