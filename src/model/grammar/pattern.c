/* Regular expressions and formats of JSON schemas: the part that a grammar can express. */
#include <string.h>

#include "base/text.h"
#include "model/grammar/schema.h"

#define UNICODE_SPACE "\\u00A0\\u1680\\u2000-\\u200A\\u2028\\u2029\\u202F\\u205F\\u3000\\uFEFF"

/* \d, \w and \s as the contents of a class; NULL for others. */
static const char *set_of(char kind)
{
    return kind == 'd' ? "0-9" : kind == 'w' ? "A-Za-z0-9_" : kind == 's' ? " " UNICODE_SPACE : NULL;
}

/* Reads one character, which may be escaped. */
static uint32_t read_one(schema_writer *w, const char **at)
{
    uint32_t c = 0;
    const bool escaped = **at == '\\';
    *at += escaped;
    *at += utf8_read(*at, strlen(*at), &c);
    if (!escaped || strchr("nrt", (int)c))
        return !escaped ? c : c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : 0;
    if (c >= 0x80 || !strchr("^$\\.*+?()[]{}|/-\"'#&~,:;=<>@!%_` ", (int)c))
        schema_refuse(w, "pattern: only \\d \\w \\s \\D \\W \\S \\n \\r \\t and escaped punctuation are supported");
    return c;
}

/* Writes the characters of a range that a JSON string can contain without an escape. */
static void write_range(schema_writer *w, uint32_t low, uint32_t high)
{
    static const uint32_t unsafe[] = {'"', '\\', 0x110000};
    low = low < 0x20 ? 0x20 : low;
    for (int i = 0; i < 3; i++) {
        if (low < unsafe[i] && low <= high)
            gbnf_write(w, "\\U%08X-\\U%08X", (unsigned)low, (unsigned)(high < unsafe[i] ? high : unsafe[i] - 1));
        low = low <= unsafe[i] ? unsafe[i] + 1 : low;
    }
}

static void write_class(schema_writer *w, const char **at)
{
    const bool negated = *++*at == '^';
    *at += negated;
    gbnf_write(w, negated ? "[^\\\"\\\\\\x00-\\x1F" : "[");
    while (**at && **at != ']' && w->status == WW_OK) {
        const char *set = **at == '\\' ? set_of((*at)[1]) : NULL;
        if (set) {
            gbnf_write(w, "%s", set);
            *at += 2;
            continue;
        }
        const uint32_t low = read_one(w, at);
        uint32_t high = low;
        if ((*at)[0] == '-' && (*at)[1] && (*at)[1] != ']') {
            ++*at;
            high = read_one(w, at);
        }
        if (high < low)
            schema_refuse(w, "pattern: a range of characters ends before it begins");
        write_range(w, low, high);
    }
    if (!**at)
        schema_refuse(w, "pattern: a character class does not end");
    else
        ++*at;
    gbnf_write(w, "] ");
}

static void write_escape(schema_writer *w, const char **at)
{
    const char kind = (*at)[1];
    const char *set = set_of(kind), *negated = strchr("DWS", kind) && kind ? set_of((char)(kind + 'a' - 'A')) : NULL;
    if (set || negated) {
        gbnf_write(w, "[%s%s] ", negated ? "^\\\"\\\\\\x00-\\x1F" : "", set ? set : negated);
        *at += 2;
        return;
    }
    const uint32_t c = read_one(w, at);
    if (c == '"' || c == '\\')
        gbnf_write(w, "\"\\\\\\%c\" ", (char)c);
    else if (c < 0x20)
        gbnf_write(w, "\"\\\\%c\" ", kind);
    else
        gbnf_write(w, "\"\\U%08X\" ", (unsigned)c);
}

static void write_quantifier(schema_writer *w, const char **at)
{
    const size_t length = **at == '{' ? strspn(*at + 1, "0123456789,") + 2 : 1;
    if (**at == '{' && (*at)[length - 1] != '}') {
        schema_refuse(w, "pattern: a quantifier must be * + ? {m} {m,} or {m,n}");
        return;
    }
    if (w->status == WW_OK) /* of any length, such as {000...2} */
        w->status = text_buffer_add(w->out, *at, length);
    gbnf_write(w, " ");
    *at += length;
    if (**at && strchr("?+*{", **at))
        schema_refuse(w, "pattern: lazy and possessive quantifiers are not supported");
}

static void write_atom(schema_writer *w, const char **at, int *depth)
{
    if (**at == '(' && (*at)[1] == '?' && (*at)[2] != ':') {
        schema_refuse(w, "pattern: groups that begin with (? are not supported, except (?:");
    } else if (**at == '(') {
        gbnf_write(w, "(");
        *at += (*at)[1] == '?' ? 3 : 1;
        ++*depth;
    } else if (**at == ')' || **at == '|') {
        *depth -= **at == ')';
        gbnf_write(w, "%c ", *(*at)++);
        if (*depth < 0)
            schema_refuse(w, "pattern: ) closes no group");
    } else if (**at == '[') {
        write_class(w, at);
    } else if (**at == '.') {
        gbnf_write(w, "[^\\\"\\\\\\x00-\\x1F\\u2028\\u2029] ");
        ++*at;
    } else if (**at == '\\') {
        write_escape(w, at);
    } else if (strchr("^$", **at)) {
        schema_refuse(w, "pattern: ^ and $ are supported at the ends of the pattern only, and without | outside of a group");
    } else if (**at == '"') {
        gbnf_write(w, "\"\\\\\\\"\" ");
        ++*at;
    } else {
        gbnf_write(w, "\"\\U%08X\" ", (unsigned)read_one(w, at));
    }
}

void pattern_write(schema_writer *w, const char *pattern)
{
    const size_t length = strlen(pattern);
    const bool begins = pattern[0] == '^', ends = length > 1 && pattern[length - 1] == '$' && pattern[length - 2] != '\\';
    const char *at = pattern + begins, *end = pattern + length - ends;
    int depth = 0;
    gbnf_write(w, begins ? "(" : "char* (");
    while (at < end && w->status == WW_OK) {
        if (*at == '|' && depth == 0 && (begins || ends))
            schema_refuse(w,
                          "pattern: ^ and $ are supported at the ends of the pattern only, and without | outside of a group");
        else if (strchr("*+?{", *at))
            write_quantifier(w, &at);
        else
            write_atom(w, &at, &depth);
    }
    if (depth != 0)
        schema_refuse(w, "pattern: a group is not closed");
    gbnf_write(w, ends ? ") " : ") char* ");
}

/* ---- formats ------------------------------------------------------------------------------------------------------------- */

#define HOUR_MINUTE "([01] [0-9] | \"2\" [0-3]) \":\" [0-5] [0-9] "

static const char DATE[] = "[1-9] [0-9]{3} \"-\" ((\"0\" [13578] | \"1\" [02]) \"-\" (\"0\" [1-9] | [12] [0-9] | \"3\" [01]) | "
                           "(\"0\" [469] | \"11\") \"-\" (\"0\" [1-9] | [12] [0-9] | \"30\") | "
                           "\"02-\" (\"0\" [1-9] | \"1\" [0-9] | \"2\" [0-8])) ";
static const char TIME[] = HOUR_MINUTE "\":\" [0-5] [0-9] (\".\" [0-9]{1,6})? (\"Z\" | [-+] " HOUR_MINUTE ") ";
static const char UUID[] = "[0-9a-f]{8} (\"-\" [0-9a-f]{4}){3} \"-\" [0-9a-f]{12} ";

bool format_write(schema_writer *w, const json_t *format)
{
    static const struct {
        const char *name, *parts[3];
    } known[] = {{"date", {DATE}}, {"time", {TIME}}, {"date-time", {DATE, "\"T\" ", TIME}}, {"uuid", {UUID}}};
    for (size_t i = 0; json_is_string(format) && i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, json_string_value(format)) != 0)
            continue;
        for (size_t k = 0; k < 3 && known[i].parts[k]; k++)
            gbnf_write(w, "%s", known[i].parts[k]);
        return true;
    }
    return false;
}
