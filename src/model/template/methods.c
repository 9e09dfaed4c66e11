/* Methods of texts, lists, dictionaries and loops; what they share with filters. */
#include <string.h>
#include <utf8proc.h>

#include "base/text.h"
#include "model/template/evaluate.h"

value argument(run *r, const arguments *given, size_t at, const char *name, value missing)
{
    const value *named = at < given->count ? &given->items[at] : dict_find(&r->w, given->named, literal(name));
    return named ? *named : missing;
}

bool argument_is_text(run *r, value v, const char *what)
{
    if (v.type != VALUE_TEXT)
        work_fail(&r->w, WW_INVALID_ARGUMENT, "%s is a %s; it must be a text", what, value_kind_name(v));
    return v.type == VALUE_TEXT;
}

/* ---- letters ---------------------------------------------------------------------------------------------------------------
 */

/* Each character by Unicode's table of single characters; one that becomes several in other cases stays. */
value text_case(run *r, value of, const arguments *given)
{
    const letter_case wanted = (letter_case)given->how;
    const marked text = value_text(&r->w, of);
    builder made = {0};
    bool begins = true;
    for (size_t at = 0, bytes; at < text.bytes && r->w.status == WW_OK; at += bytes) {
        utf8proc_uint8_t letters[4];
        char marks[4];
        uint32_t c = 0;
        bytes = utf8_read(text.text + at, text.bytes - at, &c);
        bytes = bytes > 0 ? bytes : 1;
        const bool upper = wanted == UPPER || (wanted != LOWER && begins);
        const utf8proc_int32_t changed = upper ? utf8proc_toupper((utf8proc_int32_t)c) : utf8proc_tolower((utf8proc_int32_t)c);
        const size_t written = (size_t)utf8proc_encode_char(changed, letters);
        memset(marks, text.marks ? text.marks[at] : 0, sizeof marks);
        build(&r->w, &made, (marked){(const char *)letters, text.marks ? marks : NULL, written});
        begins = (wanted == TITLE && utf8proc_toupper(changed) == utf8proc_tolower(changed)) ||
                 (wanted == WORDS && (char_is_space(text, at) || (c < 128 && c > 0 && strchr("-({[<", (int)c))));
    }
    return built_value(&made);
}

/* ---- parts -----------------------------------------------------------------------------------------------------------------
 */

value text_strip(run *r, value of, const arguments *given)
{
    const value set = argument(r, given, 0, "chars", NONE);
    const marked text = value_text(&r->w, of);
    if (set.type != VALUE_NONE && !argument_is_text(r, set, "chars"))
        return of;
    work_step(&r->w, text.bytes / 64);
    return TEXT_OF(marked_strip(text, set.type == VALUE_TEXT ? &set.text : NULL, given->how & LEFT, given->how & RIGHT));
}

/* At white space, any amount of it. */
static value split_words(run *r, marked text, int64_t most)
{
    value made = list_make(&r->w, text.bytes / 2 + 1);
    text = marked_strip(text, NULL, true, false);
    while (text.bytes > 0 && r->w.status == WW_OK) {
        size_t end = 0;
        while (end < text.bytes && (most == 0 || !char_is_space(text, end)))
            end += char_bytes(text, end);
        list_add(&r->w, &made, TEXT_OF(marked_part(text, 0, end)));
        text = marked_strip(marked_part(text, end, text.bytes), NULL, true, false);
        most--;
    }
    return made;
}

value text_split(run *r, marked text, const marked *separator, int64_t most)
{
    size_t count = 1, from = 0;
    if (!separator)
        return split_words(r, text, most);
    if (separator->bytes == 0)
        work_fail(&r->w, WW_INVALID_ARGUMENT, "the separator is empty");
    for (size_t at = 0; r->w.status == WW_OK && (at = marked_find(&r->w, text, *separator, at)) <= text.bytes;) {
        count++;
        at += separator->bytes;
    }
    value made = list_make(&r->w, count);
    for (; r->w.status == WW_OK && made.list->count + 1 < count && most != 0; most--) {
        const size_t at = marked_find(&r->w, text, *separator, from);
        list_add(&r->w, &made, TEXT_OF(marked_part(text, from, at)));
        from = at + separator->bytes;
    }
    list_add(&r->w, &made, TEXT_OF(marked_part(text, from, text.bytes)));
    return made;
}

static value method_split(run *r, value of, const arguments *given)
{
    const value separator = argument(r, given, 0, "sep", NONE), most = argument(r, given, 1, "maxsplit", INTEGER(-1));
    if (separator.type == VALUE_NONE)
        return text_split(r, of.text, NULL, value_integer(most));
    return argument_is_text(r, separator, "sep") ? text_split(r, of.text, &separator.text, value_integer(most)) : of;
}

static value method_splitlines(run *r, value of, const arguments *given)
{
    (void)given;
    const marked line = literal("\n");
    const bool ends = marked_ends(of.text, line);
    value made = text_split(r, of.text, &line, -1);
    if (r->w.status == WW_OK && (ends || of.text.bytes == 0))
        made.list->count--;
    return made;
}

value text_replace(run *r, value of, const arguments *given)
{
    const value old = argument(r, given, 0, "old", NONE), new = argument(r, given, 1, "new", NONE);
    const value most = argument(r, given, 2, "count", INTEGER(-1));
    const marked text = value_text(&r->w, of);
    builder made = {0};
    if (!argument_is_text(r, old, "old") || !argument_is_text(r, new, "new"))
        return of;
    if (old.text.bytes == 0) {
        work_fail(&r->w, WW_UNSUPPORTED, "replace() of an empty text");
        return of;
    }
    const value parts = text_split(r, text, &old.text, most.type == VALUE_INTEGER ? most.integer : -1);
    for (size_t i = 0; r->w.status == WW_OK && i < parts.list->count; i++) {
        build(&r->w, &made, i > 0 ? new.text : literal(""));
        build(&r->w, &made, parts.list->items[i].text);
    }
    return built_value(&made);
}

/* ---- questions -------------------------------------------------------------------------------------------------------------
 */

static bool has_end(marked text, marked end, int side)
{
    return side == LEFT ? marked_starts(text, end) : marked_ends(text, end);
}

static value method_has_end(run *r, value of, const arguments *given)
{
    const value with = argument(r, given, 0, "prefix", NONE);
    bool has = false;
    if (with.type != VALUE_LIST)
        return BOOLEAN(argument_is_text(r, with, "the argument") && has_end(of.text, with.text, given->how));
    for (size_t i = 0; i < with.list->count && !has; i++)
        has =
            argument_is_text(r, with.list->items[i], "the argument") && has_end(of.text, with.list->items[i].text, given->how);
    return BOOLEAN(has);
}

static value method_remove_end(run *r, value of, const arguments *given)
{
    const value with = argument(r, given, 0, "prefix", NONE);
    if (!argument_is_text(r, with, "the argument") || !has_end(of.text, with.text, given->how))
        return of;
    const size_t from = given->how == LEFT ? with.text.bytes : 0;
    return TEXT_OF(marked_part(of.text, from, from + of.text.bytes - with.text.bytes));
}

static value method_find_text(run *r, value of, const arguments *given)
{
    const value what = argument(r, given, 0, "sub", NONE);
    if (!argument_is_text(r, what, "sub"))
        return of;
    const size_t at = marked_find(&r->w, of.text, what.text, 0);
    return INTEGER(at > of.text.bytes ? -1 : (int64_t)char_count(marked_part(of.text, 0, at)));
}

static value method_isdigit(run *r, value of, const arguments *given)
{
    (void)given;
    bool all = of.text.bytes > 0;
    for (size_t i = 0; i < of.text.bytes && all && work_step(&r->w, 1); i++)
        all = of.text.text[i] >= '0' && of.text.text[i] <= '9';
    return BOOLEAN(all);
}

static value method_count(run *r, value of, const arguments *given)
{
    const value what = argument(r, given, 0, "value", NONE);
    int64_t count = 0;
    if (of.type == VALUE_TEXT)
        return argument_is_text(r, what, "sub") ? INTEGER(text_split(r, of.text, &what.text, -1).list->count - 1) : of;
    for (size_t i = 0; i < of.list->count; i++)
        count += value_equal(&r->w, of.list->items[i], what);
    return INTEGER(count);
}

static value method_join(run *r, value of, const arguments *given)
{
    const value list = value_elements(&r->w, argument(r, given, 0, "iterable", NONE));
    builder made = {0};
    for (size_t i = 0; i < list.list->count && r->w.status == WW_OK; i++) {
        build(&r->w, &made, i > 0 ? of.text : literal(""));
        if (argument_is_text(r, list.list->items[i], "an element"))
            build(&r->w, &made, list.list->items[i].text);
    }
    return built_value(&made);
}

/* Python's format() of {}, {0} and {name}, without anything behind a colon. */
static value method_format(run *r, value of, const arguments *given)
{
    builder made = {0};
    size_t next = 0;
    for (size_t at = 0, end; at < of.text.bytes && r->w.status == WW_OK; at = end) {
        const char c = of.text.text[at];
        for (end = at; end < of.text.bytes && of.text.text[end] != '{' && of.text.text[end] != '}';)
            end++;
        build(&r->w, &made, marked_part(of.text, at, end));
        if (end > at)
            continue;
        if (end + 1 < of.text.bytes && of.text.text[end + 1] == c) {
            build(&r->w, &made, marked_part(of.text, end, end + 1));
            end += 2;
            continue;
        }
        const size_t close = marked_find(&r->w, of.text, literal("}"), end);
        const marked name = close < of.text.bytes && c == '{' ? marked_part(of.text, end + 1, close) : literal("{");
        const bool digit = name.bytes == 1 && name.text[0] >= '0' && name.text[0] <= '9';
        const size_t place = digit ? (size_t)(name.text[0] - '0') : next;
        const value *found = name.bytes > 0 && !digit ? dict_find(&r->w, given->named, name)
                             : place < given->count   ? &given->items[place]
                                                      : NULL;
        if (found)
            value_write(&r->w, &made, *found, false);
        else
            work_fail(&r->w, WW_INVALID_ARGUMENT, "format() has no value for a part of the text");
        next += name.bytes == 0;
        end = close + 1;
    }
    return built_value(&made);
}

/* ---- dictionaries and loops -----------------------------------------------------------------------------------------------
 */

value dict_items(run *r, value of, const arguments *given)
{
    (void)given;
    value made = list_make(&r->w, of.type == VALUE_DICT ? of.dict->count : 0);
    if (of.type != VALUE_DICT && of.type != VALUE_UNDEFINED)
        work_fail(&r->w, WW_INVALID_ARGUMENT, "a %s has no items", value_kind_name(of));
    for (size_t i = 0; of.type == VALUE_DICT && i < of.dict->count && r->w.status == WW_OK; i++) {
        value pair = list_make(&r->w, 2);
        list_add(&r->w, &pair, of.dict->keys[i]);
        list_add(&r->w, &pair, of.dict->items[i]);
        if (r->w.status == WW_OK)
            pair.list->tuple = true;
        list_add(&r->w, &made, pair);
    }
    return made;
}

value value_list_of(run *r, value of, const arguments *given)
{
    (void)given;
    return value_elements(&r->w, of);
}

static value method_values(run *r, value of, const arguments *given)
{
    (void)given;
    value made = list_make(&r->w, of.dict->count);
    for (size_t i = 0; i < of.dict->count; i++)
        list_add(&r->w, &made, of.dict->items[i]);
    return made;
}

static value method_get(run *r, value of, const arguments *given)
{
    const value key = argument(r, given, 0, "key", NONE);
    const value *found = dict_find_key(&r->w, of.dict, key);
    return found ? *found : argument(r, given, 1, "default", NONE);
}

static value method_cycle(run *r, value of, const arguments *given)
{
    const value *at = dict_find(&r->w, of.dict, literal("index0"));
    return at && given->count > 0 ? given->items[(size_t)at->integer % given->count] : UNDEFINED("cycle");
}

const builtin *method_find(value of, marked name)
{
    static const struct {
        value_type type;
        builtin method;
    } methods[] = {{VALUE_TEXT, {"strip", text_strip, LEFT | RIGHT}},
                   {VALUE_TEXT, {"lstrip", text_strip, LEFT}},
                   {VALUE_TEXT, {"rstrip", text_strip, RIGHT}},
                   {VALUE_TEXT, {"split", method_split, 0}},
                   {VALUE_TEXT, {"splitlines", method_splitlines, 0}},
                   {VALUE_TEXT, {"startswith", method_has_end, LEFT}},
                   {VALUE_TEXT, {"endswith", method_has_end, RIGHT}},
                   {VALUE_TEXT, {"removeprefix", method_remove_end, LEFT}},
                   {VALUE_TEXT, {"removesuffix", method_remove_end, RIGHT}},
                   {VALUE_TEXT, {"replace", text_replace, 0}},
                   {VALUE_TEXT, {"upper", text_case, UPPER}},
                   {VALUE_TEXT, {"lower", text_case, LOWER}},
                   {VALUE_TEXT, {"title", text_case, TITLE}},
                   {VALUE_TEXT, {"capitalize", text_case, CAPITALIZED}},
                   {VALUE_TEXT, {"find", method_find_text, 0}},
                   {VALUE_TEXT, {"count", method_count, 0}},
                   {VALUE_TEXT, {"isdigit", method_isdigit, 0}},
                   {VALUE_TEXT, {"join", method_join, 0}},
                   {VALUE_TEXT, {"format", method_format, 0}},
                   {VALUE_LIST, {"count", method_count, 0}},
                   {VALUE_DICT, {"items", dict_items, 0}},
                   {VALUE_DICT, {"keys", value_list_of, 0}},
                   {VALUE_DICT, {"values", method_values, 0}},
                   {VALUE_DICT, {"get", method_get, 0}},
                   {VALUE_NAMESPACE, {"cycle", method_cycle, 0}}};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (methods[i].type == of.type && marked_is(name, methods[i].method.name))
            return &methods[i].method;
    return NULL;
}

value builtin_call(run *r, const builtin *called, value of, const arguments *given)
{
    const arguments with = {given->items, given->count, given->named, called->how};
    return called->function(r, of, &with);
}
