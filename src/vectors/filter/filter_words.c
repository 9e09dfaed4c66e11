/* Conditions on texts: their words, how they start and what they contain. Words are letters, digits and all non-ASCII
 * characters; the case of ASCII letters does not matter. */
#include <string.h>

#include "base/memory.h"
#include "vectors/filter/filter_match.h"

static bool is_word_byte(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c & 0x80);
}

static bool same_word(const char *a, const char *b, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const char x = a[i] >= 'A' && a[i] <= 'Z' ? (char)(a[i] + 32) : a[i];
        const char y = b[i] >= 'A' && b[i] <= 'Z' ? (char)(b[i] + 32) : b[i];
        if (x != y)
            return false;
    }
    return true;
}

/* Returns the start of the next word from *at on, or NULL. Moves *at to its end. */
static const char *next_word(const char **at, const char *end)
{
    while (*at < end && !is_word_byte(**at))
        (*at)++;
    const char *first = *at;
    while (*at < end && is_word_byte(**at))
        (*at)++;
    return *at > first ? first : NULL;
}

static bool has_word(const char *text, const char *end, const char *word, size_t length)
{
    for (const char *first; (first = next_word(&text, end));)
        if ((size_t)(text - first) == length && same_word(first, word, length))
            return true;
    return false;
}

/* Returns true if `text` starts with the words of the operand, in order. */
static bool begins_with_words(const char *text, const char *end, const filter_operand *operand)
{
    const char *wanted = operand->text, *const wanted_end = wanted + operand->length;
    for (const char *word; (word = next_word(&wanted, wanted_end));) {
        const char *first = next_word(&text, end);
        if (!first || text - first != wanted - word || !same_word(first, word, (size_t)(wanted - word)))
            return false;
    }
    return true;
}

static bool words_match(ww_filter_test test, const char *text, const char *end, const filter_operand *operand)
{
    const char *wanted = operand->text, *const wanted_end = wanted + operand->length;
    const char *word = next_word(&wanted, wanted_end);
    if (!word)
        return false;
    if (test == WW_FILTER_PHRASE) {
        for (const char *at = text, *first; (first = next_word(&at, end));)
            if (begins_with_words(first, end, operand))
                return true;
        return false;
    }
    for (; word; word = next_word(&wanted, wanted_end))
        if (has_word(text, end, word, (size_t)(wanted - word)) != (test == WW_FILTER_ALL_WORDS))
            return test == WW_FILTER_ANY_WORD;
    return test == WW_FILTER_ALL_WORDS;
}

void filter_test_text(filter_testing *t, const char *value)
{
    const filter_operand *operand = &t->filter->operands[t->node->operand];
    if (json_type_of(value) != JSON_TEXT)
        return;
    const size_t room = (size_t)(json_end(value) - value);
    char *text = memory_alloc(room);
    if (!text) {
        t->status = memory_failed("a text of a payload", room);
        return;
    }
    const size_t length = json_text_read(value, text);
    if (t->node->test == WW_FILTER_PREFIX)
        t->found = length >= operand->length && memcmp(text, operand->text, operand->length) == 0;
    else if (t->node->test == WW_FILTER_SUBSTRING || t->node->test == WW_FILTER_CONTAINS)
        t->found = operand->length == 0 || memmem(text, length, operand->text, operand->length) != NULL;
    else
        t->found = words_match(t->node->test, text, text + length, operand);
    memory_free(text);
}
