/* Types and operations by name and by number: the numbers of the public header are those of the lists in src/kernels. */
#include <string.h>

#include <warpwave/tensor.h>

#include "device/tensor_jobs.h"

#define TYPE(NAME, name, bits, kind) _Static_assert((int)WW_##NAME == (int)TYPE_##NAME, "a type has two numbers");
TYPES(TYPE)
#undef TYPE
#define UNARY(NAME, name, floats, integers, which)                                                                             \
    _Static_assert((int)WW_##NAME == (int)UNARY_##NAME, "an operation has two numbers");
#include "arithmetic/unary.def"
#undef UNARY
#define BINARY(NAME, name, floats, integers, which)                                                                            \
    _Static_assert((int)WW_##NAME == (int)BINARY_##NAME, "an operation has two numbers");
#include "arithmetic/binary.def"
#undef BINARY
#define CMP(NAME, name, operator) _Static_assert((int)WW_##NAME == (int)CMP_##NAME, "an operation has two numbers");
#include "arithmetic/cmp.def"
#undef CMP
_Static_assert((int)WW_RANK_MAX == (int)TENSOR_RANK_MAX, "the highest rank has two values");

static const char *const type_names[TYPE_COUNT] = {
#define TYPE(NAME, name, bits, kind) #name,
    TYPES(TYPE)
#undef TYPE
};

static const char *const unary_names[UNARY_COUNT] = {
#define UNARY(NAME, name, floats, integers, which) #name,
#include "arithmetic/unary.def"
#undef UNARY
};

static const char *const binary_names[BINARY_COUNT] = {
#define BINARY(NAME, name, floats, integers, which) #name,
#include "arithmetic/binary.def"
#undef BINARY
};

static const char *const cmp_names[CMP_COUNT] = {
#define CMP(NAME, name, operator) #name,
#include "arithmetic/cmp.def"
#undef CMP
};

static const char *name_in(const char *const *names, int32_t count, int64_t number)
{
    return number >= 0 && number < count ? names[number] : "unknown";
}

static int32_t number_in(const char *const *names, int32_t count, const char *name)
{
    for (int32_t i = 0; name && i < count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

const char *ww_dtype_name(ww_dtype dtype)
{
    return name_in(type_names, TYPE_COUNT, (int64_t)dtype);
}

size_t ww_dtype_bytes(ww_dtype dtype)
{
    return (uint32_t)dtype < TYPE_COUNT ? (size_t)type_size((int32_t)dtype) : 0;
}

int32_t ww_dtype_of_name(const char *name)
{
    return number_in(type_names, TYPE_COUNT, name);
}

const char *ww_unary_name(ww_unary op)
{
    return name_in(unary_names, UNARY_COUNT, (int64_t)op);
}

const char *ww_binary_name(ww_binary op)
{
    return name_in(binary_names, BINARY_COUNT, (int64_t)op);
}

const char *ww_cmp_name(ww_cmp op)
{
    return name_in(cmp_names, CMP_COUNT, (int64_t)op);
}

int32_t ww_unary_of_name(const char *name)
{
    return number_in(unary_names, UNARY_COUNT, name);
}

int32_t ww_binary_of_name(const char *name)
{
    return number_in(binary_names, BINARY_COUNT, name);
}

int32_t ww_cmp_of_name(const char *name)
{
    return number_in(cmp_names, CMP_COUNT, name);
}
