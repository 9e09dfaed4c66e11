/* Unicode as tokenizers need it: repaired UTF-8, normal forms, and the classes of characters. Punctuation, controls and marks
 * are those of Unicode 8, which the tokenizers of published models know; decompositions and lower case come from utf8proc. */
#ifndef WW_MODEL_TOKENIZER_UNICODE_H
#define WW_MODEL_TOKENIZER_UNICODE_H

#include <stdbool.h>

#include "base/strings/text_buffer.h"

/* Appends the text with U+FFFD for each maximal invalid part of a character, as Unicode recommends (chapter 3). */
ww_status unicode_repair(const char *text, size_t bytes, text_buffer *out);

/* Append the characters of a UTF-8 text, and the UTF-8 of characters. */
ww_status unicode_decode(const char *text, size_t bytes, characters *out);
ww_status unicode_encode(const uint32_t *values, size_t count, text_buffer *out);

/* Appends the normal form D of characters, in linear time for any text. */
ww_status unicode_decompose(const uint32_t *values, size_t count, characters *out);

/* Appends the normal form C of a UTF-8 text. */
ww_status unicode_compose(const char *text, size_t bytes, text_buffer *out);

/* White space; controls, formats and private use except tab and line ends; punctuation; marks without width (Mn). */
bool unicode_is_space(uint32_t c);
bool unicode_is_control(uint32_t c);
bool unicode_is_punctuation(uint32_t c);
bool unicode_is_mark(uint32_t c);
uint32_t unicode_lower(uint32_t c);

#endif
