/* The numbers of a case: as JSON has them, as a range, or as a formula. They are rounded to a type by the library itself: f64
 * and i64 are made here, and cast.
 */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "cases/cases.h"
#include "cases/formula.h"

/* A case is small. One that needs more than this is a mistake, and must not take the machine's memory. */
enum { ELEMENTS_MAX = 1 << 26 };

static bool is_word(const char *text, const char *word, const char *longer)
{
    return strcasecmp(text, word) == 0 || strcasecmp(text, longer) == 0;
}

bool case_number_of(const json_t *value, given_number *out)
{
    const char *text = json_string_value(value);
    const double sign = text && *text == '-' ? -1.0 : 1.0;
    *out = (given_number){0};
    if (json_is_integer(value))
        *out = (given_number){.real = (double)json_integer_value(value), .whole = json_integer_value(value), .is_whole = true};
    else if (json_is_real(value))
        out->real = json_real_value(value);
    else if (json_is_boolean(value))
        *out = (given_number){.real = json_is_true(value), .whole = json_is_true(value), .is_whole = true};
    else if (text && is_word(text + (*text == '-' || *text == '+'), "inf", "infinity"))
        out->real = sign * INFINITY;
    else if (text && is_word(text + (*text == '-'), "nan", "nan"))
        out->real = NAN;
    else
        return false;
    return true;
}

/* ---- the forms of data --------------------------------------------------------------------------------------------------- */

/* Where numbers are, and how many: a list, which may have lists in it, from..to by step, a formula, or one for all. */
typedef struct source {
    const json_t *list, *one;
    const char *formula;
    given_number from, step;
    int64_t count;
} source;

static int64_t count_list(const json_t *list)
{
    int64_t count = 0;
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)list, i, item) count += json_is_array(item) ? count_list(item) : 1;
    return count;
}

static bool read_range(const json_t *range, source *from)
{
    given_number to;
    from->step = (given_number){.real = 1.0, .whole = 1, .is_whole = true};
    if (!case_number_of(json_array_get(range, 0), &from->from) || !case_number_of(json_array_get(range, 1), &to) ||
        (json_array_size(range) > 2 && !case_number_of(json_array_get(range, 2), &from->step)) || from->step.real == 0.0)
        return false;
    const double count = ceil((to.real - from->from.real) / from->step.real);
    from->count = !(count > 0.0) ? 0 : count > ELEMENTS_MAX ? (int64_t)ELEMENTS_MAX + 1 : (int64_t)count;
    return isfinite(count);
}

/* Lists and ranges have a length; the others make as many elements as needed. */
static ww_status read_source(const json_t *data, int64_t wanted, source *from)
{
    given_number n;
    *from = (source){.count = wanted,
                     .list = json_is_array(data) ? data : NULL,
                     .formula = json_string_value(json_object_get(data, "formula")),
                     .one = json_is_object(data) ? json_object_get(data, "full") : data};
    const json_t *range = json_object_get(data, "arange");
    if (from->list)
        from->count = count_list(from->list);
    else if (range ? !read_range(range, from) : !from->formula && !case_number_of(from->one, &n))
        return ww_fail(WW_CORRUPT_FILE, "a tensor whose data is neither a list nor arange nor formula");
    if (from->count < 0)
        return ww_fail(WW_INVALID_ARGUMENT, "a tensor whose elements cannot be counted");
    if (from->count > ELEMENTS_MAX)
        return ww_fail(WW_OUT_OF_MEMORY, "a tensor with data of more than %d elements", (int)ELEMENTS_MAX);
    return WW_OK;
}

/* ---- elements ------------------------------------------------------------------------------------------------------------ */

typedef struct elements {
    double *reals;
    int64_t *wholes;
    int64_t made;
    bool all_whole;
} elements;

static ww_status take_element(elements *to, bool known, const given_number *n)
{
    if (!known)
        return ww_fail(WW_CORRUPT_FILE, "element %lld of a tensor is not a number", (long long)to->made);
    to->reals[to->made] = n->real;
    to->wholes[to->made] = n->whole;
    to->all_whole &= n->is_whole;
    to->made++;
    return WW_OK;
}

static ww_status take_list(elements *to, const json_t *list)
{
    ww_status status = WW_OK;
    for (size_t i = 0; i < json_array_size(list) && status == WW_OK; i++) {
        given_number n;
        const json_t *item = json_array_get(list, i);
        status = json_is_array(item) ? take_list(to, item) : take_element(to, case_number_of(item, &n), &n);
    }
    return status;
}

static bool number_at(const source *from, int64_t i, given_number *out)
{
    *out = (given_number){0};
    if (from->formula)
        return formula_value(from->formula, i, &out->real);
    if (from->one)
        return case_number_of(from->one, out);
    out->is_whole = from->from.is_whole && from->step.is_whole && !__builtin_mul_overflow(i, from->step.whole, &out->whole) &&
                    !__builtin_add_overflow(out->whole, from->from.whole, &out->whole);
    out->real = from->from.real + (double)i * from->step.real;
    return true;
}

static ww_status take_all(elements *to, const source *from)
{
    ww_status status = WW_OK;
    to->all_whole = true;
    to->reals = memory_alloc((size_t)from->count * sizeof *to->reals);
    to->wholes = memory_alloc((size_t)from->count * sizeof *to->wholes);
    if (!to->reals || !to->wholes)
        return memory_failed("the elements of a case", (size_t)from->count * 16);
    if (from->list)
        return take_list(to, from->list);
    while (to->made < from->count && status == WW_OK) {
        given_number n;
        status = take_element(to, number_at(from, to->made, &n), &n);
    }
    return status;
}

/* Stores elements as integers, or as f64, converted to the type. */
static ww_status store(case_run *run, ww_dtype dtype, const elements *from, ww_storage **out)
{
    ww_tensor wide = {0}, made = {0};
    ww_status status = ww_tensor_from_host(run->device, from->all_whole ? WW_I64 : WW_F64, 1, &from->made,
                                           from->all_whole ? (const void *)from->wholes : (const void *)from->reals, &wide);
    if (status == WW_OK)
        status = ww_tensor_cast(&wide, dtype, &made);
    ww_tensor_release(&wide);
    *out = made.storage;
    return status == WW_OK ? case_keep(run, made.storage) : status;
}

ww_status case_elements(case_run *run, const json_t *data, int64_t wanted, ww_dtype dtype, case_numbers *out)
{
    source from;
    elements made = {0};
    *out = (case_numbers){0};
    ww_status status = read_source(data, wanted, &from);
    if (status == WW_OK)
        status = take_all(&made, &from);
    if (status == WW_OK)
        status = store(run, dtype, &made, &out->storage);
    memory_free(made.wholes);
    out->list = made.reals;
    out->count = made.made;
    return status;
}
