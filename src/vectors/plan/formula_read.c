/* Reads formulas. Whatever can be refused without a row is refused here. */
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/float_guard.h"
#include "base/instant.h"
#include "base/json/json.h"
#include "base/json/json_value.h"
#include "base/memory.h"
#include "base/structs.h"
#include "vectors/plan/formula.h"

STRUCT_INIT(ww_formula_row, {0})

typedef struct reader {
    ww_formula *out;
    ww_condition_reader condition; /* NULL: only those of filter.h */
    void *user;
    int depth;
} reader;

static ww_status read_term(reader *r, const char *value, int32_t *number);

static ww_status refuse(const char *name, const char *why)
{
    return ww_fail(WW_INVALID_ARGUMENT, "formula: %s%s%s", name, name[0] != '\0' ? ": " : "", why);
}

static ww_status add_term(reader *r, term_kind kind, int32_t *number)
{
    ww_formula *f = r->out;
    if (f->count == WW_FORMULA_TERMS_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "formula: more than %d terms", WW_FORMULA_TERMS_MAX);
    const ww_status status = array_reserve(&f->terms, &f->capacity, f->count + 1, sizeof *f->terms, "a formula");
    if (status != WW_OK)
        return status;
    *number = (int32_t)f->count;
    f->terms[f->count++] = (term){.kind = kind, .first = -1, .next = -1, .number = NAN};
    return WW_OK;
}

/* A text without its escapes, at its place in the formula, terminated. */
static const char *read_text(reader *r, const char *value)
{
    char *text = r->out->texts + (value - r->out->json);
    text[json_text_read(value, text)] = '\0';
    return text;
}

static ww_status read_number(const char *object, const char *name, const char *key, double *number)
{
    const char *value = json_find(object, key, strlen(key));
    if (!value || json_type_of(value) == JSON_NULL)
        return WW_OK;
    const json_number read = json_type_of(value) == JSON_NUMBER ? json_number_of(value) : (json_number){.real = NAN};
    *number = read.is_integer ? (double)read.integer : read.real;
    return isfinite(*number) ? WW_OK : ww_fail(WW_INVALID_ARGUMENT, "formula: %s.%s: a finite number is needed", name, key);
}

/* ---- fields and scores --------------------------------------------------------------------------------------------------- */

/* "$score" and "$score[7]". False: it begins like one, and is none. */
static bool score_number(const char *text, int64_t *number)
{
    const char *at = text + 6;
    *number = 0;
    if (*at == '\0')
        return true;
    if (*at++ != '[' || *at < '0' || *at > '9')
        return false;
    for (; *at >= '0' && *at <= '9'; at++)
        *number = *number < INT32_MAX ? 10 * *number + (*at - '0') : INT32_MAX;
    return at[0] == ']' && at[1] == '\0';
}

static bool is_score(const char *text)
{
    return strncmp(text, "$score", 6) == 0;
}

/* Finds the default of a score or a field. Keys are compared as they are written, those of scores by their number. */
static const char *find_default(const ww_formula *f, const char *name)
{
    const char *object = f->defaults ? json_root(f->defaults) : NULL;
    int64_t wanted = -1, number = 0;
    char key[32];
    if (!object)
        return NULL;
    if (!is_score(name))
        return json_find(object, name, strlen(name));
    (void)score_number(name, &wanted);
    for (const char *at = json_first(object); at; at = json_next(at)) {
        if (json_end(at) - at > (ptrdiff_t)sizeof key)
            continue;
        key[json_text_read(at, key)] = '\0';
        if (is_score(key) && score_number(key, &number) && number == wanted)
            return json_member(at);
    }
    return NULL;
}

static ww_status set_path(reader *r, int32_t number, const char *field)
{
    term *t = &r->out->terms[number];
    t->field = field;
    t->fallback = find_default(r->out, field);
    t->path = memory_alloc(sizeof *t->path);
    if (!t->path)
        return memory_failed("a formula", sizeof *t->path);
    const char *wrong = json_path_read(field, strlen(field), t->path);
    return wrong ? refuse(field, wrong) : WW_OK;
}

static ww_status read_variable(reader *r, const char *value, int32_t *number)
{
    const char *name = read_text(r, value);
    ww_status status = add_term(r, is_score(name) ? TERM_SCORE : TERM_FIELD, number);
    if (status != WW_OK || !is_score(name))
        return status == WW_OK ? set_path(r, *number, name) : status;
    term *t = &r->out->terms[*number];
    if (!score_number(name, &t->score))
        return refuse(name, "a score is $score or $score[1]");
    const char *fallback = find_default(r->out, name);
    const json_number read = fallback && json_type_of(fallback) == JSON_NUMBER ? json_number_of(fallback)
                                                                               : (json_number){.real = fallback ? NAN : 0.0};
    t->number = read.is_integer ? (double)read.integer : read.real;
    return isfinite(t->number) ? WW_OK : refuse(name, "its default must be a finite number");
}

static ww_status read_field_of(reader *r, const char *name, const char *value, int32_t number)
{
    return value && json_type_of(value) == JSON_TEXT ? set_path(r, number, read_text(r, value))
                                                     : refuse(name, "the name of a field is needed");
}

/* ---- operations ---------------------------------------------------------------------------------------------------------- */

/* Reads the next operand of an operation; `last` is the one before, -1 for none. */
static ww_status add_operand(reader *r, int32_t to, const char *value, int32_t *last)
{
    int32_t number = -1;
    const ww_status status = read_term(r, value, &number);
    if (status == WW_OK)
        *(*last < 0 ? &r->out->terms[to].first : &r->out->terms[*last].next) = number;
    *last = number;
    return status;
}

static ww_status read_list(reader *r, const char *name, const char *list, int32_t number)
{
    const term_kind kind = r->out->terms[number].kind;
    int32_t last = -1;
    ww_status status = json_type_of(list) == JSON_LIST ? WW_OK : refuse(name, "a list is needed");
    for (const char *at = status == WW_OK ? json_first(list) : NULL; status == WW_OK && at; at = json_next(at))
        status = add_operand(r, number, at, &last);
    return status == WW_OK && last < 0 && (kind == TERM_MAX || kind == TERM_MIN) ? refuse(name, "an operand is needed")
                                                                                 : status;
}

/* Reads the operands that these keys of an object have. */
static ww_status read_pair(reader *r, const char *name, const char *object, const char *const keys[2], int32_t number)
{
    int32_t last = -1;
    ww_status status = json_type_of(object) == JSON_OBJECT ? WW_OK : refuse(name, "an object is needed");
    for (int i = 0; status == WW_OK && i < 2; i++) {
        const char *value = json_find(object, keys[i], strlen(keys[i]));
        status = value ? add_operand(r, number, value, &last)
                       : ww_fail(WW_INVALID_ARGUMENT, "formula: %s: %s is needed", name, keys[i]);
    }
    return status;
}

static ww_status read_div(reader *r, const char *name, const char *object, int32_t number)
{
    const ww_status status = read_pair(r, name, object, (const char *const[]){"left", "right"}, number);
    return status == WW_OK ? read_number(object, name, "by_zero_default", &r->out->terms[number].number) : status;
}

static ww_status read_pow(reader *r, const char *name, const char *object, int32_t number)
{
    return read_pair(r, name, object, (const char *const[]){"base", "exponent"}, number);
}

static ww_status read_decay(reader *r, const char *name, const char *object, int32_t number)
{
    const bool linear = r->out->terms[number].kind == TERM_LIN_DECAY;
    double midpoint = 0.5, scale = 1.0;
    int32_t last = -1;
    const char *x = json_type_of(object) == JSON_OBJECT ? json_find(object, "x", 1) : NULL;
    const char *target = x ? json_find(object, "target", 6) : NULL;
    ww_status status = x ? add_operand(r, number, x, &last) : refuse(name, "an object with x is needed");
    if (status == WW_OK && target && json_type_of(target) != JSON_NULL)
        status = add_operand(r, number, target, &last);
    if (status == WW_OK)
        status = read_number(object, name, "midpoint", &midpoint);
    if (status == WW_OK)
        status = read_number(object, name, "scale", &scale);
    if (status == WW_OK && !(linear ? midpoint >= 0.0 && midpoint <= 1.0 : midpoint > 0.0 && midpoint < 1.0))
        status = ww_fail(WW_INVALID_ARGUMENT, "formula: %s.midpoint: is %g; it must be between 0 and 1", name, midpoint);
    if (status == WW_OK && !(scale > 0.0))
        status = ww_fail(WW_INVALID_ARGUMENT, "formula: %s.scale: is %g; it must be larger than 0", name, scale);
    r->out->terms[number].number = midpoint;
    r->out->terms[number].second = scale;
    return status;
}

static ww_status read_geo(reader *r, const char *name, const char *object, int32_t number)
{
    const char *origin = json_type_of(object) == JSON_OBJECT ? json_find(object, "origin", 6) : NULL;
    term *t = &r->out->terms[number];
    t->second = NAN;
    if (!origin || json_type_of(origin) != JSON_OBJECT)
        return refuse(name, "origin must be a place, {\"lat\": 52.5, \"lon\": 13.4}");
    ww_status status = read_number(origin, name, "lat", &t->number);
    if (status == WW_OK)
        status = read_number(origin, name, "lon", &t->second);
    if (status == WW_OK && (!(fabs(t->number) <= 90.0) || !(fabs(t->second) <= 180.0)))
        status = refuse(name, "lat is from -90 to 90, lon from -180 to 180");
    return status == WW_OK ? read_field_of(r, name, json_find(object, "to", 2), number) : status;
}

static ww_status read_datetime(reader *r, const char *name, const char *value, int32_t number)
{
    int64_t microseconds = 0;
    const char *text = json_type_of(value) == JSON_TEXT ? read_text(r, value) : "";
    if (!instant_read(text, strlen(text), &microseconds))
        return refuse(name, "a date is needed, 2024-01-31 or 2024-01-31T12:00:00Z");
    r->out->terms[number].number = (double)microseconds / 1e6;
    return WW_OK;
}

static ww_status read_one(reader *r, const char *name, const char *value, int32_t number)
{
    (void)name;
    int32_t last = -1;
    return add_operand(r, number, value, &last);
}

static ww_status read_datetime_key(reader *r, const char *name, const char *value, int32_t number)
{
    return read_field_of(r, name, value, number);
}

static ww_status read_filter(reader *r, const char *name, const char *value, int32_t number)
{
    if (json_type_of(value) != JSON_OBJECT)
        return refuse(name, "a dictionary is needed");
    char *text = memory_copy_text(value, (size_t)(json_end(value) - value));
    if (!text)
        return memory_failed("a formula", (size_t)(json_end(value) - value));
    const ww_status status = ww_filter_read(text, &r->out->terms[number].filter);
    memory_free(text);
    return status;
}

static const struct {
    const char *name;
    term_kind kind;
    ww_status (*read)(reader *r, const char *name, const char *value, int32_t number);
} OPERATIONS[] = {
    {"sum", TERM_SUM, read_list},
    {"mult", TERM_MULT, read_list},
    {"max", TERM_MAX, read_list},
    {"min", TERM_MIN, read_list},
    {"neg", TERM_NEG, read_one},
    {"abs", TERM_ABS, read_one},
    {"sqrt", TERM_SQRT, read_one},
    {"exp", TERM_EXP, read_one},
    {"ln", TERM_LN, read_one},
    {"log10", TERM_LOG10, read_one},
    {"acosh", TERM_ACOSH, read_one},
    {"div", TERM_DIV, read_div},
    {"pow", TERM_POW, read_pow},
    {"lin_decay", TERM_LIN_DECAY, read_decay},
    {"exp_decay", TERM_EXP_DECAY, read_decay},
    {"gauss_decay", TERM_GAUSS_DECAY, read_decay},
    {"geo_distance", TERM_GEO_DISTANCE, read_geo},
    {"datetime", TERM_NUMBER, read_datetime},
    {"datetime_key", TERM_DATETIME_KEY, read_datetime_key},
    {"filter", TERM_FILTER, read_filter},
};

static ww_status read_condition(reader *r, const char *value, int32_t *number)
{
    if (!r->condition)
        return refuse("", "an object is one operation, such as {\"sum\": [...]}, or {\"filter\": {...}}");
    ww_status status = add_term(r, TERM_FILTER, number);
    if (status == WW_OK)
        status = ww_filter_create(&r->out->terms[*number].filter);
    return status == WW_OK ? r->condition(r->user, value, r->out->terms[*number].filter) : status;
}

static ww_status read_object(reader *r, const char *value, int32_t *number)
{
    const char *key = json_first(value);
    for (size_t i = 0; key && !json_next(key) && i < sizeof OPERATIONS / sizeof *OPERATIONS; i++) {
        if (!json_text_is(key, OPERATIONS[i].name, strlen(OPERATIONS[i].name)))
            continue;
        const ww_status status = add_term(r, OPERATIONS[i].kind, number);
        return status == WW_OK ? OPERATIONS[i].read(r, OPERATIONS[i].name, json_member(key), *number) : status;
    }
    return read_condition(r, value, number);
}

static ww_status read_term(reader *r, const char *value, int32_t *number)
{
    ww_status status = WW_OK;
    if (r->depth == WW_FORMULA_DEPTH_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "formula: more than %d levels of operations", WW_FORMULA_DEPTH_MAX);
    switch (json_type_of(value)) {
    case JSON_NUMBER: {
        const json_number read = json_number_of(value);
        status = add_term(r, TERM_NUMBER, number);
        if (status == WW_OK)
            r->out->terms[*number].number = read.is_integer ? (double)read.integer : read.real;
        return status == WW_OK && !isfinite(r->out->terms[*number].number) ? refuse("", "a number is not finite") : status;
    }
    case JSON_TEXT:
        return read_variable(r, value, number);
    case JSON_OBJECT:
        r->depth++;
        status = read_object(r, value, number);
        r->depth--;
        return status;
    default:
        return refuse("", "a number, the name of a field, or an object is needed");
    }
}

/* ---- the calls ----------------------------------------------------------------------------------------------------------- */

static ww_status copy_json(const char *what, const char *json, char **copy)
{
    json_fault fault;
    const size_t length = strlen(json);
    if (length > WW_FILTER_JSON_MAX)
        return ww_fail(WW_OUT_OF_RANGE, "formula: %s has %zu bytes; the maximum is %d", what, length, WW_FILTER_JSON_MAX);
    if (!json_check(json, length, &fault))
        return ww_fail(WW_INVALID_ARGUMENT, "formula: %s: %s in line %zu, column %zu", what, fault.what, fault.line,
                       fault.column);
    *copy = memory_copy_text(json, length);
    return *copy ? WW_OK : memory_failed("a formula", length);
}

static ww_status check_defaults(const ww_formula *f)
{
    const char *object = f->defaults ? json_root(f->defaults) : NULL;
    int64_t number = 0;
    char key[32];
    if (object && json_type_of(object) != JSON_OBJECT)
        return refuse("defaults", "an object is needed");
    for (const char *at = object ? json_first(object) : NULL; at; at = json_next(at)) {
        const bool brief = json_end(at) - at <= (ptrdiff_t)sizeof key;
        if (brief)
            key[json_text_read(at, key)] = '\0';
        if (brief && is_score(key) && !score_number(key, &number))
            return refuse(key, "a score is $score or $score[1]");
    }
    return WW_OK;
}

ww_status ww_formula_read(const char *json, const char *defaults, ww_condition_reader condition, void *user,
                          ww_formula **formula)
{
    FLOAT_GUARD();
    int32_t root = 0;
    if (!json || !formula)
        return ww_fail(WW_INVALID_ARGUMENT, "ww_formula_read: %s is NULL", json ? "formula" : "json");
    ww_formula *made = memory_alloc_zeroed(1, sizeof *made);
    if (!made)
        return memory_failed("a formula", sizeof *made);
    reader r = {made, condition, user, 0};
    ww_status status = copy_json("the formula", json, &made->json);
    if (status == WW_OK && defaults)
        status = copy_json("defaults", defaults, &made->defaults);
    if (status == WW_OK)
        status = check_defaults(made);
    made->texts = status == WW_OK ? memory_alloc(strlen(json) + 1) : NULL;
    if (status == WW_OK)
        status = made->texts ? read_term(&r, json_root(made->json), &root) : memory_failed("a formula", strlen(json));
    if (status == WW_OK)
        *formula = made;
    else
        ww_formula_destroy(made);
    return status;
}

void ww_formula_destroy(ww_formula *formula)
{
    if (!formula)
        return;
    for (int64_t i = 0; i < formula->count; i++) {
        memory_free(formula->terms[i].path);
        ww_filter_destroy(formula->terms[i].filter);
    }
    memory_free(formula->terms);
    memory_free(formula->json);
    memory_free(formula->defaults);
    memory_free(formula->texts);
    memory_free(formula);
}
