/* The tokens of SQLite's dialect, as far as they decide where a bracket or a statement ends.
 *
 * Quotes are '...', "..." and `...`, where a doubled quote stands for one, and [...]. Comments are -- to the end of the line
 * and slash-star. SQLite accepts a comment that is still open at the end of its input, which would swallow our bracket. A
 * parameter such as $name may continue with brackets, "$a(b)": nobody writes that on purpose, so it is refused.
 *
 * Subqueries are allowed wherever a value is, but not in FROM, and WITH is not allowed: SQLite substitutes the columns of such
 * a subquery into the expressions that use them. Ten subqueries that each use the previous one twice become a thousand copies
 * before anything runs or looks at the clock. Column names are copied too, so a text with a SELECT must be short.
 */
#include "store/filter/filter_text.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/json/json.h"
#include "base/json/json_value.h"
#include "store/filter/filter.h"

static bool is_name(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' || c >= 0x80;
}

/* Returns the position after the quoted text that begins at text[at], or 0 if it does not end. */
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

/* Returns the position after a comment. A line comment may end with the text, because a newline is added after it. */
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

/* Returns the position after the token at text[at], or 0 if it has no end. */
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

enum { DEPTH_MAX = 128 }; /* SQLite's parser allows at most 100 */

/* Where in a SELECT the text is, within one pair of brackets. */
typedef enum clause { ELSEWHERE, FROM_LIST, ON_CONDITION } clause;

typedef struct reading {
    int depth; /* open brackets */
    clause clauses[DEPTH_MAX + 1];
    bool expects_table; /* the last token was FROM, JOIN, a comma between tables, or a bracket opened after one of them */
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
        return ww_fail(WW_INVALID_ARGUMENT, "where: more than %d nested brackets", DEPTH_MAX);
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

/* ---- lists --------------------------------------------------------------------------------------------------------------- */

static ww_status list_check(const ww_parameter *value)
{
    json_fault fault;
    const char *name = value->name ? value->name : "?";
    const char *list = value->text && json_check(value->text, strlen(value->text), &fault) ? json_root(value->text) : NULL;
    bool sound = list && json_type_of(list) == JSON_LIST;
    for (const char *at = sound ? json_first(list) : NULL; sound && at; at = json_next(at))
        sound = json_type_of(at) != JSON_LIST && json_type_of(at) != JSON_OBJECT;
    if (!sound)
        return ww_fail(WW_INVALID_ARGUMENT,
                       "where: the list of parameter %s is not a JSON array of numbers, texts, true, false and null", name);
    return value->name && strchr(":@$", value->name[0])
               ? WW_OK
               : ww_fail(WW_INVALID_ARGUMENT, "where: a list needs a parameter with a name, as in \"lang IN :langs\"");
}

/* The list that is bound to the parameter at `text`, or NULL. */
static const ww_parameter *list_of(const filter_where *where, const char *text, size_t length)
{
    for (int64_t i = 0; i < where->value_count; i++) {
        const ww_parameter *value = &where->values[i];
        if (value->type == WW_VALUE_LIST && strlen(value->name) == length && memcmp(value->name, text, length) == 0)
            return value;
    }
    return NULL;
}

static bool closes_next(const char *text, size_t at)
{
    while (text[at] && is_blank(text, at))
        at = token_end(text, at);
    return text[at] == ')';
}

typedef enum before_list { BEHIND_OTHERS, BEHIND_IN, BEHIND_BRACKET } before_list; /* IN, or IN and a bracket */

/* Appends the token that ends at `end`, expanded if it is a list. */
static ww_status expand_token(const filter_where *where, size_t at, size_t end, before_list before, sqlite3_str *out)
{
    const char *text = where->text;
    const ww_parameter *list = strchr(":@$", text[at]) ? list_of(where, text + at, end - at) : NULL;
    if (!list)
        sqlite3_str_append(out, text + at, (int)(end - at));
    else if (before == BEHIND_IN)
        sqlite3_str_appendf(out, "(SELECT value FROM json_each(%s))", list->name);
    else if (before == BEHIND_BRACKET && closes_next(text, end))
        sqlite3_str_appendf(out, "SELECT value FROM json_each(%s)", list->name);
    else
        return ww_fail(WW_INVALID_ARGUMENT, "where: parameter %s is a list, which must stand alone after IN: \"lang IN %s\"",
                       list->name, list->name);
    return WW_OK;
}

static ww_status expand_lists(const filter_where *where, sqlite3_str *out)
{
    const char *text = where->text;
    before_list before = BEHIND_OTHERS;
    ww_status status = WW_OK;
    for (size_t at = 0, end; status == WW_OK && text[at]; at = end) {
        const bool word = is_name((unsigned char)text[at]) && text[at] != '$';
        end = word ? word_end(text, at) : token_end(text, at);
        status = expand_token(where, at, end, before, out);
        if (!is_blank(text, at))
            before = word && is_word(text + at, end - at, "IN") ? BEHIND_IN
                     : text[at] == '(' && before == BEHIND_IN   ? BEHIND_BRACKET
                                                                : BEHIND_OTHERS;
    }
    return status;
}

ww_status filter_text_expand(const filter_where *where, char **expanded)
{
    ww_status status = WW_OK;
    bool has_list = false;
    *expanded = NULL;
    for (int64_t i = 0; status == WW_OK && i < where->value_count; i++)
        if (where->values[i].type == WW_VALUE_LIST) {
            has_list = true;
            status = list_check(&where->values[i]);
        }
    if (status != WW_OK || !has_list)
        return status;
    sqlite3_str *out = sqlite3_str_new(NULL);
    status = expand_lists(where, out);
    char *made = sqlite3_str_finish(out);
    if (status == WW_OK && !made)
        status = ww_fail(WW_OUT_OF_MEMORY, "where: out of memory");
    if (status == WW_OK)
        *expanded = made;
    else
        sqlite3_free(made);
    return status;
}
