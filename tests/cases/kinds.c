/* Names of kinds. A case says {"op": "binary", "attrs": {"kind": "add"}}, or "add", or, if shapes are broadcast first,
 * "broadcast_add"; a reduction also "sum_keepdim" and "sum_all".
 */
#include <string.h>

#include "cases/cases.h"

enum { NAME_BYTES = 64 };

static const struct {
    const char *other, *name;
} others[] = {{"arg_min", "argmin"}, {"arg_max", "argmax"}, {"reciprocal", "recip"}, {"square", "sqr"},  {"negative", "neg"},
              {"gelu_tanh", "gelu"}, {"gelu_new", "gelu"},  {"swish", "silu"},       {"power", "pow"},   {"remainder", "rem"},
              {"not_equal", "ne"},   {"equal", "eq"},       {"max", "maximum"},      {"min", "minimum"}, {"product", "prod"}};

static void cut_end(char *name, const char *end)
{
    const size_t length = strlen(name), more = strlen(end);
    if (length > more && strcmp(name + length - more, end) == 0)
        name[length - more] = '\0';
}

/* The name as the library has it, if `of_name` knows it. */
static int32_t number_of(const char *text, int32_t (*of_name)(const char *name))
{
    char name[NAME_BYTES];
    case_lower(text, name, sizeof name);
    if (strncmp(name, "broadcast_", 10) == 0)
        memmove(name, name + 10, strlen(name + 10) + 1);
    if (of_name == ww_reduce_of_name) {
        cut_end(name, "_keepdim");
        cut_end(name, "_all");
    }
    int32_t number = of_name(name);
    for (size_t i = 0; number < 0 && i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i].other, name) == 0)
            number = of_name(others[i].name);
    return number;
}

const char *case_kind_text(case_run *run)
{
    const char *kind = case_text(run, "kind");
    return kind ? kind : run->op;
}

int32_t case_kind(case_run *run, int32_t (*of_name)(const char *name))
{
    return number_of(case_kind_text(run), of_name);
}

/* Reductions come first: "max" of one tensor is the largest of its elements. */
const char *case_family_of_kind(const char *op)
{
    const bool broadcast = strncmp(op, "broadcast_", 10) == 0;
    if (!broadcast && number_of(op, ww_reduce_of_name) >= 0)
        return "reduce";
    if (!broadcast && number_of(op, ww_unary_of_name) >= 0)
        return "unary";
    return number_of(op, ww_binary_of_name) >= 0 ? "binary" : number_of(op, ww_cmp_of_name) >= 0 ? "cmp" : NULL;
}
