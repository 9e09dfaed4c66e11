/* The digits: the assembler puts the text of the file into the program, and this reads it. */
#include "warpwave/demo/digits.h"

#include <stdlib.h>

#include "base/memory.h"

__asm__(".pushsection .rodata\n"
        "digits_csv: .incbin \"" WARPWAVE_SOURCE_DATA_DIR "/digits.csv\"\n"
        ".byte 0\n"
        ".popsection\n");

extern const char digits_csv[] __attribute__((visibility("hidden")));

/* A number from 0 to `most`, and behind it the character `then`. */
static bool take_number(const char **at, long max, char then, long *number)
{
    char *end;
    *number = strtol(*at, &end, 10);
    if (end == *at || *end != then || *number < 0 || *number > max)
        return false;
    *at = end + 1;
    return true;
}

ww_status digits_read(digits **made)
{
    digits *d = memory_alloc(sizeof *d);
    const char *at = digits_csv;
    bool whole = true;
    if (!d)
        return memory_failed("the digits", sizeof *d);
    for (int i = 0; i < DIGIT_COUNT && whole; i++) {
        long number = 0;
        for (int pixel = 0; pixel < DIGIT_PIXELS && whole; pixel++) {
            whole = take_number(&at, DIGIT_INK_MAX, ',', &number);
            d->pixels[i][pixel] = (float)number;
        }
        whole = whole && take_number(&at, 9, '\n', &number);
        d->labels[i] = (int)number;
    }
    if (!whole || *at != '\0') {
        memory_free(d);
        return ww_fail(WW_INTERNAL, "the digits in this program are not those of data/digits.csv; build it again");
    }
    *made = d;
    return WW_OK;
}
