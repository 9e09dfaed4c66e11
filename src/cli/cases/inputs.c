/* What a case gives an operation: tensors, and attributes. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "cli/cases/cases.h"
#include "cli/cases/formula.h"

/* ---- elements --------------------------------------------------------------------------------------------------------------
 */

/* Numbers are rounded to the type by the library itself: f64 and i64 are made here, and cast on the CPU's way through. */
typedef struct number {
    double real;
    int64_t whole;
    bool is_whole;
} number;

static bool number_of_json(const json_t *value, number *out)
{
    const char *text = json_string_value(value);
    *out = (number){0};
    if (json_is_integer(value))
        *out = (number){.real = (double)json_integer_value(value), .whole = json_integer_value(value), .is_whole = true};
    else if (json_is_real(value))
        out->real = json_real_value(value);
    else if (json_is_true(value) || json_is_false(value))
        *out = (number){.real = json_is_true(value), .whole = json_is_true(value), .is_whole = true};
    else if (text && (strcmp(text, "nan") == 0 || strcmp(text, "NaN") == 0))
        out->real = NAN;
    else if (text && (strcmp(text, "inf") == 0 || strcmp(text, "Infinity") == 0))
        out->real = INFINITY;
    else if (text && (strcmp(text, "-inf") == 0 || strcmp(text, "-Infinity") == 0))
        out->real = -INFINITY;
    else
        return false;
    return true;
}

static bool number_at(const json_t *data, int64_t i, number *out)
{
    const json_t *range = json_object_get(data, "arange");
    const char *formula = json_string_value(json_object_get(data, "formula"));
    *out = (number){0};
    if (range) {
        number from;
        number step = {.real = 1.0, .whole = 1, .is_whole = true};
        if (!number_of_json(json_array_get(range, 0), &from) ||
            (json_array_size(range) > 2 && !number_of_json(json_array_get(range, 2), &step)))
            return false;
        out->is_whole = from.is_whole && step.is_whole;
        out->whole = from.whole + i * step.whole;
        out->real = from.real + (double)i * step.real;
        return true;
    }
    if (formula)
        return formula_value(formula, i, &out->real);
    return number_of_json(json_array_get(data, (size_t)i), out);
}

static int64_t count_in(const json_t *data)
{
    number from;
    number to;
    number step = {.real = 1.0};
    const json_t *range = json_object_get(data, "arange");
    if (json_is_array(data))
        return (int64_t)json_array_size(data);
    if (!number_of_json(json_array_get(range, 0), &from) || !number_of_json(json_array_get(range, 1), &to) ||
        (json_array_size(range) > 2 && !number_of_json(json_array_get(range, 2), &step)) || step.real == 0.0)
        return -1;
    const double count = ceil((to.real - from.real) / step.real);
    return count < 0.0 ? 0 : (int64_t)count;
}

/* Lists and ranges know how many they are; a formula makes as many as are wanted. */
static ww_status elements_of(const json_t *data, int64_t wanted, double **reals, int64_t **wholes, bool *all_whole,
                             int64_t *made)
{
    const int64_t count = json_object_get(data, "formula") ? wanted : count_in(data);
    if (count < 0)
        return ww_fail(WW_CORRUPT_FILE, "a tensor whose data is neither a list nor arange nor formula");
    *reals = memory_take((size_t)count * sizeof **reals);
    *wholes = memory_take((size_t)count * sizeof **wholes);
    if (!*reals || !*wholes)
        return memory_failed("the elements of a case", (size_t)count * 16);
    *all_whole = true;
    for (int64_t i = 0; i < count; i++) {
        number n;
        if (!number_at(data, i, &n))
            return ww_fail(WW_CORRUPT_FILE, "element %lld of a tensor is no number", (long long)i);
        (*reals)[i] = n.real;
        (*wholes)[i] = n.whole;
        *all_whole &= n.is_whole;
    }
    *made = count;
    return WW_OK;
}

/* As whole numbers, or as f64, and from there to the type. */
static ww_status storage_of(case_run *run, ww_dtype dtype, const double *reals, const int64_t *wholes, bool all_whole,
                            int64_t count, ww_storage **out)
{
    ww_storage *wide = NULL;
    ww_status status = ww_storage_from_host(run->device, all_whole ? WW_I64 : WW_F64, count,
                                            all_whole ? (const void *)wholes : (const void *)reals, &wide);
    const ww_tensor x = {.storage = wide, .layout = ww_layout_contiguous(1, &count)};
    if (status == WW_OK)
        status = ww_tensor_cast(&x, dtype, out);
    ww_storage_destroy(wide);
    return status == WW_OK ? case_keep(run, *out) : status;
}

/* ---- tensors ---------------------------------------------------------------------------------------------------------------
 */

ww_status case_keep(case_run *run, ww_storage *storage)
{
    if (run->made_count == CASE_STORAGES) {
        ww_storage_destroy(storage);
        return ww_fail(WW_CORRUPT_FILE, "a case with more than %d tensors", CASE_STORAGES);
    }
    run->made[run->made_count++] = storage;
    return WW_OK;
}

ww_status case_give(case_run *run, ww_storage *storage, int32_t rank, const int64_t *shape)
{
    run->result = (ww_tensor){.storage = storage, .layout = ww_layout_contiguous(rank, shape)};
    return case_keep(run, storage);
}

static ww_status layout_of(const json_t *value, ww_layout *layout)
{
    int64_t shape[WW_RANK_MAX + 1] = {0};
    const json_t *strides = json_object_get(value, "strides");
    const int32_t rank = json_integers(json_object_get(value, "shape"), shape, WW_RANK_MAX + 1);
    if (rank < 0)
        return ww_fail(WW_CORRUPT_FILE, "a tensor without a shape");
    *layout = ww_layout_contiguous(rank, shape);
    layout->offset = (int64_t)json_integer_value(json_object_get(value, "offset"));
    if (strides && rank <= WW_RANK_MAX && json_integers(strides, layout->strides, WW_RANK_MAX) != rank)
        return ww_fail(WW_CORRUPT_FILE, "a tensor with strides that are not as many as its dimensions");
    return WW_OK;
}

ww_status case_elements(case_run *run, const json_t *data, int64_t wanted, ww_dtype dtype, double **numbers,
                        ww_storage **storage, int64_t *count)
{
    int64_t *wholes = NULL;
    bool all_whole = false;
    ww_status status = elements_of(data, wanted, numbers, &wholes, &all_whole, count);
    if (status == WW_OK)
        status = storage_of(run, dtype, *numbers, wholes, all_whole, *count, storage);
    memory_give(wholes);
    return status;
}

ww_status case_tensor(case_run *run, const json_t *value, ww_tensor *out)
{
    const char *type = json_string_value(json_object_get(value, "dtype"));
    const int32_t dtype = type ? ww_dtype_of_name(type) : (int32_t)run->dtype;
    double *numbers = NULL;
    int64_t count = 0;
    if (dtype < 0)
        return ww_fail(WW_CORRUPT_FILE, "no type '%s'", type);
    ww_status status = layout_of(value, &out->layout);
    if (status == WW_OK)
        status = case_elements(run, json_object_get(value, "data"), ww_layout_elements(&out->layout), (ww_dtype)dtype, &numbers,
                               &out->storage, &count);
    memory_give(numbers);
    return status;
}

/* What an object has at the first of several names. */
static const json_t *at_names(const json_t *object, const char *names)
{
    while (*names) {
        char name[32];
        const size_t length = strcspn(names, "|");
        if (length < sizeof name) {
            memcpy(name, names, length);
            name[length] = '\0';
            const json_t *found = json_object_get(object, name);
            if (found && !json_is_null(found))
                return found;
        }
        names += length + (names[length] == '|');
    }
    return NULL;
}

const json_t *case_given(const case_run *run, const char *names)
{
    return at_names(run->inputs, names);
}

ww_status case_input(case_run *run, const char *names, ww_tensor *out)
{
    const json_t *value = case_given(run, names);
    if (!value)
        return ww_fail(WW_CORRUPT_FILE, "no input '%s'", names);
    return case_tensor(run, value, out);
}

/* ---- attributes ------------------------------------------------------------------------------------------------------------
 */

int32_t json_integers(const json_t *value, int64_t *out, int32_t capacity)
{
    if (json_is_number(value) && capacity > 0) {
        out[0] = (int64_t)json_number_value(value);
        return 1;
    }
    if (!json_is_array(value))
        return -1;
    for (size_t i = 0; i < json_array_size(value) && i < (size_t)capacity; i++)
        out[i] = (int64_t)json_number_value(json_array_get(value, i));
    return (int32_t)json_array_size(value);
}

const json_t *case_attribute(const case_run *run, const char *names)
{
    return at_names(run->attrs, names);
}

double case_number(const case_run *run, const char *names, double otherwise)
{
    number n;
    return number_of_json(case_attribute(run, names), &n) ? n.real : otherwise;
}

int64_t case_integer(const case_run *run, const char *names, int64_t otherwise)
{
    int64_t only = 0;
    return json_integers(case_attribute(run, names), &only, 1) == 1 ? only : otherwise;
}

bool case_truth(const case_run *run, const char *names, bool otherwise)
{
    const json_t *value = case_attribute(run, names);
    return json_is_boolean(value) ? json_is_true(value) : json_is_integer(value) ? json_integer_value(value) != 0 : otherwise;
}

const char *case_text(const case_run *run, const char *names)
{
    return json_string_value(case_attribute(run, names));
}

int32_t case_integers(const case_run *run, const char *names, int64_t *out, int32_t capacity)
{
    return json_integers(case_attribute(run, names), out, capacity);
}

int32_t case_expected_rank(const case_run *run)
{
    const json_t *shape = json_object_get(run->expected, "shape");
    return json_is_array(shape) ? (int32_t)json_array_size(shape) : -1;
}
