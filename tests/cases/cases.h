/* Cases of tensor operations from a JSON file: each says an operation, its inputs and what must come out.
 *
 * A tensor is {shape, data[, strides, offset, dtype]}; data is a list, {"arange": [from, to]} or {"formula": "..."} in i. What
 * is expected is {shape, data[, dtype]}, points ([[index...], value], or {"index": [...], "value": v}), flat_points
 * ([[number, value]]) or {"error": ...}; tol says how exactly: exact, ulp, abs.
 */
#ifndef TESTS_CASES_CASES_H
#define TESTS_CASES_CASES_H

#include <jansson.h>
#include <stdbool.h>

#include <warpwave.h>

#include "base/status.h"

enum { CASE_STORAGES = 64 };

/* A case that is being run; its results are freed with it. */
typedef struct case_run {
    ww_device *device;
    const json_t *inputs, *attrs, *case_attrs, *expected; /* attributes can be among the inputs or separate */
    const char *op;
    ww_dtype dtype;        /* of tensors that do not have their own */
    const char *type_name; /* as the case has it, which may be a quantized one */
    ww_storage *made[CASE_STORAGES];
    int made_count;
    const char *wrong_attribute; /* the names of an attribute with an invalid value, or NULL */

    ww_tensor result;     /* the result of the operation */
    double largest_error; /* the largest error of the result compared with the expected numbers; NaN if unknown */
    float *coded_from;    /* the elements that it encoded to a format with given scales; allocated */
    double *bounds;       /* how far each element of a product may be from the expected one; NULL: as the tolerance says */
    /* It encoded to a format whose scales the encoder chooses, so that another encoder's results differ. */
    bool encoder_is_free;
} case_run;

/* An operation: reads its inputs and stores its result. If the library refuses it, it returns that status; for an invalid input
 * it returns WW_CORRUPT_FILE. */
typedef ww_status (*case_operation)(case_run *run);
typedef struct case_entry {
    const char *name;
    case_operation run;
} case_entry;

/* Lists of operations by family, each ended by a NULL name. */
extern const case_entry cases_move[], cases_views[], cases_elementwise[], cases_index[], cases_rows[], cases_products[],
    cases_quantized[], cases_composed[];

/* ---- kinds --------------------------------------------------------------------------------------------------------------- */

/* The kind of an operation, which is said as "kind", or is its own name ("add", "broadcast_add", "sum_keepdim"): the number
 * that `of_name` has for it, or -1. Some kinds go by several names. */
int32_t case_kind(case_run *run, int32_t (*of_name)(const char *name));
const char *case_kind_text(case_run *run);
/* Returns the operation ("unary", "binary", "cmp", "reduce") that has this kind, or NULL. */
const char *case_family_of_kind(const char *op);

/* ---- views --------------------------------------------------------------------------------------------------------------- */

/* Converts a number to a dimension, counting from the last one if it is negative. Returns false if there is no such
 * dimension. */
bool case_dim_of(const ww_tensor *x, int64_t dim, int32_t *out);

/* ---- inputs -------------------------------------------------------------------------------------------------------------- */

/* Inputs and attributes can have several names, "ids|indexes": the first one that exists is used. A null counts as missing. */

#define CASE_X "x|a|input|self" /* what an operation of one tensor, or the first, may be given as */

/* Returns the input with a name, or the tensor of a JSON value; below, the JSON of an input, or NULL. */
ww_status case_input(case_run *run, const char *names, ww_tensor *out);
ww_status case_tensor(case_run *run, const json_t *value, ww_tensor *out);
const json_t *case_given(const case_run *run, const char *names);
/* The ids, and the condition, of an operation: u32 and u8 where neither they nor the case say one that they may have. */
ww_status case_ids(case_run *run, ww_tensor *out);
ww_status case_condition(case_run *run, ww_tensor *out);
/* Reads the shape, strides and offset of a JSON value; it is dense without strides. */
ww_status case_layout(const json_t *value, ww_layout *layout);
/* Takes a storage into the case's keeping. */
ww_status case_keep(case_run *run, ww_storage *storage);
/* Stores the result of the case: the tensor that an operation made, if `status` is WW_OK; below, a dense storage with a
 * shape. */
ww_status case_give(case_run *run, ww_status status, const ww_tensor *out);
ww_status case_give_storage(case_run *run, ww_storage *storage, int32_t rank, const int64_t *shape);

/* Attributes: numbers with a default; lists of integers, for which a single number means a list of equal ones; texts, NULL if
 * missing. If an attribute exists but has an invalid value, the case records that and fails. */
const json_t *case_attribute(const case_run *run, const char *names);
double case_number(case_run *run, const char *names, double otherwise);
int64_t case_integer(case_run *run, const char *names, int64_t otherwise);
int32_t case_dim(case_run *run, int32_t otherwise); /* what no tensor has is refused by what takes it */
bool case_truth(case_run *run, const char *names, bool otherwise);
const char *case_text(case_run *run, const char *names);
int32_t case_integers(case_run *run, const char *names, int64_t *out, int32_t capacity);
/* Reads a list of two integers, or one that counts twice. Returns false if there is none. */
bool case_pair(case_run *run, const char *names, int64_t pair[2]);

/* How many dimensions the expected result has; -1 if the case does not say. */
int32_t case_expected_rank(const case_run *run);

/* Reads a JSON list of integers. Returns their number, which can exceed the capacity; -1 if it is not such a list. */
int32_t json_integers(const json_t *value, int64_t *out, int32_t capacity);

/* A number as JSON has it: also true, "nan", "inf". */
typedef struct given_number {
    double real;
    int64_t whole;
    bool is_whole;
} given_number;
bool case_number_of(const json_t *value, given_number *out);

/* A type by one of its usual names, or -1; and a text in small letters. */
int32_t case_dtype(const char *name);
void case_lower(const char *text, char *lower, size_t capacity);

/* The numbers of a tensor's data: as doubles, and in a dense storage of a type, which is kept. The caller frees the list with
 * memory_free(), also after a failure. */
typedef struct case_numbers {
    double *list;
    int64_t count;
    ww_storage *storage;
} case_numbers;
ww_status case_elements(case_run *run, const json_t *data, int64_t wanted, ww_dtype dtype, case_numbers *out);

/* ---- results ------------------------------------------------------------------------------------------------------------- */

/* Compares the case's result with the expected one; `status` says whether there is a result. Writes to `why` what is wrong. */
bool case_agrees(case_run *run, ww_status status, const json_t *tolerance, char *why, size_t capacity);

#endif
