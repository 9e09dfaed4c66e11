/* The inputs of a case: tensors and attributes. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "cases/cases.h"

/* ---- tensors ------------------------------------------------------------------------------------------------------------- */

/* Reads an optional list of integers. Returns false if it is something else. */
static bool read_list(const json_t *value, int32_t rank, int64_t *out)
{
    return !value || json_is_null(value) || json_integers(value, out, WW_RANK_MAX) == rank;
}

ww_status case_layout(const json_t *value, ww_layout *layout)
{
    int64_t shape[WW_RANK_MAX + 1] = {0};
    int64_t offset[WW_RANK_MAX] = {0};
    const int32_t rank = json_integers(json_object_get(value, "shape"), shape, WW_RANK_MAX + 1);
    if (rank < 0)
        return ww_fail(WW_CORRUPT_FILE, "a tensor without a shape");
    *layout = ww_layout_contiguous(rank, shape);
    if (!read_list(json_object_get(value, "offset"), 1, offset))
        return ww_fail(WW_CORRUPT_FILE, "a tensor with an offset that is no whole number");
    layout->offset = offset[0];
    if (rank <= WW_RANK_MAX && !read_list(json_object_get(value, "strides"), rank, layout->strides))
        return ww_fail(WW_DIMENSION_MISMATCH, "a tensor with strides that are not as many as its dimensions");
    return WW_OK;
}

/* How many elements a storage has that a layout fits into; -1 if they cannot be counted. */
static int64_t elements_under(const ww_layout *layout)
{
    const int64_t count = ww_layout_elements(layout);
    int64_t last = layout->offset;
    for (int32_t d = 0; d < layout->rank && count > 0; d++) {
        int64_t along;
        if (__builtin_mul_overflow(layout->shape[d] - 1, layout->strides[d], &along) ||
            __builtin_add_overflow(last, along, &last))
            return -1;
    }
    return count <= 0 ? count : last < 0 || last == INT64_MAX ? -1 : last + 1;
}

static ww_status tensor_of(case_run *run, const json_t *value, ww_dtype otherwise, ww_tensor *out)
{
    const json_t *given = json_object_get(value, "dtype");
    const char *type = json_string_value(given);
    const int32_t dtype = given && !json_is_null(given) ? case_dtype(type) : (int32_t)otherwise;
    case_numbers numbers = {0};
    if (dtype < 0)
        return ww_fail(WW_UNSUPPORTED, "no type '%s'", type ? type : "");
    ww_status status = case_layout(value, &out->layout);
    if (status == WW_OK)
        status = case_elements(run, json_object_get(value, "data"), elements_under(&out->layout), (ww_dtype)dtype, &numbers);
    out->storage = numbers.storage;
    memory_free(numbers.list);
    return status;
}

ww_status case_tensor(case_run *run, const json_t *value, ww_tensor *out)
{
    return tensor_of(run, value, run->dtype, out);
}

/* ---- names --------------------------------------------------------------------------------------------------------------- */

void case_lower(const char *text, char *lower, size_t capacity)
{
    size_t i = 0;
    for (; text && text[i] && i + 1 < capacity; i++)
        lower[i] = (char)tolower((unsigned char)text[i]);
    lower[i] = '\0';
}

int32_t case_dtype(const char *name)
{
    static const struct {
        const char *other;
        ww_dtype dtype;
    } others[] = {{"float64", WW_F64},     {"double", WW_F64},         {"float32", WW_F32},
                  {"float", WW_F32},       {"float16", WW_F16},        {"half", WW_F16},
                  {"bfloat16", WW_BF16},   {"uint8", WW_U8},           {"uint32", WW_U32},
                  {"int8", WW_I8},         {"int16", WW_I16},          {"int32", WW_I32},
                  {"int64", WW_I64},       {"float8_e4m3", WW_F8E4M3}, {"f8_e4m3", WW_F8E4M3},
                  {"f8e4m3fn", WW_F8E4M3}, {"float8e4m3", WW_F8E4M3},  {"float8_e4m3fn", WW_F8E4M3}};
    char lower[32];
    case_lower(name, lower, sizeof lower);
    const int32_t dtype = ww_dtype_of_name(lower);
    for (size_t i = 0; dtype < 0 && i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i].other, lower) == 0)
            return (int32_t)others[i].dtype;
    return dtype;
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

static ww_status input_of(case_run *run, const char *names, ww_dtype otherwise, ww_tensor *out)
{
    const json_t *value = case_given(run, names);
    if (!value)
        return ww_fail(WW_CORRUPT_FILE, "no input '%s'", names);
    return tensor_of(run, value, otherwise, out);
}

ww_status case_input(case_run *run, const char *names, ww_tensor *out)
{
    return input_of(run, names, run->dtype, out);
}

static bool counts(ww_dtype dtype)
{
    return dtype == WW_U8 || dtype == WW_U32 || dtype == WW_I64;
}

ww_status case_ids(case_run *run, ww_tensor *out)
{
    return input_of(run, "ids|indexes|indices|index", counts(run->dtype) ? run->dtype : WW_U32, out);
}

ww_status case_condition(case_run *run, ww_tensor *out)
{
    return input_of(run, "cond|condition|c|mask", counts(run->dtype) ? run->dtype : WW_U8, out);
}

/* ---- attributes ---------------------------------------------------------------------------------------------------------- */

/* Reads an integer, also one that is written 2.0. Returns false for other values. */
static bool whole_number(const json_t *value, int64_t *out)
{
    const double real = json_number_value(value);
    if (json_is_integer(value))
        *out = (int64_t)json_integer_value(value);
    else if (json_is_real(value) && real == trunc(real) && fabs(real) < 0x1p63)
        *out = (int64_t)real;
    else
        return false;
    return true;
}

int32_t json_integers(const json_t *value, int64_t *out, int32_t capacity)
{
    if (!json_is_array(value))
        return capacity > 0 && whole_number(value, &out[0]) ? 1 : -1;
    for (size_t i = 0; i < json_array_size(value); i++) {
        int64_t number;
        if (!whole_number(json_array_get(value, i), &number))
            return -1;
        if (i < (size_t)capacity)
            out[i] = number;
    }
    return (int32_t)json_array_size(value);
}

/* Also looks among the inputs, where some cases have their attributes. */
const json_t *case_attribute(const case_run *run, const char *names)
{
    const json_t *found = at_names(run->attrs, names);
    if (!found)
        found = at_names(run->case_attrs, names);
    if (!found && !json_is_object(at_names(run->inputs, names)))
        found = at_names(run->inputs, names);
    return found;
}

/* An attribute that exists but is invalid makes the case fail. */
static bool is_known(case_run *run, const char *names, const json_t *value, bool readable)
{
    if (value && !readable)
        run->wrong_attribute = names;
    return value && readable;
}

double case_number(case_run *run, const char *names, double otherwise)
{
    given_number n = {0};
    const json_t *value = case_attribute(run, names);
    return is_known(run, names, value, case_number_of(value, &n)) ? n.real : otherwise;
}

int64_t case_integer(case_run *run, const char *names, int64_t otherwise)
{
    int64_t only = 0;
    const json_t *value = case_attribute(run, names);
    return is_known(run, names, value, json_integers(value, &only, 1) == 1) ? only : otherwise;
}

int32_t case_dim(case_run *run, int32_t otherwise)
{
    const int64_t dim = case_integer(run, "dim|dims|axis", otherwise);
    return dim < -WW_RANK_MAX || dim > WW_RANK_MAX ? WW_RANK_MAX : (int32_t)dim;
}

bool case_truth(case_run *run, const char *names, bool otherwise)
{
    given_number n = {0};
    const json_t *value = case_attribute(run, names);
    return is_known(run, names, value, case_number_of(value, &n)) ? n.real != 0.0 : otherwise;
}

const char *case_text(case_run *run, const char *names)
{
    const json_t *value = case_attribute(run, names);
    return is_known(run, names, value, json_is_string(value)) ? json_string_value(value) : NULL;
}

int32_t case_integers(case_run *run, const char *names, int64_t *out, int32_t capacity)
{
    const json_t *value = case_attribute(run, names);
    const int32_t count = json_integers(value, out, capacity);
    return is_known(run, names, value, count >= 0) ? count : -1;
}

bool case_pair(case_run *run, const char *names, int64_t pair[2])
{
    int64_t numbers[2] = {0};
    const int32_t count = case_integers(run, names, numbers, 2);
    if (count == 1 || count == 2) {
        pair[0] = numbers[0];
        pair[1] = numbers[count - 1];
    } else if (count >= 0) {
        run->wrong_attribute = names;
    }
    return count == 1 || count == 2;
}

int32_t case_expected_rank(const case_run *run)
{
    const json_t *shape = json_object_get(run->expected, "shape");
    return json_is_array(shape) ? (int32_t)json_array_size(shape) : -1;
}
