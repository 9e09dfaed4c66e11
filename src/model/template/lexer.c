/* Tokens of a template, one at a time, with jinja2's rules for white space around tags: trim_blocks and lstrip_blocks. */
#include <string.h>

#include "base/json/json_value.h"
#include "model/template/parse.h"

static bool is_digit(uint32_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(uint32_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_one_of(uint32_t c, const char *ascii)
{
    return c > 0 && c < 128 && strchr(ascii, (int)c);
}

/* Are these characters at position `at` of the source? */
static bool stands(const parser *p, size_t at, const char *ascii)
{
    while (*ascii && p->source.chars[at] == (unsigned char)*ascii) {
        at++;
        ascii++;
    }
    return !*ascii;
}

static size_t skip_space(const parser *p, size_t at)
{
    while (at < p->source.count && is_space(p->source.chars[at]))
        at++;
    return at;
}

/* The position after a tag whose %}, }} or #} is at `end`. */
static size_t after_tag(const parser *p, size_t end)
{
    const uint32_t sign = p->source.chars[end - 1];
    if (sign == '-')
        return skip_space(p, end + 2);
    return end + 2 + (sign != '+' && p->source.chars[end] != '}' && p->source.chars[end + 2] == '\n');
}

/* The text from `from` up to the tag at `tag`, without the white space that the tag removes. */
static text data_before(const parser *p, size_t tag, size_t from)
{
    const text data = text_part(p->source, from, tag);
    const uint32_t sign = p->source.chars[tag] ? p->source.chars[tag + 2] : '+';
    if (sign == '-')
        return text_strip(p->w, data, NULL, false, true);
    if (sign == '+' || stands(p, tag, "{{"))
        return data;
    size_t line = tag;
    while (line > from && p->source.chars[line - 1] != '\n')
        line--;
    if (line == from && from > 0 && p->source.chars[from - 1] != '\n')
        return data;
    return skip_space(p, line) >= tag ? text_part(p->source, from, line) : data;
}

static size_t find_tag(const parser *p, size_t at)
{
    while (at < p->source.count && !stands(p, at, "{{") && !stands(p, at, "{%") && !stands(p, at, "{#"))
        at++;
    return at;
}

/* Is the tag at `at` {% word %}? Gives the position of its %}. */
static bool tag_is(const parser *p, size_t at, const char *word, size_t *end)
{
    if (!stands(p, at, "{%"))
        return false;
    at = skip_space(p, at + 2 + is_one_of(p->source.chars[at + 2], "-+"));
    if (!stands(p, at, word))
        return false;
    at = skip_space(p, at + strlen(word));
    *end = at + is_one_of(p->source.chars[at], "-+");
    return stands(p, *end, "%}");
}

/* The text between {% raw %}, whose %} is at `end`, and {% endraw %}. */
static void lex_raw(parser *p, size_t end)
{
    const size_t from = p->source.chars[end - 1] == '-' ? after_tag(p, end) : end + 2;
    size_t tag = find_tag(p, from);
    while (tag < p->source.count && !tag_is(p, tag, "endraw", &end))
        tag = find_tag(p, tag + 1);
    if (tag == p->source.count)
        work_fail(p->w, WW_INVALID_ARGUMENT, "{%% raw %%} has no {%% endraw %%}");
    p->now.text = data_before(p, tag, from);
    p->at = after_tag(p, end);
}

static void lex_outside(parser *p)
{
    while (p->at < p->source.count) {
        const size_t tag = find_tag(p, p->at);
        size_t end;
        p->now = (token){.type = TOKEN_DATA, .at = p->at, .text = data_before(p, tag, p->at)};
        p->at = p->w->at = tag;
        if (p->now.text.count > 0)
            return;
        if (tag_is(p, tag, "raw", &end)) {
            lex_raw(p, end);
            return;
        }
        if (stands(p, tag, "{#")) {
            for (end = tag + 2; !stands(p, end, "#}"); end++)
                if (end >= p->source.count)
                    work_fail(p->w, WW_INVALID_ARGUMENT, "a comment has no end");
            p->at = after_tag(p, end);
        } else if (tag < p->source.count) {
            p->inside = true;
            p->output = stands(p, tag, "{{");
            p->now = (token){.type = TOKEN_OPEN, .at = tag};
            p->at = tag + 2 + is_one_of(p->source.chars[tag + 2], "-+");
            return;
        }
    }
    p->now = (token){.type = TOKEN_END, .at = p->at};
}

/* Reads the digits of \x, \u or \U, and appends the character. */
static void lex_code(parser *p, builder *made, int digits)
{
    uint32_t c = 0;
    for (int i = 0; i < digits; i++, p->at++) {
        static const char hex[] = "0123456789abcdef";
        const uint32_t digit = p->source.chars[p->at] | 32;
        if (!is_one_of(digit, hex))
            work_fail(p->w, WW_INVALID_ARGUMENT, "an escape in a text needs %d hexadecimal digits", digits);
        c = 16 * c + (uint32_t)(strchr(hex, (int)digit) - hex);
    }
    if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
        work_fail(p->w, WW_INVALID_ARGUMENT, "an escape in a text is not a character");
    build_character(p->w, made, c);
}

/* Reads what follows a backslash. */
static void lex_escape(parser *p, builder *made)
{
    static const char names[] = "n\nt\tr\rb\bf\fv\va\a\\\\'\'\"\"";
    const uint32_t kind = p->source.chars[p->at++];
    const int digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    if (digits > 0) {
        lex_code(p, made, digits);
    } else if (is_one_of(kind, names)) {
        build_character(p->w, made, (unsigned char)strchr(names, (int)kind)[1]);
    } else if (kind != '\n') {
        build_words(p->w, made, "\\");
        build_character(p->w, made, kind);
    }
}

static void lex_text(parser *p)
{
    const uint32_t quote = p->source.chars[p->at++];
    builder made = {0};
    while (p->source.chars[p->at] != quote) {
        const uint32_t c = p->source.chars[p->at++];
        if (p->at >= p->source.count)
            work_fail(p->w, WW_INVALID_ARGUMENT, "a text has no closing %c", (char)quote);
        if (c == '\\')
            lex_escape(p, &made);
        else
            build_character(p->w, &made, c);
    }
    p->at++;
    p->now.type = TOKEN_CONSTANT;
    p->now.constant = TEXT(built(&made));
}

static size_t skip_digits(const parser *p, size_t at)
{
    while (is_digit(p->source.chars[at]))
        at++;
    return at;
}

static void lex_number(parser *p)
{
    const uint32_t *s = p->source.chars;
    const bool after_dot = p->at > 0 && s[p->at - 1] == '.'; /* as in a.0.b */
    size_t end = skip_digits(p, p->at);
    if (s[end] == '.' && is_digit(s[end + 1]) && !after_dot)
        end = skip_digits(p, end + 1);
    if ((s[end] | 32) == 'e' && is_digit(s[end + 1 + is_one_of(s[end + 1], "-+")]))
        end = skip_digits(p, end + 2);
    const json_number n = json_number_of(text_to_utf8(p->w, text_part(p->source, p->at, end), NULL));
    p->now.type = TOKEN_CONSTANT;
    p->now.constant = n.is_integer ? INTEGER(n.integer) : REAL(n.real);
    p->at = end;
}

static void lex_operator(parser *p)
{
    static const char *const pairs[] = {"==", "!=", "<=", ">=", "//", "**"};
    const uint32_t c = p->source.chars[p->at];
    size_t length = 1;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (stands(p, p->at, pairs[i]))
            length = 2;
    p->now.type = TOKEN_OPERATOR;
    p->now.text = text_part(p->source, p->at, p->at + length);
    if (p->at >= p->source.count)
        work_fail(p->w, WW_INVALID_ARGUMENT, "a tag has no end");
    if (length == 1 && !is_one_of(c, "+-*/%~[](){}<>=.:|,"))
        work_fail(p->w, WW_INVALID_ARGUMENT, "the character '%s' has no meaning here", text_to_utf8(p->w, p->now.text, NULL));
    p->brackets += is_one_of(c, "[({") - is_one_of(c, "])}");
    p->at += length;
}

static void lex_inside(parser *p)
{
    p->at = p->w->at = skip_space(p, p->at);
    const uint32_t c = p->source.chars[p->at];
    const size_t end = p->at + (c == '-' || (c == '+' && !p->output));
    p->now = (token){.at = p->at};
    if (p->brackets <= 0 && stands(p, end, p->output ? "}}" : "%}")) {
        p->now.type = TOKEN_CLOSE;
        p->at = after_tag(p, end);
        p->inside = false;
        p->brackets = 0;
    } else if (is_letter(c)) {
        size_t stop = p->at;
        while (is_letter(p->source.chars[stop]) || is_digit(p->source.chars[stop]))
            stop++;
        p->now.type = TOKEN_NAME;
        p->now.text = text_part(p->source, p->at, stop);
        p->at = stop;
    } else if (is_digit(c)) {
        lex_number(p);
    } else if (c == '\'' || c == '"') {
        lex_text(p);
    } else {
        lex_operator(p);
    }
}

void next_token(parser *p)
{
    if (p->inside)
        lex_inside(p);
    else
        lex_outside(p);
}
