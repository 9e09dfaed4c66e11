/* GGUF files with one fault each. */
#include "support/data/wrong_gguf.h"

#include <warpwave/gguf.h>

enum { F32 = 0, F16 = 1, Q4_0 = 2, Q4_K = 12, I8 = 24 };

#define HUGE_COUNT UINT64_C(0xffffffffffffffff)

/* Appends one f32 tensor of 8 numbers, with its data, to any keys. */
static void finish(test_bytes *b)
{
    put_tensor(b, "t", 4, 2, F32, 0);
    put_padding(b, 32);
    put_zeros(b, 32);
}

static void with_shape(test_bytes *b, uint32_t rank, const uint64_t *shape, uint32_t type)
{
    put_start(b, 3, 1, 0);
    put_tensor_of(b, "t", rank, shape, type, 0);
    put_padding(b, 32);
    put_zeros(b, 1024);
}

static void bad_magic(test_bytes *b)
{
    put_bytes(b, "GGML", 4);
    put_zeros(b, 60);
}
static void version_1(test_bytes *b)
{
    put_start(b, 1, 0, 0);
}
static void version_4(test_bytes *b)
{
    put_start(b, 4, 0, 0);
}
static void version_swapped(test_bytes *b)
{
    put_start(b, 0x03000000, 0, 0);
}
static void tensors_negative(test_bytes *b)
{
    put_start(b, 3, (uint64_t)-1, 0);
    put_zeros(b, 100);
}
static void tensors_huge(test_bytes *b)
{
    put_start(b, 3, UINT64_C(1) << 60, 0);
    put_zeros(b, 100);
}
static void tensors_one_too_many(test_bytes *b)
{
    put_start(b, 3, 2, 0);
    finish(b);
}
static void keys_negative(test_bytes *b)
{
    put_start(b, 3, 0, (uint64_t)-5);
    put_zeros(b, 100);
}
static void keys_huge(test_bytes *b)
{
    put_start(b, 3, 0, UINT64_C(1) << 62);
    put_zeros(b, 100);
}
static void key_length_huge(test_bytes *b)
{
    put_start(b, 3, 0, 1);
    put_u64(b, HUGE_COUNT);
    put_zeros(b, 100);
}
static void key_too_long(test_bytes *b)
{
    put_start(b, 3, 0, 1);
    put_u64(b, 65536 - 2048);
    put_zeros(b, 100);
}
static void key_empty(test_bytes *b)
{
    put_start(b, 3, 1, 1);
    put_key_u32(b, "", 1);
    finish(b);
}
static void key_with_nul(test_bytes *b)
{
    put_start(b, 3, 1, 1);
    put_u64(b, 3);
    put_bytes(b, "a\0b", 3);
    put_u32(b, WW_GGUF_U32);
    put_u32(b, 1);
    finish(b);
}
static void key_twice(test_bytes *b)
{
    put_start(b, 3, 1, 3);
    put_key_u32(b, "a", 1);
    put_key_u32(b, "b", 1);
    put_key_u32(b, "a", 2);
    finish(b);
}
static void array_nested(test_bytes *b)
{
    put_start(b, 3, 1, 1);
    put_key(b, "a", WW_GGUF_ARRAY);
    put_u32(b, WW_GGUF_ARRAY);
    put_u64(b, 1);
    put_u32(b, WW_GGUF_U8);
    put_u64(b, 1);
    put_u8(b, 1);
    finish(b);
}
static void array_start(test_bytes *b, uint32_t element, uint64_t count)
{
    put_start(b, 3, 1, 1);
    put_key(b, "a", WW_GGUF_ARRAY);
    put_u32(b, element);
    put_u64(b, count);
    finish(b);
}
static void array_huge(test_bytes *b)
{
    array_start(b, WW_GGUF_U8, UINT64_C(1) << 40);
}
static void array_overflow(test_bytes *b)
{
    array_start(b, WW_GGUF_F64, (UINT64_C(1) << 61) + 1);
}
static void array_of_strings_huge(test_bytes *b)
{
    array_start(b, WW_GGUF_STRING, HUGE_COUNT);
}
static void array_of_unknown(test_bytes *b)
{
    array_start(b, 13, 1);
}
static void kind_unknown(test_bytes *b)
{
    put_start(b, 3, 1, 1);
    put_key(b, "a", 13);
    put_u32(b, 0);
    finish(b);
}
static void kind_huge(test_bytes *b)
{
    put_start(b, 3, 1, 1);
    put_key(b, "a", 0x80000007);
    put_u32(b, 0);
    finish(b);
}
static void string_huge(test_bytes *b)
{
    put_start(b, 3, 1, 1);
    put_key(b, "a", WW_GGUF_STRING);
    put_u64(b, HUGE_COUNT);
    finish(b);
}
static void bool_2(test_bytes *b)
{
    put_start(b, 3, 1, 1);
    put_key(b, "a", WW_GGUF_BOOL);
    put_u8(b, 2);
    finish(b);
}
static void bool_2_in_array(test_bytes *b)
{
    put_start(b, 3, 1, 1);
    put_key(b, "a", WW_GGUF_ARRAY);
    put_u32(b, WW_GGUF_BOOL);
    put_u64(b, 2);
    put_u8(b, 1);
    put_u8(b, 2);
    finish(b);
}
static void alignment_of(test_bytes *b, uint32_t value)
{
    put_start(b, 3, 1, 1);
    put_key_u32(b, "general.alignment", value);
    finish(b);
}
static void alignment_0(test_bytes *b)
{
    alignment_of(b, 0);
}
static void alignment_3(test_bytes *b)
{
    alignment_of(b, 3);
}
static void alignment_2_31(test_bytes *b)
{
    alignment_of(b, UINT32_C(1) << 31);
}
static void alignment_u64(test_bytes *b)
{
    put_start(b, 3, 1, 1);
    put_key(b, "general.alignment", WW_GGUF_U64);
    put_u64(b, 32);
    finish(b);
}
static void alignment_array(test_bytes *b)
{
    put_start(b, 3, 1, 1);
    put_key(b, "general.alignment", WW_GGUF_ARRAY);
    put_u32(b, WW_GGUF_U32);
    put_u64(b, 1);
    put_u32(b, 32);
    finish(b);
}
static const uint64_t five[5] = {2, 2, 2, 2, 2};
static void rank_0(test_bytes *b)
{
    with_shape(b, 0, five, F32);
}
static void rank_5(test_bytes *b)
{
    with_shape(b, 5, five, F32);
}
static void rank_huge(test_bytes *b)
{
    put_start(b, 3, 1, 0);
    put_text(b, "t");
    put_u32(b, 0xffffffffu);
    put_zeros(b, 100);
}
static void dim_0(test_bytes *b)
{
    with_shape(b, 2, (const uint64_t[]){4, 0}, F32);
}
static void dim_negative(test_bytes *b)
{
    with_shape(b, 2, (const uint64_t[]){4, (uint64_t)-1}, F32);
}
static void product_overflow(test_bytes *b)
{
    with_shape(b, 2, (const uint64_t[]){UINT64_C(1) << 32, UINT64_C(1) << 32}, F32);
}
static void product_overflow_i8(test_bytes *b)
{
    with_shape(b, 2, (const uint64_t[]){INT64_MAX, 2}, I8);
}
static void product_overflow_to_small(test_bytes *b)
{
    with_shape(b, 4, (const uint64_t[]){UINT64_C(1) << 16, UINT64_C(1) << 16, UINT64_C(1) << 16, UINT64_C(1) << 16}, I8);
}
static void bytes_overflow(test_bytes *b)
{
    with_shape(b, 1, (const uint64_t[]){UINT64_C(1) << 62}, F32);
}
static void padding_overflow(test_bytes *b)
{
    with_shape(b, 1, (const uint64_t[]){INT64_MAX}, I8);
}
static void sum_overflow(test_bytes *b)
{
    put_start(b, 3, 3, 0);
    for (int i = 0; i < 3; i++)
        put_tensor(b, i == 0 ? "a" : i == 1 ? "b" : "c", UINT64_C(1) << 31, UINT64_C(1) << 31, I8, (uint64_t)i << 62);
    put_padding(b, 32);
}
static void row_not_a_block(test_bytes *b)
{
    with_shape(b, 2, (const uint64_t[]){33, 2}, Q4_0);
}
static void row_not_a_large_block(test_bytes *b)
{
    with_shape(b, 2, (const uint64_t[]){128, 2}, Q4_K);
}
/* Two tensors at the same place, or one after all data: no bytes can belong to it. */
static void type_without_bytes(test_bytes *b)
{
    put_start(b, 3, 2, 0);
    put_tensor(b, "t", 32, 2, 99, 0);
    put_tensor(b, "u", 32, 2, 99, 0);
    put_padding(b, 32);
    put_zeros(b, 64);
}
static void type_past_the_end(test_bytes *b)
{
    put_start(b, 3, 1, 0);
    put_tensor(b, "t", 32, 2, 99, 64);
    put_padding(b, 32);
    put_zeros(b, 64);
}
static void type_with_dimension_0(test_bytes *b)
{
    with_shape(b, 2, (const uint64_t[]){32, 0}, 99);
}
static void type_inside_another(test_bytes *b)
{
    put_start(b, 3, 2, 0);
    put_tensor(b, "t", 32, 2, F32, 0);
    put_tensor(b, "u", 32, 2, 99, 32);
    put_padding(b, 32);
    put_zeros(b, 512);
}
static void type_huge(test_bytes *b)
{
    with_shape(b, 2, (const uint64_t[]){32, 2}, 0xffffffffu);
}
static void at_offset(test_bytes *b, uint64_t offset, size_t data)
{
    put_start(b, 3, 1, 0);
    put_tensor(b, "t", 4, 2, F32, offset);
    put_padding(b, 32);
    put_zeros(b, data);
}
static void offset_unaligned(test_bytes *b)
{
    at_offset(b, 8, 200);
}
static void offset_huge(test_bytes *b)
{
    at_offset(b, UINT64_C(0xffffffffffffffe0), 200);
}
static void offset_past_end(test_bytes *b)
{
    at_offset(b, 192, 200);
}
static void data_past_end(test_bytes *b)
{
    at_offset(b, 0, 31);
}
static void data_missing(test_bytes *b)
{
    put_start(b, 3, 1, 0);
    put_tensor(b, "t", 4, 2, F32, 0);
}
static void two_tensors(test_bytes *b, const char *first, const char *second, uint64_t offset)
{
    put_start(b, 3, 2, 0);
    put_tensor(b, first, 16, 2, F32, 0);
    put_tensor(b, second, 16, 2, F32, offset);
    put_padding(b, 32);
    put_zeros(b, 512);
}
static void overlapping(test_bytes *b)
{
    two_tensors(b, "a", "b", 96);
}
static void same_place(test_bytes *b)
{
    two_tensors(b, "a", "b", 0);
}
static void name_twice(test_bytes *b)
{
    two_tensors(b, "a", "a", 128);
}
static void name_64(test_bytes *b)
{
    two_tensors(b, "a", "0123456789012345678901234567890123456789012345678901234567890123", 128);
}
static void name_with_nul(test_bytes *b)
{
    put_start(b, 3, 1, 0);
    put_u64(b, 3);
    put_bytes(b, "a\0b", 3);
    put_u32(b, 1);
    put_u64(b, 8);
    put_u32(b, F32);
    put_u64(b, 0);
    put_padding(b, 32);
    put_zeros(b, 32);
}
static void name_length_huge(test_bytes *b)
{
    put_start(b, 3, 1, 0);
    put_u64(b, HUGE_COUNT - 7);
    put_zeros(b, 100);
}
static void split_part(test_bytes *b)
{
    put_start(b, 3, 1, 2);
    put_key_u16(b, "split.no", 1);
    put_key_u16(b, "split.count", 3);
    finish(b);
}
static void split_no_integer(test_bytes *b)
{
    put_start(b, 3, 1, 1);
    put_key(b, "split.count", WW_GGUF_STRING);
    put_text(b, "3");
    finish(b);
}

const wrong_gguf wrong_ggufs[] = {
    {"bad magic", bad_magic, WW_CORRUPT_FILE, "offset 0: not a GGUF file"},
    {"version 1", version_1, WW_UNSUPPORTED, "offset 4: version 1"},
    {"version 4", version_4, WW_UNSUPPORTED, "offset 4: version 4"},
    {"byte-swapped version", version_swapped, WW_UNSUPPORTED, "big-endian"},
    {"negative number of tensors", tensors_negative, WW_CORRUPT_FILE, "offset 8: a number of tensors"},
    {"huge number of tensors", tensors_huge, WW_CORRUPT_FILE, "offset 8: a number of tensors"},
    {"one tensor too many", tensors_one_too_many, WW_CORRUPT_FILE, "offset "},
    {"negative number of keys", keys_negative, WW_CORRUPT_FILE, "offset 16: a number of keys"},
    {"huge number of keys", keys_huge, WW_CORRUPT_FILE, "offset 16: a number of keys"},
    {"key length 2^64-1", key_length_huge, WW_CORRUPT_FILE, "offset 24: a key"},
    {"key longer than the file", key_too_long, WW_CORRUPT_FILE, "offset 24: a key"},
    {"empty key", key_empty, WW_CORRUPT_FILE, "a key is empty"},
    {"key with NUL", key_with_nul, WW_CORRUPT_FILE, "NUL"},
    {"duplicate key", key_twice, WW_CORRUPT_FILE, "'a' appears twice"},
    {"nested array", array_nested, WW_CORRUPT_FILE, "arrays of arrays"},
    {"huge array", array_huge, WW_CORRUPT_FILE, "an array of"},
    {"array whose size overflows", array_overflow, WW_CORRUPT_FILE, "an array of"},
    {"huge array of strings", array_of_strings_huge, WW_CORRUPT_FILE, "an array of"},
    {"array of an unknown kind", array_of_unknown, WW_CORRUPT_FILE, "unknown value kind 13"},
    {"unknown kind", kind_unknown, WW_CORRUPT_FILE, "unknown value kind 13"},
    {"huge kind", kind_huge, WW_CORRUPT_FILE, "unknown value kind 2147483655"},
    {"huge string", string_huge, WW_CORRUPT_FILE, "a string of"},
    {"bool 2", bool_2, WW_CORRUPT_FILE, "a bool must be 0 or 1, not 2"},
    {"bool 2 in an array", bool_2_in_array, WW_CORRUPT_FILE, "a bool must be 0 or 1, not 2"},
    {"alignment 0", alignment_0, WW_CORRUPT_FILE, "general.alignment is 0"},
    {"alignment 3", alignment_3, WW_CORRUPT_FILE, "general.alignment is 3"},
    {"alignment 2^31", alignment_2_31, WW_CORRUPT_FILE, "general.alignment is 2147483648"},
    {"alignment not u32", alignment_u64, WW_CORRUPT_FILE, "general.alignment is not a u32"},
    {"alignment an array", alignment_array, WW_CORRUPT_FILE, "general.alignment is not a u32"},
    {"n_dims 0", rank_0, WW_CORRUPT_FILE, "1 to 4 dimensions, not 0"},
    {"n_dims 5", rank_5, WW_CORRUPT_FILE, "1 to 4 dimensions, not 5"},
    {"n_dims 2^32-1", rank_huge, WW_CORRUPT_FILE, "1 to 4 dimensions, not 4294967295"},
    {"zero dim", dim_0, WW_CORRUPT_FILE, "0 or negative"},
    {"negative dim", dim_negative, WW_CORRUPT_FILE, "0 or negative"},
    {"[2^32, 2^32] f32", product_overflow, WW_CORRUPT_FILE, "product of the dimensions"},
    {"[2^63-1, 2] i8", product_overflow_i8, WW_CORRUPT_FILE, "product of the dimensions"},
    {"product that wraps to 0", product_overflow_to_small, WW_CORRUPT_FILE, "product of the dimensions"},
    {"size that overflows", bytes_overflow, WW_CORRUPT_FILE, "size in bytes"},
    {"padding that overflows", padding_overflow, WW_CORRUPT_FILE, "the file is cut off"},
    {"sum that overflows", sum_overflow, WW_CORRUPT_FILE, "the file is cut off"},
    {"row no block multiple", row_not_a_block, WW_CORRUPT_FILE, "not a multiple of the type's block"},
    {"row no multiple of 256", row_not_a_large_block, WW_CORRUPT_FILE, "not a multiple of the type's block"},
    {"unknown type without bytes", type_without_bytes, WW_CORRUPT_FILE, "of type 99, which is not known here, has no bytes"},
    {"unknown type past the end", type_past_the_end, WW_CORRUPT_FILE, "has no bytes of its own"},
    {"unknown type and dimension 0", type_with_dimension_0, WW_CORRUPT_FILE, "a dimension is 0"},
    {"unknown type in another's bytes", type_inside_another, WW_CORRUPT_FILE, "overlaps"},
    {"huge type", type_huge, WW_CORRUPT_FILE, "type 4294967295"},
    {"unaligned offset", offset_unaligned, WW_CORRUPT_FILE, "not a multiple of 32"},
    {"huge offset", offset_huge, WW_CORRUPT_FILE, "the file is cut off"},
    {"offset past the end", offset_past_end, WW_CORRUPT_FILE, "the file is cut off"},
    {"data past the end", data_past_end, WW_CORRUPT_FILE, "the file is cut off"},
    {"no data at all", data_missing, WW_CORRUPT_FILE, "the file is cut off"},
    {"overlapping tensors", overlapping, WW_CORRUPT_FILE, "overlaps"},
    {"tensors in one place", same_place, WW_CORRUPT_FILE, "overlaps"},
    {"duplicate name", name_twice, WW_CORRUPT_FILE, "the tensor 'a' appears twice"},
    {"name of 64 bytes", name_64, WW_CORRUPT_FILE, "a tensor's name has 64 bytes"},
    {"name with NUL", name_with_nul, WW_CORRUPT_FILE, "NUL"},
    {"name length 2^64-8", name_length_huge, WW_CORRUPT_FILE, "a tensor's name of"},
    {"part of a split model", split_part, WW_UNSUPPORTED, "part 2 of a split model"},
    {"split.count a string", split_no_integer, WW_CORRUPT_FILE, "split.count is not an integer"},
    {NULL, NULL, WW_OK, NULL},
};
