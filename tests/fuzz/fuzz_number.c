/* Any bytes as a decimal number: if the reader accepts them, the C library's strtof must accept all of them and return the same
 * bits.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "files/number.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

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
    free(text);
    freelocale(c_locale);
    return 0;
}
