/* A decimal number in text to the nearest f32, whatever the program's locale is. */
#ifndef WW_FILES_NUMBER_H
#define WW_FILES_NUMBER_H

#include <locale.h>
#include <stddef.h>

typedef enum number_kind {
    NUMBER_OK,
    NUMBER_TOO_LARGE, /* a number, but no f32 */
    NUMBER_NOT        /* no number */
} number_kind;

/* Reads text[0..length) whole: sign, digits with or without a point, exponent; or inf, infinity, nan in any case. Rounds once,
 * to nearest even. text[length] must be writable: it is a NUL for a moment. `c_locale` is a locale_t for "C". */
number_kind number_read(char *text, size_t length, locale_t c_locale, float *value);

#endif
