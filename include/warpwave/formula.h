/* Formulas: a score for a row from the scores that it has, the fields of its payload, and conditions.
 *
 * A formula is JSON, in the words of Qdrant's API:
 *
 *     {"sum": ["$score", {"mult": [0.5, {"filter": {"lang": "en"}}]},
 *              {"gauss_decay": {"x": {"datetime_key": "written"}, "target": {"datetime": "2024-01-31"}, "scale": 86400}}]}
 *
 *     7.5                            the number
 *     "$score", "$score[1]"          the score of the first input, and of the second; 0 if that does not have the row
 *     "price", "a.b[0]"              the number in a field of the payload
 *     {"filter": {...}}              1 if the row meets the filter (filter.h), else 0
 *     {"sum": [...]}, {"mult": [...]}, {"max": [...]}, {"min": [...]}
 *     {"neg": x}, {"abs": x}, {"sqrt": x}, {"exp": x}, {"ln": x}, {"log10": x}, {"acosh": x}
 *     {"div": {"left": x, "right": y, "by_zero_default": 1}}, {"pow": {"base": x, "exponent": y}}
 *     {"datetime": "2024-01-31"}, {"datetime_key": "written"}     seconds since 1970, of this date and of a field's
 *     {"geo_distance": {"origin": {"lat": 52.5, "lon": 13.4}, "to": "place"}}      metres to the place in a field
 *     {"lin_decay": {"x": x, "target": t, "scale": s, "midpoint": m}}, "exp_decay", "gauss_decay"
 *
 * A decay is 1 where x is the target (0 by default), m (0.5) at a distance of s (1) from it, and less beyond. `defaults` is an
 * object with values for fields that a row lacks and for scores. A row without a number that the formula needs, and a result
 * that is not a finite number, are refused. Everything is computed with 53 bits in the order of the formula and rounded once to
 * f32, with the element functions that tensors have, so the bits are the same on every machine.
 */
#ifndef WARPWAVE_FORMULA_H
#define WARPWAVE_FORMULA_H

#include <stddef.h>
#include <stdint.h>

#include <warpwave/filter.h>
#include <warpwave/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WW_FORMULA_DEPTH_MAX 32   /* levels of nested operations */
#define WW_FORMULA_TERMS_MAX 4096 /* operations, numbers and fields */

typedef struct ww_formula ww_formula;

/* Reads a condition in words of the caller's, an object of the formula that is not one of the above, into a filter. `json` is
 * its first byte. */
typedef ww_status (*ww_condition_reader)(void *user, const char *json, ww_filter *filter);

/* A row to score. */
typedef struct ww_formula_row {
    size_t struct_size;
    const char *id;      /* NULL: unknown; no condition on ids holds */
    const char *payload; /* JSON; NULL: none */
    const float *scores; /* one for each input, NaN if that does not have the row */
    int64_t score_count;
} ww_formula_row;

/* The default is all zero; device.h says how ..._default() and ..._init() differ. */
WW_API ww_status ww_formula_row_init(void *value, size_t struct_size);
static inline ww_formula_row ww_formula_row_default(void)
{
    ww_formula_row value;
    ww_formula_row_init(&value, sizeof value);
    return value;
}

/* Reads a formula; `defaults` is a JSON object, or NULL for none, and `reader` may be NULL. Free it with ww_formula_destroy().
 * Refuses what is not a formula with a message that names the operation. Does not block. */
WW_API ww_status ww_formula_read(const char *json, const char *defaults, ww_condition_reader reader, void *user,
                                 ww_formula **formula);

/* Accepts NULL. */
WW_API void ww_formula_destroy(ww_formula *formula);

/* Computes the score of a row. Any number of threads may use a formula at once. Does not block. */
WW_API ww_status ww_formula_score(const ww_formula *formula, const ww_formula_row *row, float *score);

#ifdef __cplusplus
}
#endif

#endif
