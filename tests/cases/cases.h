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

/* A case at work: what it made is ended with it. */
typedef struct case_run {
    ww_device *device;
    const json_t *inputs, *attrs, *case_attrs, *expected; /* attributes stand among the inputs or beside them */
    const char *op;
    ww_dtype dtype;        /* of tensors that do not say another */
    const char *type_name; /* as the case has it, which may be a quantized one */
    ww_storage *made[CASE_STORAGES];
    int made_count;
    const char *wrong_attribute; /* its names, where one was not what it should be */

    ww_tensor result;     /* what the operation gave */
    double largest_error; /* of what it gave against what it got, NaN where that says nothing */
    float *coded_from;    /* what it coded to a format with given scales, element by element; taken from memory */
    double *bounds;       /* how far each element of a product may be from the expected one; NULL: as the tolerance says */
    bool encoder_is_free; /* it coded to a format that leaves scales to the encoder: another's results are other numbers */
} case_run;

/* An operation: reads its inputs, and leaves its result. A refusal of the library's is its status; an input that is not what
 * it should be is WW_CORRUPT_FILE. */
typedef ww_status (*case_operation)(case_run *run);
typedef struct case_entry {
    const char *name;
    case_operation run;
} case_entry;

/* Lists of operations by family, each ended by a NULL name. */
extern const case_entry cases_move[], cases_views[], cases_elementwise[], cases_index[], cases_rows[], cases_products[],
    cases_quantized[], cases_composed[];

/* ---- kinds -----------------------------------------------------------------------------------------------------------------
 */

/* The kind of an operation, which is said as "kind", or is its own name ("add", "broadcast_add", "sum_keepdim"): the number
 * that `of_name` has for it, or -1. Some kinds go by several names. */
int32_t case_kind(case_run *run, int32_t (*of_name)(const char *name));
const char *case_kind_text(case_run *run);
/* The operation ("unary", "binary", "cmp", "reduce") that has such a kind, NULL if none has. */
const char *case_family_of_kind(const char *op);

/* ---- views -----------------------------------------------------------------------------------------------------------------
 */

/* The dimension that a number means, from the last where it is negative; false if there is none. */
bool case_dim_of(const ww_tensor *x, int64_t dim, int32_t *out);

/* ---- inputs ----------------------------------------------------------------------------------------------------------------
 */

/* Names of inputs and attributes may be several, "ids|indexes": the first that is there counts, and null is not there. */

#define CASE_X "x|a|input|self" /* what an operation of one tensor, or the first, may be given as */

/* The input of a name, or the tensor that a JSON value is; and the JSON of an input, NULL if there is none. */
ww_status case_input(case_run *run, const char *names, ww_tensor *out);
ww_status case_tensor(case_run *run, const json_t *value, ww_tensor *out);
const json_t *case_given(const case_run *run, const char *names);
/* The ids, and the condition, of an operation: u32 and u8 where neither they nor the case say one that they may have. */
ww_status case_ids(case_run *run, ww_tensor *out);
ww_status case_condition(case_run *run, ww_tensor *out);
/* The shape, strides and offset of a JSON value: dense where it does not say strides. */
ww_status case_layout(const json_t *value, ww_layout *layout);
/* Takes a storage into the case's keeping. */
ww_status case_keep(case_run *run, ww_storage *storage);
/* The result of the case is what an operation made, if its status says so; or this storage, dense, of the shape. It is kept. */
ww_status case_give(case_run *run, ww_status status, const ww_tensor *out);
ww_status case_give_storage(case_run *run, ww_storage *storage, int32_t rank, const int64_t *shape);

/* Attributes: numbers with a default; lists of whole numbers, of which one number stands for all; texts, NULL if not there.
 * One that is there, but is something else, is noted in the case, which then fails. */
const json_t *case_attribute(const case_run *run, const char *names);
double case_number(case_run *run, const char *names, double otherwise);
int64_t case_integer(case_run *run, const char *names, int64_t otherwise);
int32_t case_dim(case_run *run, int32_t otherwise); /* what no tensor has is refused by what takes it */
bool case_truth(case_run *run, const char *names, bool otherwise);
const char *case_text(case_run *run, const char *names);
int32_t case_integers(case_run *run, const char *names, int64_t *out, int32_t capacity);
/* A list of two whole numbers, or one that stands for both; false if there is none. */
bool case_pair(case_run *run, const char *names, int64_t pair[2]);

/* How many dimensions the expected result has; -1 if the case does not say. */
int32_t case_expected_rank(const case_run *run);

/* A list of whole numbers that a JSON value is: how many, also beyond the capacity; -1 if it is none. */
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

/* The numbers of a tensor's data: as they are, and as a dense storage of a type, which is kept. The list belongs to the caller,
 * who frees it with memory_free(), after a failure, too. */
typedef struct case_numbers {
    double *list;
    int64_t count;
    ww_storage *storage;
} case_numbers;
ww_status case_elements(case_run *run, const json_t *data, int64_t wanted, ww_dtype dtype, case_numbers *out);

/* ---- results ---------------------------------------------------------------------------------------------------------------
 */

/* Compares the case's result, which `status` says whether it has, with what is expected; writes into `why` what is wrong. */
bool case_agrees(case_run *run, ww_status status, const json_t *tolerance, char *why, size_t capacity);

#endif
