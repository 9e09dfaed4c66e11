/* Compares a result with the expected one: integers exactly, floats with the case's tolerance. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cases/cases.h"

typedef struct elements {
    double *reals;   /* of floats */
    int64_t *wholes; /* of integers */
    int64_t count;
} elements;

static bool is_float(ww_dtype dtype)
{
    return dtype == WW_BF16 || dtype == WW_F16 || dtype == WW_F32 || dtype == WW_F64 || dtype == WW_F8E4M3;
}

/* A tensor's elements on the host, as f64 or i64, which hold them all. */
static ww_status read_elements(const ww_tensor *x, elements *out)
{
    const bool floats = is_float(ww_storage_dtype(x->storage));
    ww_tensor wide = {0};
    ww_status status = ww_tensor_cast(x, floats ? WW_F64 : WW_I64, &wide);
    if (status != WW_OK)
        return status;
    out->count = ww_layout_elements(&wide.layout);
    void *bytes = memory_alloc((size_t)out->count * 8);
    if (!bytes)
        status = memory_failed("a result", (size_t)out->count * 8);
    else
        status = ww_tensor_to_host(&wide, bytes);
    out->reals = floats ? bytes : NULL;
    out->wholes = floats ? NULL : bytes;
    ww_tensor_release(&wide);
    return status;
}

static void free_elements(elements *e)
{
    memory_free(e->reals);
    memory_free(e->wholes);
    *e = (elements){0};
}

/* The distance from one number of a type to the next, at x. */
static double unit_at(ww_dtype dtype, double x)
{
    const int fraction = dtype == WW_F64 ? 52 : dtype == WW_F32 ? 23 : dtype == WW_F16 ? 10 : dtype == WW_BF16 ? 7 : 3;
    const int lowest = dtype == WW_F64      ? -1074
                       : dtype == WW_F16    ? -24
                       : dtype == WW_F8E4M3 ? -9
                       : dtype == WW_BF16   ? -133
                                            : -149;
    int exponent = 0;
    (void)frexp(x, &exponent);
    return ldexp(1.0, exponent - 1 - fraction > lowest ? exponent - 1 - fraction : lowest);
}

/* Reads a tolerance by one of two names; -1 if it is missing. */
static double bound(const json_t *tolerance, const char *name, const char *other)
{
    const json_t *given = json_object_get(tolerance, name);
    given = given ? given : json_object_get(tolerance, other);
    return json_is_number(given) ? json_number_value(given) : -1.0;
}

/* `want` is the number as the file has it, `rounded` as the type has it. */
static bool is_near(const json_t *tolerance, ww_dtype dtype, double got, double want, double rounded)
{
    if (got == rounded || (isnan(got) && isnan(rounded)))
        return true;
    const double units = bound(tolerance, "ulp", "ulps"), decimals = bound(tolerance, "round_decimals", "decimals");
    const double part = bound(tolerance, "rel", "rtol");
    double apart = json_is_number(tolerance) ? json_number_value(tolerance) : bound(tolerance, "abs", "atol");
    if (decimals >= 0.0 && apart < 0.0)
        apart = 0.51 * pow(10.0, -decimals);
    if (!isfinite(got) || !isfinite(want))
        return false;
    if (fabs(got - rounded) <= units * unit_at(dtype, rounded))
        return true;
    return fabs(got - want) <= fmax(apart, 0.0) + fmax(part, 0.0) * fabs(want);
}

/* Halfway between two codes an encoder that rounds each step and one that fuses them take different ones, and both are as near.
 * The scale of a block is rounded to an f16, 2^-11 of it, which moves a code of up to 31 by less than a fiftieth of a step. */
static bool is_as_near(const case_run *run, int64_t at, double got, double want)
{
    if (!run->coded_from)
        return false;
    const double x = (double)run->coded_from[at], step = fabs(got - want);
    return fabs(fabs(got - x) - fabs(want - x)) <= step / 50.0 && fabs(got - x) + fabs(want - x) <= step * 1.02;
}

/* A result, the expected one, and room for a message about the difference. */
typedef struct comparison {
    case_run *run;
    const json_t *tolerance;
    const elements *got;
    char *why;
    size_t capacity;
} comparison;

/* A published product of another encoder or kernel: within its bound, and the case's tolerance in addition. */
static bool is_within_bound(const comparison *c, int64_t at, double got, double want)
{
    if (!c->run->bounds)
        return false;
    const double more = fmax(bound(c->tolerance, "abs", "atol"), 0.0);
    return fabs(got - want) <= c->run->bounds[at] + more;
}

/* Numbers of a list: as the file has them, and as the type has them. */
typedef struct expected_list {
    const double *numbers;
    const elements *rounded;
} expected_list;

/* Element `at` of the result against number `i` of a list. */
static bool same(const comparison *c, int64_t at, expected_list list, int64_t i)
{
    const case_run *run = c->run;
    const elements *got = c->got, *rounded = list.rounded;
    const double *numbers = list.numbers;
    const ww_dtype dtype = ww_storage_dtype(run->result.storage);
    const int digits = dtype == WW_F64 ? 17 : 9;
    if (got->wholes && rounded->wholes && got->wholes[at] == rounded->wholes[i])
        return true;
    if (got->wholes && rounded->wholes)
        snprintf(c->why, c->capacity, "element %lld: expected %lld, got %lld", (long long)at, (long long)rounded->wholes[i],
                 (long long)got->wholes[at]);
    else if (got->reals && rounded->reals &&
             (is_near(c->tolerance, dtype, got->reals[at], numbers[i], rounded->reals[i]) ||
              is_within_bound(c, at, got->reals[at], numbers[i]) || is_as_near(run, at, got->reals[at], rounded->reals[i])))
        return true;
    else
        snprintf(c->why, c->capacity, "element %lld: expected %.*g, got %.*g (%s)", (long long)at, digits, numbers[i], digits,
                 got->reals ? got->reals[at] : NAN, ww_dtype_name(dtype));
    return false;
}

static bool shape_agrees(const case_run *run, const json_t *expected, char *why, size_t capacity)
{
    const json_t *shape = json_object_get(expected, "shape");
    const char *type = json_string_value(json_object_get(expected, "dtype"));
    const ww_layout *layout = &run->result.layout;
    int64_t want[WW_RANK_MAX + 1];
    if (type && case_dtype(type) != (int32_t)ww_storage_dtype(run->result.storage)) {
        snprintf(why, capacity, "expected type %s, got %s", type, ww_dtype_name(ww_storage_dtype(run->result.storage)));
        return false;
    }
    const int32_t rank = json_integers(shape, want, WW_RANK_MAX + 1);
    bool agrees = !shape || (json_is_array(shape) && rank == layout->rank);
    for (int32_t d = 0; agrees && shape && d < rank; d++)
        agrees = want[d] == layout->shape[d];
    if (agrees)
        return true;
    char *text = json_dumps(shape, JSON_ENCODE_ANY);
    int used = snprintf(why, capacity, "expected shape %s, got [", text ? text : "?");
    for (int32_t d = 0; d < layout->rank && used > 0 && (size_t)used < capacity; d++)
        used += snprintf(why + used, capacity - (size_t)used, "%s%lld", d ? ", " : "", (long long)layout->shape[d]);
    if (used > 0 && (size_t)used < capacity)
        snprintf(why + used, capacity - (size_t)used, "]");
    free(text);
    return false;
}

/* Returns the position of an index in row-major order, -1 if it is outside. */
static int64_t place_of_index(const ww_layout *layout, const json_t *index)
{
    int64_t at = 0;
    int64_t places[WW_RANK_MAX];
    if (json_is_integer(index))
        return (int64_t)json_integer_value(index);
    if (json_integers(index, places, WW_RANK_MAX) != layout->rank)
        return -1;
    for (int32_t d = 0; d < layout->rank; d++) {
        const int64_t i = places[d];
        if (i < 0 || i >= layout->shape[d])
            return -1;
        at = at * layout->shape[d] + i;
    }
    return at;
}

/* A point is [index, value] or {"index": ..., "value": ...}. */
static bool points_agree(const comparison *c, const json_t *points)
{
    case_run *run = c->run;
    const ww_dtype dtype = ww_storage_dtype(run->result.storage);
    json_t *values = json_array();
    size_t p;
    json_t *point;
    json_array_foreach(points, p, point)
    {
        json_t *value = json_is_array(point) ? json_array_get(point, 1) : json_object_get(point, "value");
        json_array_append(values, value ? value : json_null());
    }
    case_numbers numbers;
    elements rounded = {0};
    ww_status status = case_elements(run, values, 0, dtype, &numbers);
    const ww_tensor kept = {numbers.storage, ww_layout_contiguous(1, &numbers.count)};
    if (status == WW_OK)
        status = read_elements(&kept, &rounded);
    bool agrees = status == WW_OK;
    if (!agrees)
        snprintf(c->why, c->capacity, "%s", ww_error_message());
    for (size_t i = 0; agrees && i < json_array_size(points); i++) {
        point = json_array_get(points, i);
        const json_t *index = json_is_array(point) ? json_array_get(point, 0) : json_object_get(point, "index");
        const int64_t at = place_of_index(&run->result.layout, index);
        agrees = at >= 0 && at < c->got->count;
        if (!agrees)
            snprintf(c->why, c->capacity, "point %zu lies outside the result", i);
        else
            agrees = same(c, at, (expected_list){numbers.list, &rounded}, (int64_t)i);
    }
    free_elements(&rounded);
    memory_free(numbers.list);
    json_decref(values);
    return agrees;
}

static bool data_agrees(const comparison *c, const json_t *data)
{
    case_run *run = c->run;
    const ww_dtype dtype = ww_storage_dtype(run->result.storage);
    case_numbers numbers;
    elements rounded = {0};
    ww_status status = case_elements(run, data, c->got->count, dtype, &numbers);
    const ww_tensor kept = {numbers.storage, ww_layout_contiguous(1, &numbers.count)};
    if (status == WW_OK)
        status = read_elements(&kept, &rounded);
    bool agrees = status == WW_OK && numbers.count == c->got->count;
    if (!agrees)
        snprintf(c->why, c->capacity, "%s",
                 status == WW_OK ? "the number of elements is not the expected one" : ww_error_message());
    for (int64_t i = 0; agrees && i < numbers.count; i++)
        agrees = same(c, i, (expected_list){numbers.list, &rounded}, i);
    free_elements(&rounded);
    memory_free(numbers.list);
    return agrees;
}

/* Compares a quantized result with the numbers that were quantized. */
static bool error_agrees(const case_run *run, const json_t *expected, char *why, size_t capacity)
{
    const json_t *most = json_object_get(expected, "max_abs_err_vs_input");
    if (!json_is_number(most) || run->largest_error <= json_number_value(most))
        return true;
    snprintf(why, capacity, "expected at most %.9g from the input, got %.9g", json_number_value(most), run->largest_error);
    return false;
}

/* Besides "data" there may be lists for backends with another order of additions ("data_cuda_q8_1"): one of them must match. */
static bool a_list_agrees(const comparison *c, const json_t *expected)
{
    const json_t *data = json_object_get(expected, "data");
    if (data && data_agrees(c, data))
        return true;
    const char *name;
    json_t *list;
    json_object_foreach((json_t *)expected, name, list)
    {
        char other[256] = "";
        comparison with_other = *c;
        with_other.why = other;
        with_other.capacity = sizeof other;
        if (strncmp(name, "data_", 5) == 0 && data_agrees(&with_other, list))
            return true;
        if (!data && strncmp(name, "data_", 5) == 0)
            snprintf(c->why, c->capacity, "%s: %s", name, other);
    }
    return false;
}

/* For K formats, the encoder may choose the scales, and the expected values come from one encoder. Two results that are both
 * within e of their input, which is checked, are within 2e of each other. Returns NULL if that does not apply. */
static json_t *wider_tolerance(const case_run *run, const json_t *expected)
{
    const json_t *most = json_object_get(expected, "max_abs_err_vs_input");
    if (!run->encoder_is_free || !json_is_number(most))
        return NULL;
    return json_pack("{s:f}", "abs", 2.0 * json_number_value(most));
}

/* Compares all expected elements. */
static bool elements_agree(const comparison *c, const json_t *expected)
{
    const json_t *points = json_object_get(expected, "points");
    const json_t *flat = json_object_get(expected, "flat_points");
    bool has_list = false;
    const char *name;
    json_t *list;
    json_object_foreach((json_t *)expected, name, list) has_list |= strncmp(name, "data", 4) == 0 && !json_is_null(list);
    if (!has_list && !points && !flat && json_is_number(json_object_get(expected, "max_abs_err_vs_input")))
        return true;
    if (!has_list && !points && !flat) {
        snprintf(c->why, c->capacity, "the case does not say what is expected");
        return false;
    }
    if (has_list && !a_list_agrees(c, expected))
        return false;
    json_t *wider = wider_tolerance(c->run, expected);
    comparison of_points = *c;
    of_points.tolerance = wider ? wider : c->tolerance;
    const bool agrees = (!points || points_agree(&of_points, points)) && (!flat || points_agree(&of_points, flat));
    json_decref(wider);
    return agrees;
}

bool case_agrees(case_run *run, ww_status status, const json_t *tolerance, char *why, size_t capacity)
{
    const json_t *expected = run->expected;
    const json_t *error = json_object_get(expected, "error");
    if (error && !json_is_null(error) && !json_is_false(error)) {
        if (status != WW_OK && status != WW_CORRUPT_FILE)
            return true;
        snprintf(why, capacity, "expected an error, got %s", status == WW_OK ? "a result" : ww_error_message());
        return false;
    }
    if (status != WW_OK || !run->result.storage) {
        snprintf(why, capacity, "%s: %s", ww_status_name(status), ww_error_message());
        return false;
    }
    elements got = {0};
    bool agrees = shape_agrees(run, expected, why, capacity) && error_agrees(run, expected, why, capacity);
    if (agrees && read_elements(&run->result, &got) != WW_OK) {
        snprintf(why, capacity, "%s", ww_error_message());
        agrees = false;
    }
    if (agrees)
        agrees = elements_agree(&(comparison){run, tolerance, &got, why, capacity}, expected);
    free_elements(&got);
    return agrees;
}
