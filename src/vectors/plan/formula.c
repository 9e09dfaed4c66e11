/* Computes formulas, with doubles and the canonical element functions: nothing here comes from the C library but square roots,
 * which IEEE 754 defines. */
#include "vectors/plan/formula.h"

#include <math.h>
#include <string.h>

#include "arithmetic/math/f64.h"
#include "base/float_guard.h"
#include "base/instant.h"
#include "base/json/json.h"
#include "base/json/json_value.h"
#include "base/memory.h"
#include "base/structs.h"
#include "vectors/filter/filter.h"

static const double LN_2 = 0.693147180559945309417, LN_10 = 2.302585092994045684018;
static const double RADIANS = 3.14159265358979323846 / 180.0;
static const double EARTH_RADIUS_METRES = 6371008.8; /* the mean radius, as the IUGG recommends */

typedef struct computing {
    const ww_formula *formula;
    const ww_formula_row *row;
} computing;

static ww_status value_of(const computing *c, int32_t number, double *value);

static ww_status not_finite(const char *what, double a, double b)
{
    return ww_fail(WW_INVALID_ARGUMENT, "formula: %s of %g and %g produced a non-finite number", what, a, b);
}

/* ---- fields -------------------------------------------------------------------------------------------------------------- */

typedef struct field_values {
    const char *first;
    int64_t count;
} field_values;

static bool count_value(void *user, const char *value)
{
    field_values *values = user;
    values->first = values->count++ == 0 ? value : values->first;
    return values->count < 2;
}

/* The one value of a field, or its default. */
static ww_status field_of(const computing *c, const term *t, const char **value)
{
    field_values values = {0};
    if (c->row->payload)
        (void)json_path_visit(t->path->parts, t->path->count, json_root(c->row->payload),
                              &(json_visit){count_value, &values, true});
    if (values.count == 0 && t->fallback) {
        values = (field_values){t->fallback, 1};
        if (json_type_of(t->fallback) == JSON_LIST) {
            const char *first = json_first(t->fallback);
            values = (field_values){first, first ? 1 + (json_next(first) != NULL) : 0};
        }
    }
    if (values.count == 0)
        return ww_fail(WW_INVALID_ARGUMENT, "formula: '%s' has no value in the payload of '%s', nor in the defaults", t->field,
                       c->row->id ? c->row->id : "");
    *value = values.count == 1 ? values.first : "[]"; /* several are none that an operation takes */
    return WW_OK;
}

static ww_status wrong_field(const computing *c, const term *t, const char *needed)
{
    return ww_fail(WW_INVALID_ARGUMENT,
                   "formula: %s is needed for '%s' in the payload and/or in the formula defaults; '%s' has another value",
                   needed, t->field, c->row->id ? c->row->id : "");
}

static bool number_at(const char *value, double *number)
{
    if (!value || json_type_of(value) != JSON_NUMBER)
        return false;
    const json_number read = json_number_of(value);
    *number = read.is_integer ? (double)read.integer : read.real;
    return isfinite(*number);
}

static ww_status field_number(const computing *c, const term *t, double *number)
{
    const char *value = NULL;
    const ww_status status = field_of(c, t, &value);
    if (status != WW_OK)
        return status;
    return number_at(value, number) ? WW_OK : wrong_field(c, t, "a number");
}

static ww_status field_datetime(const computing *c, const term *t, double *seconds)
{
    enum { DATE_BYTES = 64 };
    const char *value = NULL;
    char text[DATE_BYTES];
    int64_t microseconds = 0;
    const ww_status status = field_of(c, t, &value);
    if (status != WW_OK)
        return status;
    if (json_type_of(value) != JSON_TEXT || json_end(value) - value > DATE_BYTES ||
        !instant_read(text, json_text_read(value, text), &microseconds))
        return wrong_field(c, t, "a date");
    *seconds = (double)microseconds / 1e6;
    return WW_OK;
}

static double square(double x)
{
    return x * x;
}

/* The haversine formula. The arcsine of the root of h is the angle whose tangent is the quotient of the roots of h and 1 - h.
 */
static ww_status field_distance(const computing *c, const term *t, double *metres)
{
    const char *value = NULL;
    double lat = 0.0, lon = 0.0;
    const ww_status status = field_of(c, t, &value);
    if (status != WW_OK)
        return status;
    if (json_type_of(value) != JSON_OBJECT || !number_at(json_find(value, "lat", 3), &lat) ||
        !number_at(json_find(value, "lon", 3), &lon))
        return wrong_field(c, t, "a place, {\"lat\": 52.5, \"lon\": 13.4}");
    const double half_lat = (lat - t->number) * RADIANS / 2.0, half_lon = (lon - t->second) * RADIANS / 2.0;
    const double h = square(canon_sin_f64(half_lat)) +
                     canon_cos_f64(t->number * RADIANS) * canon_cos_f64(lat * RADIANS) * square(canon_sin_f64(half_lon));
    *metres = EARTH_RADIUS_METRES * (2.0 * canon_atan2_f64(sqrt(h), sqrt(h < 1.0 ? 1.0 - h : 0.0)));
    return WW_OK;
}

/* ---- operations ---------------------------------------------------------------------------------------------------------- */

static double combined(term_kind kind, double a, double b)
{
    switch (kind) {
    case TERM_SUM:
        return a + b;
    case TERM_MULT:
        return a * b;
    case TERM_MAX:
        return b > a ? b : a;
    default:
        return b < a ? b : a;
    }
}

/* A product with a factor of 0 is 0, and the factors after that are not looked at: so a condition can guard a field. */
static ww_status fold(const computing *c, const term *t, double *value)
{
    ww_status status = WW_OK;
    *value = t->kind == TERM_SUM ? 0.0 : t->kind == TERM_MULT ? 1.0 : t->kind == TERM_MAX ? -INFINITY : INFINITY;
    for (int32_t at = t->first; status == WW_OK && at >= 0; at = c->formula->terms[at].next) {
        double operand = 0.0;
        status = value_of(c, at, &operand);
        if (status == WW_OK && t->kind == TERM_MULT && operand == 0.0) {
            *value = 0.0;
            return WW_OK;
        }
        *value = combined(t->kind, *value, operand);
    }
    return status;
}

static double acosh_of(double x)
{
    const double above = x - 1.0;
    if (x > 0x1p28) /* x * x - 1 is x * x */
        return canon_log_f64(x) + LN_2;
    return canon_log1p_f64(above + sqrt(2.0 * above + above * above));
}

/* An operation on one number. Outside of its range it is not finite. */
static double apply(term_kind kind, double x)
{
    switch (kind) {
    case TERM_NEG:
        return -x;
    case TERM_ABS:
        return fabs(x);
    case TERM_SQRT:
        return sqrt(x);
    case TERM_EXP:
        return canon_exp_f64(x);
    case TERM_LN:
        return canon_log_f64(x);
    case TERM_LOG10:
        return canon_log_f64(x) / LN_10;
    default:
        return x >= 1.0 ? acosh_of(x) : NAN;
    }
}

static ww_status divide(const computing *c, const term *t, double left, double *value)
{
    double right = 0.0;
    *value = left;
    if (left == 0.0)
        return WW_OK;
    const ww_status status = value_of(c, c->formula->terms[t->first].next, &right);
    if (status != WW_OK)
        return status;
    if (right == 0.0 && isfinite(t->number)) {
        *value = t->number;
        return WW_OK;
    }
    *value = left / right;
    return isfinite(*value) ? WW_OK : not_finite("the quotient", left, right);
}

static ww_status decay(const computing *c, const term *t, double x, double *value)
{
    const int32_t other = c->formula->terms[t->first].next;
    double target = 0.0;
    const ww_status status = other >= 0 ? value_of(c, other, &target) : WW_OK;
    const double distance = fabs(x - target), scale = t->second;
    if (t->kind == TERM_LIN_DECAY) {
        const double linear = -((1.0 - t->number) / scale) * distance + 1.0;
        *value = linear > 0.0 ? linear : 0.0;
    } else if (t->kind == TERM_EXP_DECAY) {
        *value = canon_exp_f64(canon_log_f64(t->number) / scale * distance);
    } else {
        *value = canon_exp_f64(canon_log_f64(t->number) / (scale * scale) * distance * distance);
    }
    return status != WW_OK || isfinite(*value) ? status : not_finite("the decay", x, target);
}

/* An operation whose first operand is a number. */
static ww_status operate(const computing *c, const term *t, double *value)
{
    double x = 0.0, y = 0.0;
    ww_status status = value_of(c, t->first, &x);
    if (status != WW_OK)
        return status;
    if (t->kind == TERM_DIV)
        return divide(c, t, x, value);
    if (t->kind >= TERM_LIN_DECAY)
        return decay(c, t, x, value);
    if (t->kind == TERM_POW) {
        status = value_of(c, c->formula->terms[t->first].next, &y);
        *value = canon_pow_f64(x, y);
        return status != WW_OK || isfinite(*value) ? status : not_finite("the power", x, y);
    }
    *value = apply(t->kind, x);
    return isfinite(*value) ? WW_OK
                            : ww_fail(WW_INVALID_ARGUMENT, "formula: an operation on %g produced a non-finite number", x);
}

static ww_status condition(const computing *c, const term *t, double *value)
{
    const ww_formula_row *row = c->row;
    bool holds = false;
    const ww_status status =
        filter_matches(t->filter, &(filter_row){row->id, row->id ? strlen(row->id) : 0, row->payload}, &holds);
    *value = holds ? 1.0 : 0.0;
    return status;
}

static ww_status value_of(const computing *c, int32_t number, double *value)
{
    const term *t = &c->formula->terms[number];
    switch (t->kind) {
    case TERM_NUMBER:
        *value = t->number;
        return WW_OK;
    case TERM_SCORE: {
        const bool known = t->score < c->row->score_count && !isnan(c->row->scores[t->score]);
        *value = known ? (double)c->row->scores[t->score] : t->number;
        return WW_OK;
    }
    case TERM_FIELD:
        return field_number(c, t, value);
    case TERM_FILTER:
        return condition(c, t, value);
    case TERM_DATETIME_KEY:
        return field_datetime(c, t, value);
    case TERM_GEO_DISTANCE:
        return field_distance(c, t, value);
    case TERM_SUM:
    case TERM_MULT:
    case TERM_MAX:
    case TERM_MIN:
        return fold(c, t, value);
    default:
        return operate(c, t, value);
    }
}

/* ---- the calls ----------------------------------------------------------------------------------------------------------- */

ww_status formula_score(const ww_formula *formula, const ww_formula_row *row, float *score)
{
    double value = 0.0;
    const ww_status status = value_of(&(computing){formula, row}, 0, &value);
    if (status != WW_OK)
        return status;
    const float rounded = (float)value + 0.0f; /* never -0 */
    if (!isfinite(rounded))
        return ww_fail(WW_INVALID_ARGUMENT, "formula: the score of '%s', %g, produced a non-finite number as f32",
                       row->id ? row->id : "", value);
    *score = rounded;
    return WW_OK;
}

ww_status ww_formula_score(const ww_formula *formula, const ww_formula_row *row, float *score)
{
    FLOAT_GUARD();
    static const char function[] = "ww_formula_score";
    ww_formula_row read;
    json_fault fault;
    if (!formula || !row || !score)
        return ww_fail(WW_INVALID_ARGUMENT, "%s: %s is NULL", function, !formula ? "formula" : row ? "score" : "row");
    const ww_status status = struct_read(&read, sizeof read, row, function, "ww_formula_row");
    if (status != WW_OK)
        return status;
    if (read.score_count < 0 || (read.score_count > 0 && !read.scores))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: score_count is %lld; it must not be negative, and scores must have as many",
                       function, (long long)read.score_count);
    if (read.payload && !json_check(read.payload, strlen(read.payload), &fault))
        return ww_fail(WW_INVALID_ARGUMENT, "%s: the payload is not JSON: %s in line %zu, column %zu", function, fault.what,
                       fault.line, fault.column);
    return formula_score(formula, &read, score);
}
