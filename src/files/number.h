/* Converts decimal text to the nearest f32, regardless of the program's locale. */
#ifndef WW_FILES_NUMBER_H
#define WW_FILES_NUMBER_H

#include <locale.h>
#include <stddef.h>

typedef enum number_kind {
    NUMBER_OK,
    NUMBER_TOO_LARGE, /* a number, but too large for f32 */
    NUMBER_NOT        /* not a number */
} number_kind;

/* Reads all of text[0..length): sign, digits with or without a point, exponent; or inf, infinity, nan in any case. Rounds once,
 * to nearest even. text[length] must be writable: it is set to NUL temporarily. `c_locale` is a locale_t for "C". */
number_kind number_read(char *text, size_t length, locale_t c_locale, float *value);

#endif
