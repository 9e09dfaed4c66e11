/* What a formula is: a tree of terms in one list, a term before its operands. include/warpwave/formula.h has the words. */
#ifndef WW_VECTORS_PLAN_FORMULA_H
#define WW_VECTORS_PLAN_FORMULA_H

#include <stdbool.h>
#include <stdint.h>

#include <warpwave/formula.h>

#include "base/json/json_path.h"

typedef enum term_kind {
    TERM_NUMBER,
    TERM_SCORE,
    TERM_FIELD,
    TERM_FILTER,
    TERM_DATETIME_KEY,
    TERM_GEO_DISTANCE,
    TERM_SUM,
    TERM_MULT,
    TERM_MAX,
    TERM_MIN,
    TERM_NEG,
    TERM_ABS,
    TERM_SQRT,
    TERM_EXP,
    TERM_LN,
    TERM_LOG10,
    TERM_ACOSH,
    TERM_DIV,
    TERM_POW,
    TERM_LIN_DECAY,
    TERM_EXP_DECAY,
    TERM_GAUSS_DECAY
} term_kind;

typedef struct term {
    term_kind kind;
    int32_t first, next;  /* the first operand, and the next one of the same operation; -1: none */
    double number;        /* of TERM_NUMBER; the default of a score or a division (NAN: none); a midpoint; a latitude */
    double second;        /* the scale of a decay; a longitude */
    int64_t score;        /* of TERM_SCORE: the number of the input */
    const char *field;    /* of a field: its name in the formula's text, for messages */
    json_path *path;      /* to it */
    const char *fallback; /* its default, in the formula's copy; NULL: none */
    ww_filter *filter;    /* of TERM_FILTER */
} term;

struct ww_formula {
    term *terms; /* terms[0] is the result */
    int64_t count, capacity;
    char *json, *defaults; /* copies; `defaults` may be NULL */
    char *texts;           /* texts without escapes, each at its place in the formula's JSON */
};

/* Computes a formula for a payload that is JSON. */
ww_status formula_score(const ww_formula *formula, const ww_formula_row *row, float *score);

#endif
