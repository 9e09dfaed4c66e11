/* Any bytes as a decimal number, and as the elements of a JSON array: what a reader accepts, the C library's strtof must
 * accept, too, and return the same bits.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/json/json_value.h"
#include "files/number.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The text in brackets, in a block of exactly its size. */
static void fuzz_array(const uint8_t *bytes, size_t size, locale_t c_locale)
{
    json_fault fault;
    char *list = malloc(size + 3);
    if (!list)
        abort();
    list[0] = '[';
    if (size > 0)
        memcpy(list + 1, bytes, size);
    memcpy(list + 1 + size, "]", 2);
    const int64_t count = json_check(list, size + 2, &fault) ? json_numbers_count(list) : -1;
    float *values = count > 0 ? malloc((size_t)count * sizeof *values) : NULL;
    if (values && json_numbers_read(list, values)) {
        const char *at = json_first(list);
        for (int64_t i = 0; i < count; i++, at = json_next(at)) {
            const float theirs = at ? strtof_l(at, NULL, c_locale) : NAN;
            if (memcmp(&values[i], &theirs, sizeof theirs) != 0)
                abort();
        }
        if (at)
            abort();
    }
    free(values);
    free(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    char *text = malloc(size + 1);
    if (!text || c_locale == (locale_t)0)
        abort();
    if (size > 0)
        memcpy(text, bytes, size);
    text[size] = '\0';
    float ours = 0.0f;
    const number_kind kind = number_read(text, size, c_locale, &ours);
    if (kind != NUMBER_NOT) {
        char *end;
        const float theirs = strtof_l(text, &end, c_locale);
        if (end != text + size || (kind == NUMBER_TOO_LARGE && !isinf(theirs)))
            abort();
        if (isnan(ours) != isnan(theirs) || (!isnan(ours) && memcmp(&ours, &theirs, sizeof ours) != 0))
            abort();
    }
    fuzz_array(bytes, size, c_locale);
    free(text);
    freelocale(c_locale);
    return 0;
}
