/* Filters and methods of lists and dictionaries. */
#include "model/template/evaluate.h"

/* The part of a value that "a.b" or an integer names. */
static value attribute(work *w, value of, value path)
{
    if (path.type != VALUE_TEXT)
        return value_element(w, of, path);
    const text dot = literal(w, ".");
    const value names = text_split(w, path.text, &dot, -1);
    for (size_t i = 0; i < names.all->count; i++)
        of = value_member(w, of, names.all->items[i].text, false);
    return of;
}

/* The elements of a value; none if the value is false. */
static const collection *true_elements(work *w, value of)
{
    return value_elements(w, value_truth(of) ? of : UNDEFINED).all;
}

/* The arguments without the first `count` of them. */
static arguments arguments_after(work *w, const arguments *given, size_t count)
{
    const arguments rest = {make_collection(w, VALUE_LIST), given->named};
    for (size_t i = count; i < given->items.all->count; i++)
        list_add(w, rest.items, given->items.all->items[i]);
    return rest;
}

/* An argument by its position or its keyword; undefined if missing. */
static value item_at(const call *c, size_t at)
{
    return at < c->given->items.all->count ? c->given->items.all->items[at] : UNDEFINED;
}

static value keyword(work *w, const call *c, const char *name)
{
    const value *found = dict_find(w, c->given->named, TEXT(literal(w, name)));
    return found ? *found : UNDEFINED;
}

value list_map(work *w, const call *c)
{
    const collection *list = true_elements(w, c->of);
    const value path = keyword(w, c, "attribute"), missing = keyword(w, c, "default");
    const arguments rest = arguments_after(w, c->given, 1);
    value made = make_collection(w, VALUE_LIST);
    for (size_t i = 0; i < list->count; i++) {
        value item = list->items[i];
        if (path.type != VALUE_UNDEFINED)
            item = attribute(w, item, path);
        else
            item = builtin_apply(w, FILTER, text_argument(w, item_at(c, 0)), item, &rest);
        list_add(w, made, value_or(item, missing));
    }
    return made;
}

/* select and reject, and the same by an attribute: the elements for which a test holds or, without a test, that are true. */
value list_select(work *w, const call *c)
{
    const collection *list = true_elements(w, c->of);
    const bool keep = c->how & KEEP, of_attribute = c->how & OF_ATTRIBUTE;
    const value path = item_at(c, 0), test = item_at(c, of_attribute);
    const arguments rest = arguments_after(w, c->given, 1 + of_attribute);
    value made = make_collection(w, VALUE_LIST);
    for (size_t i = 0; i < list->count; i++) {
        value tested = of_attribute ? attribute(w, list->items[i], path) : list->items[i];
        if (test.type != VALUE_UNDEFINED)
            tested = builtin_apply(w, TEST, text_argument(w, test), tested, &rest);
        if (value_truth(tested) == keep)
            list_add(w, made, list->items[i]);
    }
    return made;
}

value list_join(work *w, const call *c)
{
    const collection *list = value_elements(w, c->of).all;
    const text between = value_text(w, c->a[0]);
    builder made = {0};
    for (size_t i = 0; i < list->count; i++) {
        const value item = c->a[1].type == VALUE_UNDEFINED ? list->items[i] : attribute(w, list->items[i], c->a[1]);
        if (i > 0)
            build(w, &made, between);
        build(w, &made, value_text(w, item));
    }
    return TEXT(built(&made));
}

/* The method join() of the separator. */
value text_join(work *w, const call *c)
{
    return list_join(w, &(call){.of = c->a[0], .a = {c->of}});
}

value list_end(work *w, const call *c)
{
    const collection *list = value_elements(w, c->of).all;
    if (list->count == 0)
        return UNDEFINED;
    return list->items[c->how == FIRST ? 0 : list->count - 1];
}

value list_reverse(work *w, const call *c)
{
    const bool whole = c->of.type == VALUE_TEXT || c->of.type == VALUE_LIST;
    return value_slice(w, whole ? c->of : value_elements(w, c->of), (const value[3]){NONE, NONE, INTEGER(-1)});
}

value list_count(work *w, const call *c)
{
    int64_t count = 0;
    for (size_t i = 0; i < c->of.all->count; i++)
        count += value_equal(w, c->of.all->items[i], c->a[0]);
    return INTEGER(count);
}

typedef struct sorting {
    value path; /* to the value to compare by; undefined: the element itself */
    bool down, exact;
} sorting;

/* The value by which an element is compared. Case is ignored unless `exact`. */
static value sort_key(work *w, value item, const sorting *s)
{
    const value key = s->path.type == VALUE_UNDEFINED ? item : attribute(w, item, s->path);
    return key.type == VALUE_TEXT && !s->exact ? text_case(w, &(call){.of = key, .how = LOWER}) : key;
}

/* Insertion sort is stable. Comparisons count as steps, which bounds the time. */
static value sorted(work *w, value of, sorting s)
{
    const value list = value_elements(w, of), made = make_collection(w, VALUE_LIST), keys = make_collection(w, VALUE_LIST);
    for (size_t i = 0; i < list.all->count; i++) {
        const value item = list.all->items[i], key = sort_key(w, item, &s);
        size_t at = i;
        list_add(w, made, item);
        list_add(w, keys, key);
        for (; at > 0; at--) {
            const int order = value_compare(w, key, keys.all->items[at - 1]);
            if (s.down ? order <= 0 : order >= 0)
                break;
            work_step(w, 1);
            made.all->items[at] = made.all->items[at - 1];
            keys.all->items[at] = keys.all->items[at - 1];
        }
        made.all->items[at] = item;
        keys.all->items[at] = key;
    }
    return made;
}

value list_sort(work *w, const call *c)
{
    return sorted(w, c->of, (sorting){.down = value_truth(c->a[0]), .exact = value_truth(c->a[1]), .path = c->a[2]});
}

value dict_sort(work *w, const call *c)
{
    const bool by_value = c->a[1].type == VALUE_TEXT && text_is(c->a[1].text, "value");
    return sorted(w, dict_items(w, c),
                  (sorting){.exact = value_truth(c->a[0]), .path = INTEGER(by_value), .down = value_truth(c->a[2])});
}

/* min and max. */
value list_extreme(work *w, const call *c)
{
    const value list = sorted(w, c->of, (sorting){.down = c->how == LAST, .exact = value_truth(c->a[0]), .path = c->a[1]});
    return list_end(w, &(call){.of = list, .how = FIRST});
}

value list_unique(work *w, const call *c)
{
    const collection *list = value_elements(w, c->of).all;
    const sorting s = {.exact = value_truth(c->a[0]), .path = c->a[1]};
    value made = make_collection(w, VALUE_LIST), keys = make_collection(w, VALUE_LIST);
    for (size_t i = 0; i < list->count; i++) {
        const value key = sort_key(w, list->items[i], &s);
        if (value_truth(operator_apply(w, 'i', key, keys)))
            continue;
        list_add(w, keys, key);
        list_add(w, made, list->items[i]);
    }
    return made;
}

value dict_items(work *w, const call *c)
{
    value made = make_collection(w, VALUE_LIST);
    if (c->of.type != VALUE_DICT && c->of.type != VALUE_UNDEFINED)
        work_fail(w, WW_INVALID_ARGUMENT, "a %s has no items", value_python_name(c->of));
    for (size_t i = 0; c->of.type == VALUE_DICT && i < c->of.all->count; i++) {
        value pair = make_collection(w, VALUE_LIST);
        list_add(w, pair, c->of.all->keys[i]);
        list_add(w, pair, c->of.all->items[i]);
        pair.all->tuple = true;
        list_add(w, made, pair);
    }
    return made;
}

value dict_values(work *w, const call *c)
{
    value made = make_collection(w, VALUE_LIST);
    for (size_t i = 0; i < c->of.all->count; i++)
        list_add(w, made, c->of.all->items[i]);
    return made;
}

value dict_get(work *w, const call *c)
{
    const value *found = dict_find(w, c->of, c->a[0]);
    return found ? *found : value_or(c->a[1], NONE);
}
