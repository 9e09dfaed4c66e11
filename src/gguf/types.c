/* Kinds of values and types of tensors in GGUF files: names and sizes, and the order of names. */
#include <string.h>

#include "base/integers.h"
#include "gguf/gguf.h"
#include "quant/types.h"

static const char *const kind_names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                         "bool", "string", "array", "u64", "i64", "f64"};
static const unsigned char kind_bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
enum { KINDS = sizeof kind_bytes };

/* The tensor types that are not formats of quantized matrices start at this number. */
enum { TYPE_I8 = 24, TYPE_F64 = 28 };
static const char *const plain_names[] = {"i8", "i16", "i32", "i64", "f64"};
static const unsigned char plain_bytes[] = {1, 2, 4, 8, 8};

const char *ww_gguf_kind_name(ww_gguf_kind kind)
{
    return (int)kind >= 0 && (int)kind < KINDS ? kind_names[kind] : NULL;
}

int64_t gguf_kind_bytes(int64_t kind)
{
    return kind >= 0 && kind < KINDS ? kind_bytes[kind] : 0;
}

const char *ww_gguf_type_name(int32_t type)
{
    return type >= TYPE_I8 && type <= TYPE_F64 ? plain_names[type - TYPE_I8] : ww_quant_name((ww_quant_type)type);
}

/* Returns the elements of a block of a tensor's type; 0 for an unknown type. */
static int64_t type_elements(int64_t type)
{
    if (type >= TYPE_I8 && type <= TYPE_F64)
        return 1;
    return quant_type_known(type) ? ww_quant_block_elements((ww_quant_type)type) : 0;
}

/* Returns the bytes of a block in the same way. */
static int64_t type_bytes(int64_t type)
{
    if (type >= TYPE_I8 && type <= TYPE_F64)
        return plain_bytes[type - TYPE_I8];
    return quant_type_known(type) ? ww_quant_block_bytes((ww_quant_type)type) : 0;
}

const char *gguf_tensor_size(int64_t type, int64_t rank, const int64_t *shape, int64_t *bytes)
{
    const int64_t together = type_elements(type);
    int64_t elements = 1;
    if (type < 0 || type > INT32_MAX)
        return "the type is not a known number";
    if (rank < 1 || rank > WW_GGUF_RANK_MAX)
        return "a tensor has 1 to 4 dimensions";
    for (int64_t i = 0; i < rank; i++) {
        if (shape[i] < 1)
            return "a dimension is 0 or negative";
        if (__builtin_mul_overflow(elements, shape[i], &elements))
            return "the product of the dimensions is too large";
    }
    *bytes = GGUF_BYTES_UNKNOWN;
    if (together <= 0)
        return NULL;
    if (shape[0] % together != 0)
        return "the row length is not a multiple of the type's block";
    if (__builtin_mul_overflow(elements / together, type_bytes(type), bytes))
        return "the size in bytes is too large";
    return NULL;
}

/* ---- order --------------------------------------------------------------------------------------------------------------- */

int gguf_compare_text(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    const int order = memcmp(a, b, min_size(a_bytes, b_bytes));
    return order != 0 ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

int gguf_compare_entries(const void *context, int64_t a, int64_t b)
{
    const gguf_entry *x = &((const gguf_part *)context)->entries[a], *y = &((const gguf_part *)context)->entries[b];
    return gguf_compare_text(x->key, x->key_bytes, y->key, y->key_bytes);
}

int gguf_compare_tensors(const void *context, int64_t a, int64_t b)
{
    const gguf_tensor *x = (const gguf_tensor *)context + a, *y = (const gguf_tensor *)context + b;
    return gguf_compare_text(x->name, x->name_bytes, y->name, y->name_bytes);
}

/* Moves the number at `top` down a heap with the largest on top, until neither child is larger. */
static void sink(int64_t *order, int64_t top, int64_t count, gguf_compare compare, const void *context)
{
    for (;;) {
        int64_t child = 2 * top + 1;
        if (child >= count)
            return;
        if (child + 1 < count && compare(context, order[child], order[child + 1]) < 0)
            child++;
        if (compare(context, order[top], order[child]) >= 0)
            return;
        const int64_t swapped = order[top];
        order[top] = order[child];
        order[child] = swapped;
        top = child;
    }
}

void gguf_sort_numbers(int64_t *order, int64_t count, gguf_compare compare, const void *context)
{
    for (int64_t i = count / 2 - 1; i >= 0; i--)
        sink(order, i, count, compare, context);
    for (int64_t last = count - 1; last > 0; last--) {
        const int64_t largest = order[0];
        order[0] = order[last];
        order[last] = largest;
        sink(order, 0, last, compare, context);
    }
}

void gguf_sort(int64_t *order, int64_t count, gguf_compare compare, const void *context)
{
    for (int64_t i = 0; i < count; i++)
        order[i] = i;
    gguf_sort_numbers(order, count, compare, context);
}
