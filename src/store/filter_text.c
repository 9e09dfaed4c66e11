/* The tokens of SQLite's dialect, as far as they decide where a bracket or a statement ends.
 *
 * Quoted are '...', "..." and `...` with the quote doubled inside, and [...] without; comments are -- to the end of the line
 * and slash-star. SQLite takes an open comment at the end of its input for a closed one, which would swallow our bracket. A
 * parameter such as $name may go on with brackets of its own, "$a(b)": nobody writes that on purpose, and it is refused.
 *
 * Subqueries may stand wherever a value may, but not in FROM, and there is no WITH: SQLite puts the columns of such a subquery
 * into the expressions that use them, and ten that each use the one before twice are a thousand copies, before anything runs
 * and any clock is looked at. Names of columns are copied, too, so a text with a SELECT is short.
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

enum { DEPTH_MAX = 128 }; /* SQLite's parser goes no deeper than 100 */

/* Where in a SELECT the text is, within one pair of brackets. */
typedef enum clause { ELSEWHERE, FROM_LIST, ON_CONDITION } clause;

typedef struct reading {
    int depth; /* brackets that are open */
    clause clauses[DEPTH_MAX + 1];
    bool expects_table; /* FROM, JOIN, a comma between tables, or brackets that open after one of them came last */
    bool after_distinct;
    bool has_select;
    int concatenations;
} reading;

static bool is_word(const char *word, size_t length, const char *keyword)
{
    return strlen(keyword) == length && sqlite3_strnicmp(word, keyword, (int)length) == 0;
}

static ww_status read_word(reading *r, const char *word, size_t length)
{
    static const char *const ENDS[] = {"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "WINDOW", "UNION", "EXCEPT", "INTERSECT"};
    clause *const here = &r->clauses[r->depth];
    const bool expected_table = r->expects_table, after_distinct = r->after_distinct;
    r->expects_table = r->after_distinct = false;
    if (is_word(word, length, "WITH"))
        return ww_fail(WW_INVALID_ARGUMENT, "where: WITH is not allowed");
    if (is_word(word, length, "SELECT") || is_word(word, length, "VALUES")) {
        if (expected_table)
            return ww_fail(WW_INVALID_ARGUMENT, "where: a subquery in FROM is not allowed");
        r->has_select = true;
        *here = ELSEWHERE;
    } else if (is_word(word, length, "JOIN") || (is_word(word, length, "FROM") && !after_distinct)) { /* not IS DISTINCT FROM */
        *here = FROM_LIST;
        r->expects_table = true;
    } else if (is_word(word, length, "ON")) {
        *here = ON_CONDITION;
    }
    r->after_distinct = is_word(word, length, "DISTINCT");
    for (size_t i = 0; i < sizeof ENDS / sizeof *ENDS; i++)
        if (is_word(word, length, ENDS[i]))
            *here = ELSEWHERE;
    return WW_OK;
}

static ww_status read_sign(reading *r, const char *text, size_t at)
{
    const char c = text[at];
    clause *const here = &r->clauses[r->depth];
    const bool expected_table = r->expects_table;
    r->expects_table = r->after_distinct = false;
    if (c == ';')
        return ww_fail(WW_INVALID_ARGUMENT, "where: a semicolon at byte %zu; a where is one expression", at + 1);
    if (c == ')' && r->depth == 0)
        return ww_fail(WW_INVALID_ARGUMENT, "where: ')' at byte %zu closes nothing", at + 1);
    if (c == '(' && r->depth == DEPTH_MAX)
        return ww_fail(WW_INVALID_ARGUMENT, "where: more than %d brackets within each other", DEPTH_MAX);
    if (c == '|' && text[at + 1] == '|' && ++r->concatenations > FILTER_CONCATENATIONS_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "where: more than %d operators ||", FILTER_CONCATENATIONS_MAX);
    if (c == '(') {
        r->clauses[++r->depth] = expected_table ? FROM_LIST : ELSEWHERE;
        r->expects_table = expected_table;
    } else if (c == ')') {
        r->depth--;
    } else if (c == ',' && *here != ELSEWHERE) {
        *here = FROM_LIST;
        r->expects_table = true;
    }
    return WW_OK;
}

static bool is_blank(const char *text, size_t at)
{
    return strchr(" \t\n\r\f", text[at]) || (text[at] == '-' && text[at + 1] == '-') ||
           (text[at] == '/' && text[at + 1] == '*');
}

static size_t word_end(const char *text, size_t at)
{
    while (is_name((unsigned char)text[at]))
        at++;
    return at;
}

ww_status filter_text_check(const char *text)
{
    const size_t length = strnlen(text, FILTER_TEXT_BYTES_MAX + 1);
    if (length > FILTER_TEXT_BYTES_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "where: the text has more than %d bytes", FILTER_TEXT_BYTES_MAX);
    reading r = {0};
    ww_status status = WW_OK;
    for (size_t at = 0; status == WW_OK && text[at];) {
        const bool word = is_name((unsigned char)text[at]) && text[at] != '$';
        const size_t end = word ? word_end(text, at) : token_end(text, at);
        if (end == 0)
            return ww_fail(WW_INVALID_ARGUMENT, "where: what begins with '%c' at byte %zu does not end", text[at], at + 1);
        if (word)
            status = read_word(&r, text + at, end - at);
        else if (!is_blank(text, at))
            status = read_sign(&r, text, at);
        at = end;
    }
    if (status == WW_OK && r.depth > 0)
        return ww_fail(WW_INVALID_ARGUMENT, "where: %d '(' %s not closed", r.depth, r.depth == 1 ? "is" : "are");
    if (status == WW_OK && r.has_select && length > FILTER_SELECT_TEXT_BYTES_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "where: a text with a SELECT has more than %d bytes", FILTER_SELECT_TEXT_BYTES_MAX);
    return status;
}
