/* The tokens of SQLite's dialect, as far as they decide where a bracket or a statement ends.
 *
 * Quoted are '...', "..." and `...` with the quote doubled inside, and [...] without; comments are -- to the end of the line
 * and slash-star. SQLite takes an open comment at the end of its input for a closed one, which would swallow our bracket. A
 * parameter such as $name may go on with brackets of its own, "$a(b)": nobody writes that on purpose, and it is refused.
 */
#include "store/filter_text.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "store/filter.h"

static bool is_name(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' || c >= 0x80;
}

/* Behind the end of what is quoted at text[at], or 0 if it does not end. */
static size_t quote_end(const char *text, size_t at)
{
    const char open = text[at], close = (char)(open == '[' ? ']' : open);
    for (size_t i = at + 1; text[i]; i++) {
        if (text[i] != close)
            continue;
        if (open == '[' || text[i + 1] != close)
            return i + 1;
        i++;
    }
    return 0;
}

/* The same for a comment; a line comment may end with the text, because a newline is put behind it. */
static size_t comment_end(const char *text, size_t at)
{
    if (text[at] == '-') {
        const char *end = strchr(text + at, '\n');
        return end ? (size_t)(end - text) + 1 : at + strlen(text + at);
    }
    const char *end = strstr(text + at + 2, "*/");
    return end ? (size_t)(end - text) + 2 : 0;
}

static size_t parameter_end(const char *text, size_t at)
{
    at++;
    while (is_name((unsigned char)text[at]) || (text[at] == ':' && text[at + 1] == ':'))
        at += text[at] == ':' ? 2 : 1;
    return text[at] == '(' ? 0 : at;
}

/* Behind the token at text[at], or 0 if it has no end. */
static size_t token_end(const char *text, size_t at)
{
    const char c = text[at];
    if (c == '\'' || c == '"' || c == '`' || c == '[')
        return quote_end(text, at);
    if ((c == '-' && text[at + 1] == '-') || (c == '/' && text[at + 1] == '*'))
        return comment_end(text, at);
    if (c == '$' || c == '@' || c == ':' || c == '#')
        return parameter_end(text, at);
    return at + 1;
}

ww_status filter_text_check(const char *text)
{
    if (strnlen(text, FILTER_TEXT_BYTES_MAX + 1) > FILTER_TEXT_BYTES_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "where: the text has more than %d bytes", FILTER_TEXT_BYTES_MAX);
    size_t depth = 0;
    int concatenations = 0;
    for (size_t at = 0; text[at];) {
        const size_t end = token_end(text, at);
        if (end == 0)
            return ww_fail(WW_INVALID_ARGUMENT, "where: what begins with '%c' at byte %zu does not end", text[at], at + 1);
        if (text[at] == ';')
            return ww_fail(WW_INVALID_ARGUMENT, "where: a semicolon at byte %zu; a where is one expression", at + 1);
        if (text[at] == ')' && depth == 0)
            return ww_fail(WW_INVALID_ARGUMENT, "where: ')' at byte %zu closes nothing", at + 1);
        if (text[at] == '|' && text[at + 1] == '|' && ++concatenations > FILTER_CONCATENATIONS_MAX)
            return ww_fail(WW_OUT_OF_RANGE, "where: more than %d operators ||", FILTER_CONCATENATIONS_MAX);
        if (text[at] == '(')
            depth++;
        if (text[at] == ')')
            depth--;
        at = end;
    }
    if (depth > 0)
        return ww_fail(WW_INVALID_ARGUMENT, "where: %zu '(' %s not closed", depth, depth == 1 ? "is" : "are");
    return WW_OK;
}
