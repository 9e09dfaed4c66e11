/* Any bytes as a filter and a payload, separated by a NUL: the filter is refused with a message, or it admits or rejects every
 * JSON payload, and its negation does the opposite. A merged payload is JSON, and merging again changes nothing. The same bytes
 * as a formula are refused, or give a finite score.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <warpwave/filter.h>
#include <warpwave/formula.h>

#include "base/json/json.h"
#include "base/memory.h"
#include "vectors/write/payloads.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Shows the filter, copies it, and tests the payload. */
static bool admits(const char *text, const char *payload, bool *out)
{
    ww_filter *f = NULL, *copy = NULL;
    char shown[64];
    int32_t matches = -1;
    if (ww_filter_read(text, &f) != WW_OK)
        return false;
    const size_t length = ww_filter_text(f, shown, sizeof shown);
    if (length == 0 || strlen(shown) != (length < sizeof shown ? length : sizeof shown - 1))
        abort();
    if (ww_filter_create(&copy) != WW_OK || ww_filter_add_filter(copy, f) != WW_OK ||
        ww_filter_matches(f, "7", payload, &matches) != WW_OK)
        abort();
    *out = matches;
    if (ww_filter_matches(copy, "7", payload, &matches) != WW_OK || *out != matches)
        abort();
    ww_filter_destroy(f);
    ww_filter_destroy(copy);
    return true;
}

static void merge(const char *fields, const char *payload)
{
    char *merged = NULL, *again = NULL;
    json_fault fault;
    if (!json_check(fields, strlen(fields), &fault) || payload_check_merge("", fields) != WW_OK ||
        payload_merge("", payload, fields, &merged) != WW_OK)
        return;
    if (!json_check(merged, strlen(merged), &fault) || payload_merge("", merged, fields, &again) != WW_OK ||
        strcmp(merged, again) != 0)
        abort();
    memory_free(merged);
    memory_free(again);
}

static void score(const char *text, const char *payload)
{
    static const float SCORES[2] = {0.5F, NAN};
    ww_formula *formula = NULL;
    ww_formula_row row = ww_formula_row_default();
    float found = 1.0F;
    row.id = "7", row.payload = payload, row.scores = SCORES, row.score_count = 2;
    if (ww_formula_read(text, payload, NULL, NULL, &formula) != WW_OK &&
        ww_formula_read(text, NULL, NULL, NULL, &formula) != WW_OK)
        return;
    if (ww_formula_score(formula, &row, &found) == WW_OK && (!isfinite(found) || (found == 0.0F && signbit(found))))
        abort();
    ww_formula_destroy(formula);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *text = memory_alloc(size + 2), *opposite = memory_alloc(size + 32);
    if (!text || !opposite)
        abort();
    memcpy(text, bytes, size);
    text[size] = text[size + 1] = '\0';
    const size_t length = strlen(text);
    const char *payload = length < size ? text + length + 1 : NULL;
    json_fault fault;
    bool first = false, second = false;
    if (payload && !json_check(payload, strlen(payload), &fault))
        payload = NULL;
    merge(text, payload);
    score(text, payload);
    snprintf(opposite, size + 32, "{\"$not\": %s}", text);
    if (admits(text, payload, &first) && admits(opposite, payload, &second) && first == second)
        abort();
    memory_free(text);
    memory_free(opposite);
    return 0;
}
