/* Filters and methods of texts. */
#include <string.h>
#include <utf8proc.h>

#include "model/template/evaluate.h"

/* Maps each character by Unicode's simple case mapping; one that would become several characters stays. */
value text_case(work *w, const call *c)
{
    const letter_case wanted = (letter_case)c->how;
    const text t = value_text(w, c->of);
    builder made = {0};
    bool begins = true;
    for (size_t i = 0; i < t.count; i++) {
        const utf8proc_int32_t code = (utf8proc_int32_t)CODE(t.chars[i]);
        const bool upper = wanted == UPPER || (wanted != LOWER && begins);
        const utf8proc_int32_t changed = upper ? utf8proc_toupper(code) : utf8proc_tolower(code);
        build_character(w, &made, (uint32_t)changed | (t.chars[i] & QUOTED));
        if (wanted == TITLE)
            begins = utf8proc_toupper(code) == utf8proc_tolower(code);
        else
            begins = wanted == WORDS && (is_space(t.chars[i]) || (code > 0 && code < 128 && strchr("-({[<", code)));
    }
    return TEXT(built(&made));
}

value text_strip_call(work *w, const call *c)
{
    const text t = value_text(w, c->of);
    work_step(w, t.count / 64);
    return TEXT(text_strip(w, t, optional_text(w, &c->a[0]), c->how & LEFT, c->how & RIGHT));
}

/* Splits at runs of white space. */
static value split_words(work *w, text t, int64_t cuts_max)
{
    value made = make_collection(w, VALUE_LIST);
    for (t = text_strip(w, t, NULL, true, false); t.count > 0; t = text_strip(w, t, NULL, true, false)) {
        size_t end = 0;
        while (end < t.count && (cuts_max == 0 || !is_space(t.chars[end])))
            end++;
        list_add(w, made, TEXT(text_part(t, 0, end)));
        t = text_part(t, end, t.count);
        cuts_max--;
    }
    return made;
}

value text_split(work *w, text t, const text *separator, int64_t cuts_max)
{
    size_t from = 0;
    if (!separator)
        return split_words(w, t, cuts_max);
    if (separator->count == 0)
        work_fail(w, WW_INVALID_ARGUMENT, "the separator is empty");
    value made = make_collection(w, VALUE_LIST);
    for (; cuts_max != 0; cuts_max--) {
        const int64_t at = text_find(w, t, *separator, from);
        if (at == NOT_FOUND)
            break;
        list_add(w, made, TEXT(text_part(t, from, (size_t)at)));
        from = (size_t)at + separator->count;
    }
    list_add(w, made, TEXT(text_part(t, from, t.count)));
    return made;
}

value text_split_call(work *w, const call *c)
{
    return text_split(w, c->of.text, optional_text(w, &c->a[0]), value_integer(value_or(c->a[1], INTEGER(-1))));
}

static value split_lines(work *w, text t)
{
    const text line = literal(w, "\n");
    return text_split(w, t, &line, -1);
}

value text_splitlines(work *w, const call *c)
{
    value made = split_lines(w, c->of.text);
    if (made.all->items[made.all->count - 1].text.count == 0)
        made.all->count--;
    return made;
}

value text_replace(work *w, const call *c)
{
    const text t = value_text(w, c->of), old = text_argument(w, c->a[0]), new = text_argument(w, c->a[1]);
    builder made = {0};
    if (old.count == 0)
        work_fail(w, WW_UNSUPPORTED, "replace() of an empty text");
    const value parts = text_split(w, t, &old, value_integer(value_or(c->a[2], INTEGER(-1))));
    for (size_t i = 0; i < parts.all->count; i++) {
        if (i > 0)
            build(w, &made, new);
        build(w, &made, parts.all->items[i].text);
    }
    return TEXT(built(&made));
}

/* Indents every line except the first; empty lines only if `blank`. */
value text_indent(work *w, const call *c)
{
    const value width = value_or(c->a[0], INTEGER(4));
    const text space = width.type == VALUE_TEXT ? width.text : operator_apply(w, '*', TEXT(literal(w, " ")), width).text;
    const bool first = value_truth(c->a[1]), blank = value_truth(c->a[2]);
    builder made = {0};
    if (c->of.type == VALUE_UNDEFINED)
        fail_undefined(w, c->of);
    const value lines = split_lines(w, value_text(w, c->of));
    for (size_t i = 0; i < lines.all->count; i++) {
        const text line = lines.all->items[i].text;
        build_words(w, &made, i > 0 ? "\n" : "");
        if (i == 0 ? first : blank || line.count > 0)
            build(w, &made, space);
        build(w, &made, line);
    }
    return TEXT(built(&made));
}

static bool has_end(text t, text end, int side)
{
    return side == LEFT ? text_starts(t, end) : text_ends(t, end);
}

/* startswith and endswith, for one text or any of a tuple. */
value text_has_end(work *w, const call *c)
{
    if (c->a[0].type != VALUE_LIST)
        return BOOLEAN(has_end(c->of.text, text_argument(w, c->a[0]), c->how));
    for (size_t i = 0; i < c->a[0].all->count; i++)
        if (has_end(c->of.text, text_argument(w, c->a[0].all->items[i]), c->how))
            return BOOLEAN(true);
    return BOOLEAN(false);
}

value text_remove_end(work *w, const call *c)
{
    const text t = c->of.text, end = text_argument(w, c->a[0]);
    if (!has_end(t, end, c->how))
        return c->of;
    return TEXT(c->how == LEFT ? text_part(t, end.count, t.count) : text_part(t, 0, t.count - end.count));
}

value text_find_call(work *w, const call *c)
{
    return INTEGER(text_find(w, c->of.text, text_argument(w, c->a[0]), 0));
}

value text_count(work *w, const call *c)
{
    const text what = text_argument(w, c->a[0]);
    return INTEGER(text_split(w, c->of.text, &what, -1).all->count - 1);
}

value text_isdigit(work *w, const call *c)
{
    bool all = c->of.text.count > 0;
    work_step(w, c->of.text.count / 64);
    for (size_t i = 0; i < c->of.text.count && all; i++)
        all = CODE(c->of.text.chars[i]) >= '0' && CODE(c->of.text.chars[i]) <= '9';
    return BOOLEAN(all);
}

/* The argument that {}, {0} or {name} stands for. */
static value format_argument(work *w, const arguments *given, text name, size_t *next)
{
    const collection *items = given->items.all;
    const bool digit = name.count == 1 && CODE(name.chars[0]) >= '0' && CODE(name.chars[0]) <= '9';
    const value *found = NULL;
    if (name.count > 0 && !digit)
        found = dict_find(w, given->named, TEXT(name));
    else if (digit && CODE(name.chars[0]) - '0' < items->count)
        found = &items->items[CODE(name.chars[0]) - '0'];
    else if (!digit && *next < items->count)
        found = &items->items[(*next)++];
    if (!found)
        work_fail(w, WW_INVALID_ARGUMENT, "format() has no value for a part of the text");
    return *found;
}

/* Python's format() with {}, {0} and {name}, without format specifications. */
value text_format(work *w, const call *c)
{
    const text t = c->of.text, close = literal(w, "}");
    builder made = {0};
    size_t next = 0;
    for (size_t i = 0; i < t.count; i++) {
        const uint32_t code = CODE(t.chars[i]);
        const bool brace = code == '{' || code == '}';
        if (!brace || (i + 1 < t.count && CODE(t.chars[i + 1]) == code)) {
            build_character(w, &made, t.chars[i]);
            i += brace; /* {{ is { */
            continue;
        }
        const int64_t end = code == '{' ? text_find(w, t, close, i) : NOT_FOUND;
        if (end == NOT_FOUND)
            work_fail(w, WW_INVALID_ARGUMENT, "format() of a text with a single brace");
        build(w, &made, value_text(w, format_argument(w, c->given, text_part(t, i + 1, (size_t)end), &next)));
        i = (size_t)end;
    }
    return TEXT(built(&made));
}

/* The filter `format`: Python's % operator with %s and %d. */
value text_percent(work *w, const call *c)
{
    const text t = text_argument(w, c->of);
    const collection *given = c->given->items.all;
    builder made = {0};
    size_t next = 0;
    for (size_t i = 0; i < t.count; i++) {
        const uint32_t kind = CODE(t.chars[i]) == '%' && i + 1 < t.count ? CODE(t.chars[i + 1]) : 0;
        if (kind != 's' && kind != 'd') {
            build_character(w, &made, t.chars[i]);
            i += kind == '%';
            continue;
        }
        if (next == given->count)
            work_fail(w, WW_INVALID_ARGUMENT, "format has %zu values; the text has more places", given->count);
        build(w, &made, value_text(w, given->items[next++]));
        i++;
    }
    return TEXT(built(&made));
}
