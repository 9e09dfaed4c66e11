/* Tokens of a template, one at a time, with jinja2's rules for white space around tags: trim_blocks and lstrip_blocks. */
#include <string.h>

#include "base/json/json_value.h"
#include "model/template/parse.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t skip_space(const lexer *l, size_t at)
{
    while (at < l->source.bytes && char_is_space(l->source, at))
        at += char_bytes(l->source, at);
    return at;
}

/* ---- outside of tags -------------------------------------------------------------------------------------------------------
 */

/* The place behind the end of a tag: `end` is that of its two last characters. */
static size_t behind_tag(const lexer *l, size_t end)
{
    const char sign = l->source.text[end - 1];
    const bool output = l->source.text[end] == '}';
    if (sign == '-')
        return skip_space(l, end + 2);
    return end + 2 + (sign != '+' && !output && l->source.text[end + 2] == '\n');
}

/* Text up to the tag at `tag`, without the white space that it removes. */
static marked data_before(const lexer *l, size_t tag, size_t from)
{
    const marked text = marked_part(l->source, from, tag);
    const char sign = tag < l->source.bytes ? l->source.text[tag + 2] : '+';
    if (sign == '-')
        return marked_strip(text, NULL, false, true);
    if (sign == '+' || l->source.text[tag + 1] == '{')
        return text;
    size_t line = text.bytes;
    while (line > 0 && text.text[line - 1] != '\n')
        line--;
    if (line == 0 && from > 0 && l->source.text[from - 1] != '\n')
        return text;
    return skip_space(l, from + line) >= tag ? marked_part(text, 0, line) : text;
}

static size_t find_tag(const lexer *l, size_t from)
{
    for (size_t at = from; at < l->source.bytes; at++)
        if (l->source.text[at] == '{' && l->source.text[at + 1] && strchr("{%#", l->source.text[at + 1]))
            return at;
    return l->source.bytes;
}

/* Is the tag at `at` {% word %}? Gives the place of its %}. */
static bool tag_is(const lexer *l, size_t at, const char *word, size_t *end)
{
    const char *s = l->source.text;
    if (strncmp(s + at, "{%", 2) != 0)
        return false;
    at = skip_space(l, at + 2 + (s[at + 2] == '-' || s[at + 2] == '+'));
    if (strncmp(s + at, word, strlen(word)) != 0)
        return false;
    at = skip_space(l, at + strlen(word));
    *end = at + (s[at] == '-' || s[at] == '+');
    return strncmp(s + *end, "%}", 2) == 0;
}

static void lex_raw(lexer *l, size_t end)
{
    const size_t from = l->source.text[end - 1] == '-' ? behind_tag(l, end) : end + 2;
    size_t tag = find_tag(l, from);
    while (tag < l->source.bytes && !tag_is(l, tag, "endraw", &end))
        tag = find_tag(l, tag + 1);
    if (tag >= l->source.bytes) {
        work_fail(l->w, WW_INVALID_ARGUMENT, "{%% raw %%} has no {%% endraw %%}");
        return;
    }
    l->now = (token){.type = TOKEN_DATA, .at = from, .text = data_before(l, tag, from)};
    l->at = behind_tag(l, end);
}

static void lex_outside(lexer *l)
{
    while (l->w->status == WW_OK && l->at < l->source.bytes) {
        const char *s = l->source.text;
        const size_t tag = find_tag(l, l->at), from = l->at;
        size_t end = 0;
        l->now = (token){.type = TOKEN_DATA, .at = from, .text = data_before(l, tag, from)};
        l->at = l->w->at = tag;
        if (l->now.text.bytes > 0 || tag >= l->source.bytes)
            return;
        if (s[tag + 1] == '#') {
            const char *close = strstr(s + tag + 2, "#}");
            if (!close)
                work_fail(l->w, WW_INVALID_ARGUMENT, "a comment has no end");
            l->at = close ? behind_tag(l, (size_t)(close - s)) : tag;
        } else if (tag_is(l, tag, "raw", &end)) {
            lex_raw(l, end);
            return;
        } else {
            l->inside = true;
            l->output = s[tag + 1] == '{';
            l->at = tag + 2 + (s[tag + 2] == '-' || s[tag + 2] == '+');
            l->now = (token){.type = TOKEN_OPEN, .at = tag, .output = l->output};
            return;
        }
    }
    l->now = (token){.type = TOKEN_END, .at = l->at};
}

/* ---- inside --------------------------------------------------------------------------------------------------------------
 */

static size_t put_character(char *to, uint32_t c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    const size_t bytes = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = bytes - 1; i > 0; i--, c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3F));
    to[0] = (char)((bytes == 2 ? 0xC0 : bytes == 3 ? 0xE0 : 0xF0) | c);
    return bytes;
}

/* The escape whose backslash is at s[0]: writes its character and returns its bytes. */
static size_t unescape(lexer *l, const char *s, char *to, size_t *written)
{
    static const char names[] = "n\nt\tr\rb\bf\fv\va\a\\\\'\'\"\"";
    const char *name = s[1] ? strchr(names, s[1]) : NULL;
    const size_t digits = s[1] == 'x' ? 2 : s[1] == 'u' ? 4 : s[1] == 'U' ? 8 : 0;
    uint32_t c = 0;
    *written = 0;
    if (s[1] == '\n')
        return 2;
    if (digits == 0) {
        *written = name ? 1 : 2;
        to[0] = name ? name[1] : '\\';
        to[1] = s[1];
        return 2;
    }
    for (size_t i = 0; i < digits; i++) {
        static const char hex[] = "0123456789abcdef";
        const char *digit = s[2 + i] ? strchr(hex, s[2 + i] | 32) : NULL;
        if (!digit) {
            work_fail(l->w, WW_INVALID_ARGUMENT, "an escape in a text needs %zu hexadecimal digits", digits);
            return 2;
        }
        c = 16 * c + (uint32_t)(digit - hex);
    }
    if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
        work_fail(l->w, WW_INVALID_ARGUMENT, "an escape in a text is no character");
    else
        *written = put_character(to, c);
    return 2 + digits;
}

static void lex_text(lexer *l)
{
    const char *s = l->source.text, quote = s[l->at];
    size_t end = l->at + 1, bytes = 0, written;
    while (end < l->source.bytes && s[end] != quote)
        end += s[end] == '\\' && end + 1 < l->source.bytes ? 2 : 1;
    char *text = work_alloc(l->w, end - l->at + 1);
    if (end >= l->source.bytes)
        work_fail(l->w, WW_INVALID_ARGUMENT, "a text has no closing %c", quote);
    for (size_t at = l->at + 1; at < end && l->w->status == WW_OK;) {
        written = 1;
        if (s[at] == '\\')
            at += unescape(l, s + at, text + bytes, &written);
        else
            text[bytes] = s[at++];
        bytes += written;
    }
    l->now.type = TOKEN_CONSTANT;
    l->now.constant = TEXT_OF(((marked){text, NULL, bytes}));
    l->at = end + 1;
}

static void lex_number(lexer *l)
{
    const char *s = l->source.text;
    size_t end = l->at;
    while (is_digit(s[end]))
        end++;
    if (s[end] == '.' && is_digit(s[end + 1]) && (l->at == 0 || s[l->at - 1] != '.'))
        for (end++; is_digit(s[end]);)
            end++;
    if ((s[end] | 32) == 'e' && is_digit(s[end + 1 + (s[end + 1] == '-' || s[end + 1] == '+')]))
        for (end += 2; is_digit(s[end]);)
            end++;
    char number[64] = {0};
    if (end - l->at >= sizeof number)
        work_fail(l->w, WW_INVALID_ARGUMENT, "a number has %zu characters", end - l->at);
    else
        memcpy(number, s + l->at, end - l->at);
    const json_number n = json_number_of(number[0] ? number : "0");
    l->now.type = TOKEN_CONSTANT;
    l->now.constant = n.is_integer ? INTEGER(n.integer) : REAL(n.real);
    l->at = end;
}

static void lex_operator(lexer *l)
{
    static const char *const operators[] = {"==", "!=", "<=", ">=", "//", "**"};
    const char *s = l->source.text + l->at;
    size_t bytes = 1;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strncmp(s, operators[i], 2) == 0)
            bytes = 2;
    if (!*s || (bytes == 1 && !strchr("+-*/%~[](){}<>=.:|,", *s)))
        work_fail(l->w, WW_INVALID_ARGUMENT, *s ? "the character '%.1s' has no meaning here" : "a tag has no end%.0s", s);
    l->brackets += bytes == 1 && strchr("[({", *s) ? 1 : bytes == 1 && strchr("])}", *s) ? -1 : 0;
    l->now.type = TOKEN_OPERATOR;
    l->now.text = marked_part(l->source, l->at, l->at + bytes);
    l->at += bytes;
}

static void lex_inside(lexer *l)
{
    const char *s = l->source.text;
    l->at = l->w->at = skip_space(l, l->at);
    const size_t end = l->at + (s[l->at] == '-' || (s[l->at] == '+' && !l->output));
    l->now = (token){.at = l->at, .output = l->output};
    if (l->brackets <= 0 && strncmp(s + end, l->output ? "}}" : "%}", 2) == 0) {
        l->now.type = TOKEN_CLOSE;
        l->at = behind_tag(l, end);
        l->inside = false;
        l->brackets = 0;
    } else if (is_letter(s[l->at])) {
        size_t stop = l->at;
        while (is_letter(s[stop]) || is_digit(s[stop]))
            stop++;
        l->now.type = TOKEN_NAME;
        l->now.text = marked_part(l->source, l->at, stop);
        l->at = stop;
    } else if (is_digit(s[l->at])) {
        lex_number(l);
    } else if (s[l->at] == '\'' || s[l->at] == '"') {
        lex_text(l);
    } else {
        lex_operator(l);
    }
}

void lexer_next(lexer *l)
{
    if (l->inside)
        lex_inside(l);
    else
        lex_outside(l);
    if (l->w->status != WW_OK)
        l->now = (token){.type = TOKEN_END, .at = l->at};
}
