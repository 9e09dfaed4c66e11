/* Creating and comparing values. */
#include "model/template/value.h"

#include <string.h>

#include "base/json/json_value.h"

value make_collection(work *w, value_type type)
{
    return (value){.type = type, .all = work_alloc(w, 1, sizeof(collection))};
}

/* Makes room for one more item, which may itself be a collection. */
static void reserve(work *w, value in, value item)
{
    collection *c = in.all;
    const int depth = item.type == VALUE_LIST || item.type == VALUE_DICT ? item.all->depth + 1 : 0;
    if (depth > TEMPLATE_NESTING_MAX)
        work_fail(w, WW_OUT_OF_RANGE, "lists and dictionaries more than %d levels deep", TEMPLATE_NESTING_MAX);
    if (in.type != VALUE_NAMESPACE && c->depth < depth)
        c->depth = depth;
    if (c->count < c->capacity)
        return;
    const size_t capacity = 2 * c->capacity + 4;
    value *items = work_alloc(w, capacity, sizeof *items);
    value *keys = in.type == VALUE_LIST ? NULL : work_alloc(w, capacity, sizeof *keys);
    for (size_t i = 0; i < c->count; i++) {
        items[i] = c->items[i];
        if (keys)
            keys[i] = c->keys[i];
    }
    c->items = items;
    c->keys = keys;
    c->capacity = capacity;
}

void list_add(work *w, value list, value item)
{
    work_step(w, 1);
    reserve(w, list, item);
    list.all->items[list.all->count++] = item;
}

value *dict_find(work *w, value dict, value key)
{
    const collection *c = dict.all;
    work_step(w, 1 + c->count / 8);
    for (size_t i = 0; i < c->count; i++)
        if (key.type == c->keys[i].type &&
            (key.type == VALUE_TEXT ? text_equal(c->keys[i].text, key.text) : c->keys[i].integer == key.integer))
            return &c->items[i];
    return NULL;
}

void dict_put(work *w, value dict, value key, value item)
{
    collection *c = dict.all;
    if (key.type != VALUE_TEXT && key.type != VALUE_INTEGER)
        work_fail(w, WW_UNSUPPORTED, "a key is a %s; it must be a text or an integer", value_python_name(key));
    reserve(w, dict, item);
    value *old = dict_find(w, dict, key);
    if (!old) {
        c->keys[c->count] = key;
        old = &c->items[c->count++];
    }
    *old = item;
}

value value_elements(work *w, value v)
{
    if (v.type == VALUE_LIST)
        return v;
    value list = make_collection(w, VALUE_LIST);
    if (v.type == VALUE_DICT)
        for (size_t i = 0; i < v.all->count; i++)
            list_add(w, list, v.all->keys[i]);
    else if (v.type == VALUE_TEXT)
        for (size_t i = 0; i < v.text.count; i++)
            list_add(w, list, TEXT(text_part(v.text, i, i + 1)));
    else if (v.type != VALUE_UNDEFINED)
        work_fail(w, WW_INVALID_ARGUMENT, "a %s has no elements", value_python_name(v));
    return list;
}

bool value_is_integer(value v)
{
    return v.type == VALUE_BOOL || v.type == VALUE_INTEGER;
}

bool value_is_number(value v)
{
    return value_is_integer(v) || v.type == VALUE_REAL;
}

double value_real(value v)
{
    return v.type == VALUE_REAL ? v.real : (double)value_integer(v);
}

int64_t value_integer(value v)
{
    return v.type == VALUE_BOOL ? v.truth : v.integer;
}

bool value_truth(value v)
{
    if (value_is_number(v))
        return value_real(v) != 0;
    if (v.type == VALUE_TEXT)
        return v.text.count > 0;
    if (v.type == VALUE_LIST || v.type == VALUE_DICT)
        return v.all->count > 0;
    return v.type != VALUE_UNDEFINED && v.type != VALUE_NONE;
}

static bool collections_equal(work *w, value a, value b)
{
    if (a.all->count != b.all->count)
        return false;
    for (size_t i = 0; i < a.all->count; i++) {
        const value *other = a.type == VALUE_LIST ? &b.all->items[i] : dict_find(w, b, a.all->keys[i]);
        if (!other || !value_equal(w, a.all->items[i], *other))
            return false;
    }
    return true;
}

bool value_equal(work *w, value a, value b)
{
    work_step(w, 1);
    if (value_is_integer(a) && value_is_integer(b))
        return value_integer(a) == value_integer(b);
    if (value_is_number(a) && value_is_number(b))
        return value_real(a) == value_real(b);
    if (a.type != b.type)
        return false;
    if (a.type == VALUE_TEXT) {
        work_step(w, a.text.count / 64);
        return text_equal(a.text, b.text);
    }
    if (a.type == VALUE_LIST || a.type == VALUE_DICT)
        return collections_equal(w, a, b);
    return a.type == VALUE_UNDEFINED || a.type == VALUE_NONE || a.all == b.all;
}

static int texts_compare(work *w, text a, text b)
{
    size_t i = 0;
    while (i < a.count && i < b.count && CODE(a.chars[i]) == CODE(b.chars[i]))
        i++;
    work_step(w, 1 + i / 64);
    if (i < a.count && i < b.count)
        return CODE(a.chars[i]) < CODE(b.chars[i]) ? -1 : 1;
    return (a.count > b.count) - (a.count < b.count);
}

int value_compare(work *w, value a, value b)
{
    if (value_is_integer(a) && value_is_integer(b))
        return (value_integer(a) > value_integer(b)) - (value_integer(a) < value_integer(b));
    if (value_is_number(a) && value_is_number(b))
        return (value_real(a) > value_real(b)) - (value_real(a) < value_real(b));
    if (a.type == VALUE_TEXT && b.type == VALUE_TEXT)
        return texts_compare(w, a.text, b.text);
    work_fail(w, WW_INVALID_ARGUMENT, "a %s and a %s have no order", value_python_name(a), value_python_name(b));
}

const char *value_python_name(value v)
{
    static const char *const kinds[] = {"Undefined", "NoneType", "bool",      "int",  "float", "str",
                                        "list",      "dict",     "Namespace", "Loop", "Macro", "function"};
    return v.type == VALUE_LIST && v.all->tuple ? "tuple" : kinds[v.type];
}

static value text_from_json(work *w, const char *json)
{
    char *bytes = work_alloc(w, (size_t)(json_end(json) - json), 1);
    return TEXT(text_from_utf8(w, bytes, json_text_read(json, bytes), QUOTED));
}

value value_from_json(work *w, const char *json)
{
    const json_type type = json_type_of(json);
    if (type == JSON_NULL)
        return NONE;
    if (type == JSON_FALSE || type == JSON_TRUE)
        return BOOLEAN(type == JSON_TRUE);
    if (type == JSON_TEXT)
        return text_from_json(w, json);
    if (type == JSON_NUMBER) {
        const json_number n = json_number_of(json);
        return n.is_integer ? INTEGER(n.integer) : REAL(n.real);
    }
    value made = make_collection(w, type == JSON_LIST ? VALUE_LIST : VALUE_DICT);
    for (const char *at = json_first(json); at; at = json_next(at))
        if (type == JSON_LIST)
            list_add(w, made, value_from_json(w, at));
        else
            dict_put(w, made, text_from_json(w, at), value_from_json(w, json_member(at)));
    return made;
}
