/* Tensors: a storage (type, device, buffer) seen through a layout (shape, strides, offset).
 *
 * Operations read tensors and fill `out`, a tensor of the caller. An `out` without a storage ({0}) gets a new one and the dense
 * row-major layout of the result; release it with ww_tensor_release(). An `out` with a storage is written into: its shape and
 * type must be the result's. It may overlap the inputs: the result is as if they had been read first. `out` is written
 * directly, without temporary memory, if it is dense, 16-byte aligned and overlaps no input, or if the operation works element
 * by element.
 *
 * Everything is checked before anything is done: shapes that do not match, types that an operation does not have, strides that
 * leave the storage, tensors on two devices are refused with WW_INVALID_ARGUMENT, WW_DIMENSION_MISMATCH or WW_UNSUPPORTED and
 * both shapes or types in the message. A refused call changes nothing. Only a device that fails while it computes may leave an
 * `out` with a storage partly written.
 *
 * Results have the same bits on every device. A NaN that is computed is always the type's one quiet NaN (f32: 0x7fc00000);
 * copies keep the bits. docs/guide/tensors.md has the tables: what each operation does with integers, how types
 * are converted.
 *
 * On a GPU operations are queued and return at once; they run in the order of the calls. ww_device_synchronize(),
 * ww_tensor_to_host() and copies to another device wait. Storages may be used from any thread, one thread at a time for each
 * that is written.
 */
#ifndef WARPWAVE_TENSOR_H
#define WARPWAVE_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include <warpwave/device.h>
#include <warpwave/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WW_RANK_MAX 8

/* What elements are. i8 can be stored, copied and cast; arithmetic in it is matrix products only. */
typedef enum ww_dtype {
    WW_U8 = 0,
    WW_U32 = 1,
    WW_I16 = 2,
    WW_I32 = 3,
    WW_I64 = 4,
    WW_BF16 = 5,
    WW_F16 = 6,
    WW_F32 = 7,
    WW_F64 = 8,
    WW_F8E4M3 = 9, /* 1, 4 and 3 bits; no infinity, the largest is 448 */
    WW_I8 = 10
} ww_dtype;

/* The name ("bf16") and the bytes of a type, "unknown" and 0 for other numbers; and the type of a name, or -1. */
WW_API const char *ww_dtype_name(ww_dtype dtype);
WW_API size_t ww_dtype_bytes(ww_dtype dtype);
WW_API int32_t ww_dtype_of_name(const char *name);

/* ---- layouts ------------------------------------------------------------------------------------------------------------- */

/* Element (i0, i1, ...) is number offset + i0 * strides[0] + i1 * strides[1] + ... of its storage. Strides are 0 or more;
 * 0 repeats. Rank 0 is one element. */
typedef struct ww_layout {
    int32_t rank;
    int64_t shape[WW_RANK_MAX];
    int64_t strides[WW_RANK_MAX];
    int64_t offset;
} ww_layout;

/* Writes the dense row-major layout of a shape to `layout`. An invalid shape (rank 9, a negative size) is refused by the call
 * that takes the layout. */
WW_API void ww_layout_make(ww_layout *layout, int32_t rank, const int64_t *shape);
static inline ww_layout ww_layout_contiguous(int32_t rank, const int64_t *shape)
{
    ww_layout layout;
    ww_layout_make(&layout, rank, shape);
    return layout;
}

/* How many elements a layout has; -1 if it is invalid or they cannot be counted in 63 bits. */
WW_API int64_t ww_layout_elements(const ww_layout *layout);

/* ---- storages ------------------------------------------------------------------------------------------------------------ */

typedef struct ww_storage ww_storage;

/* A storage as an operation sees it. Copying the struct does not retain the storage: release only one of the copies. */
typedef struct ww_tensor {
    ww_storage *storage;
    ww_layout layout;
} ww_tensor;

/* Make a storage of `elements` on a device, uninitialised or with a copy of `data`, for layouts of your own. Every storage
 * needs a ww_storage_release(). WW_OUT_OF_MEMORY has the bytes needed and free. */
WW_API ww_status ww_storage_create(ww_device *device, ww_dtype dtype, int64_t elements, ww_storage **storage);
WW_API ww_status ww_storage_from_host(ww_device *device, ww_dtype dtype, int64_t elements, const void *data,
                                      ww_storage **storage);

/* Add a reference to a storage, which is returned, and remove one. The last release frees it, even while operations that use it
 * are queued. Both accept NULL, and may be called from any thread. */
WW_API ww_storage *ww_storage_retain(ww_storage *storage);
WW_API void ww_storage_release(ww_storage *storage);

/* The type, number of elements and device of a storage; NULL has no elements. Do not close the device: it is the storage's. */
WW_API ww_dtype ww_storage_dtype(const ww_storage *storage);
WW_API int64_t ww_storage_elements(const ww_storage *storage);
WW_API ww_device *ww_storage_device(const ww_storage *storage);

/* Copies all elements to `data`, which has ww_storage_elements() times ww_dtype_bytes() bytes. Waits for queued work. */
WW_API ww_status ww_storage_to_host(const ww_storage *storage, void *data);

/* Waits until all tensor operations that are queued on the device are done. */
WW_API ww_status ww_device_synchronize(ww_device *device);

/* ---- making tensors ------------------------------------------------------------------------------------------------------ */

/* Releases a tensor's storage and empties the struct, even while operations that use it are queued. Accepts NULL and empty
 * tensors. */
WW_API void ww_tensor_release(ww_tensor *x);

/* The type of a tensor; u8 if it is empty. */
WW_API ww_dtype ww_tensor_dtype(const ww_tensor *x);

/* A tensor with the elements of `data`, in row-major order. `data` may change after the call. */
WW_API ww_status ww_tensor_from_host(ww_device *device, ww_dtype dtype, int32_t rank, const int64_t *shape, const void *data,
                                     ww_tensor *out);

/* Copies the elements of a tensor of any layout to `data` in row-major order: ww_layout_elements() times ww_dtype_bytes()
 * bytes. Waits for queued work. */
WW_API ww_status ww_tensor_to_host(const ww_tensor *x, void *data);

/* Copies elements of the host, in row-major order, into a tensor of any layout, such as a part of a larger one. `data` may
 * change after the call. Refuses a `to` in which one element appears twice. */
WW_API ww_status ww_tensor_write(const ww_tensor *to, const void *data);

/* A tensor of a shape: uninitialised, zeros, or `value` everywhere, converted as ww_tensor_cast() does. */
WW_API ww_status ww_tensor_empty(ww_device *device, ww_dtype dtype, int32_t rank, const int64_t *shape, ww_tensor *out);
WW_API ww_status ww_tensor_zeros(ww_device *device, ww_dtype dtype, int32_t rank, const int64_t *shape, ww_tensor *out);
WW_API ww_status ww_tensor_full(ww_device *device, ww_dtype dtype, int32_t rank, const int64_t *shape, double value,
                                ww_tensor *out);

/* start, start + step, ... up to, not including, `end`: number i is start + i * step in f64, each step rounded, converted
 * as ww_tensor_cast() does. Of rank 1. Made on the host. */
WW_API ww_status ww_tensor_arange(ww_device *device, ww_dtype dtype, double start, double end, double step, ww_tensor *out);

/* Random floats: evenly from `low` up to `high` (which rounding may reach), or normally distributed. Refuse integer types. A
 * device has a seed and a counter, so the same calls after the same ww_device_seed() give the same bits on every device. The
 * seed of a new device is 0. Only one thread at a time may seed. */
WW_API ww_status ww_device_seed(ww_device *device, uint64_t seed);
WW_API ww_status ww_tensor_uniform(ww_device *device, ww_dtype dtype, int32_t rank, const int64_t *shape, double low,
                                   double high, ww_tensor *out);
WW_API ww_status ww_tensor_normal(ww_device *device, ww_dtype dtype, int32_t rank, const int64_t *shape, double mean,
                                  double deviation, ww_tensor *out);

/* ---- views -----------------------------------------------------------------------------------------------------------------
 *
 * The same elements in another layout: nothing is copied, and writing to a view writes to x. A view retains the storage and is
 * released like any tensor. `view` is empty, or x itself, whose layout then changes. Negative dimensions count from the last.
 */

/* Any layout that lies within the storage. */
WW_API ww_status ww_tensor_view(const ww_tensor *x, const ww_layout *layout, ww_tensor *view);

/* Two dimensions exchanged; all of them in another order, dimension d of the view being dims[d] of x. */
WW_API ww_status ww_tensor_transpose(const ww_tensor *x, int32_t a, int32_t b, ww_tensor *view);
WW_API ww_status ww_tensor_permute(const ww_tensor *x, const int32_t *dims, ww_tensor *view);

/* Along one dimension: `count` elements from `first` on; every step-th from `begin` up to, not including, `end`, as Python
 * reads them (negative numbers count from the end, numbers beyond it are cut; step is 1 or more); one element, without the
 * dimension. */
WW_API ww_status ww_tensor_narrow(const ww_tensor *x, int32_t dim, int64_t first, int64_t count, ww_tensor *view);
WW_API ww_status ww_tensor_slice(const ww_tensor *x, int32_t dim, int64_t begin, int64_t end, int64_t step, ww_tensor *view);
WW_API ww_status ww_tensor_select(const ww_tensor *x, int32_t dim, int64_t index, ww_tensor *view);

/* The elements, in row-major order, in another shape; one size may be -1 to be computed. Always a view: WW_UNSUPPORTED if
 * only a copy could have that shape; ww_tensor_contiguous() makes one. */
WW_API ww_status ww_tensor_reshape(const ww_tensor *x, int32_t rank, const int64_t *shape, ww_tensor *view);

/* Repeated to a larger shape: dimensions, counted from the last, that are missing or 1 are repeated with a stride of 0. */
WW_API ww_status ww_tensor_broadcast_to(const ww_tensor *x, int32_t rank, const int64_t *shape, ww_tensor *view);

/* Without a dimension of size 1, and with one more before dimension `dim` (or after the last, if dim is the rank or -1). */
WW_API ww_status ww_tensor_squeeze(const ww_tensor *x, int32_t dim, ww_tensor *view);
WW_API ww_status ww_tensor_unsqueeze(const ww_tensor *x, int32_t dim, ww_tensor *view);

/* ---- moving elements ----------------------------------------------------------------------------------------------------- */

/* A dense copy of a tensor; and one on another device, which waits for queued work. */
WW_API ww_status ww_tensor_contiguous(const ww_tensor *x, ww_tensor *out);
WW_API ww_status ww_tensor_copy_to(const ww_tensor *x, ww_device *device, ww_tensor *out);

/* Writes the elements of `from` to `to`, of the same shape and type; they may be in the same storage. Refuses a `to` in which
 * one element appears twice (a stride of 0, for one). */
WW_API ww_status ww_tensor_copy_strided(const ww_tensor *from, const ww_tensor *to);

/* Copies `rows` runs of `columns` elements that begin `from_stride` and `to_stride` apart, the first at the offsets. The runs
 * written must not overlap each other. */
WW_API ww_status ww_tensor_copy2d(const ww_storage *from, ww_storage *to, int64_t rows, int64_t columns, int64_t from_stride,
                                  int64_t to_stride, int64_t from_offset, int64_t to_offset);

/* Sets every element of `to` to the value at `value`, which has the type of `to`. */
WW_API ww_status ww_tensor_const_set(const ww_tensor *to, const void *value);

/* Joins `count` tensors, at least one, along `dim`; the other dimensions and the types must be equal. */
WW_API ww_status ww_tensor_cat(const ww_tensor *xs, size_t count, int32_t dim, ww_tensor *out);

/* ---- by ids ----------------------------------------------------------------------------------------------------------------
 */

/* Ids are u8, u32 or i64 and count along dimension `dim` of x, which may be negative to count from the last. The largest value
 * of their type means "skip"; any other invalid id is refused with WW_OUT_OF_RANGE, and nothing is written. So these
 * functions wait for the ids. */

/* out[i][j] = x[ids[i][j]][j] for dim 0, and so on: the result has the shape of ids, which may be larger than x's only along
 * dim. 0 where the id is skipped. */
WW_API ww_status ww_tensor_gather(const ww_tensor *x, const ww_tensor *ids, int32_t dim, ww_tensor *out);

/* The slices of x named by a list of ids, in its order; zeros where the id is skipped. */
WW_API ww_status ww_tensor_index_select(const ww_tensor *x, const ww_tensor *ids, int32_t dim, ww_tensor *out);

/* x[ids[i][j]][j] = src[i][j] for dim 0, and so on, or += src[i][j], in place and in the order of i. If several elements go to
 * one place, the last wins, or they are added in that order, each sum rounded to the type. ids and src have one shape, which
 * may be larger than x's only along dim. */
WW_API ww_status ww_tensor_scatter(const ww_tensor *x, const ww_tensor *ids, const ww_tensor *src, int32_t dim);
WW_API ww_status ww_tensor_scatter_add(const ww_tensor *x, const ww_tensor *ids, const ww_tensor *src, int32_t dim);

/* Adds the slices of src, in order, to the slices of x named by a list of ids, in place. */
WW_API ww_status ww_tensor_index_add(const ww_tensor *x, const ww_tensor *ids, const ww_tensor *src, int32_t dim);

/* ---- element by element -------------------------------------------------------------------------------------------------- */

typedef enum ww_unary {
    WW_ABS = 0,
    WW_NEG = 1, /* not for unsigned types */
    WW_RECIP = 2,
    WW_SQR = 3,
    WW_SQRT = 4,
    WW_RSQRT = 5, /* 1 / sqrt(x) */
    WW_RELU = 6,
    WW_FLOOR = 7,
    WW_CEIL = 8,
    WW_ROUND = 9, /* halves away from zero */
    WW_SIGN = 10,
    WW_EXP = 11,
    WW_EXPM1 = 12, /* exp(x) - 1 */
    WW_LOG = 13,
    WW_LOG1P = 14, /* log(1 + x) */
    WW_SIN = 15,
    WW_COS = 16,
    WW_TANH = 17,
    WW_ERF = 18,
    WW_SIGMOID = 19,
    WW_SILU = 20,    /* x sigmoid(x) */
    WW_GELU = 21,    /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
    WW_GELU_ERF = 22 /* x/2 (1 + erf(x / sqrt(2))) */
} ww_unary;

typedef enum ww_binary {
    WW_ADD = 0,
    WW_SUB = 1,
    WW_MUL = 2,
    WW_DIV = 3,     /* integers: towards zero; by zero gives 0 */
    WW_MAXIMUM = 4, /* NaN if either is; +0 above -0 */
    WW_MINIMUM = 5,
    WW_REM = 6,  /* the remainder of division towards zero, with the sign of x; integers: by zero gives x */
    WW_POW = 7,  /* integers: a negative exponent gives 0 except for 1 and -1 */
    WW_ATAN2 = 8 /* the angle of the point (y, x): x is the ordinate */
} ww_binary;

typedef enum ww_cmp { WW_EQ = 0, WW_NE = 1, WW_LT = 2, WW_LE = 3, WW_GT = 4, WW_GE = 5 } ww_cmp;

/* The names of operations ("abs", "add", "eq"), "unknown" for other numbers; and the operation of a name, or -1. */
WW_API const char *ww_unary_name(ww_unary op);
WW_API const char *ww_binary_name(ww_binary op);
WW_API const char *ww_cmp_name(ww_cmp op);
WW_API int32_t ww_unary_of_name(const char *name);
WW_API int32_t ww_binary_of_name(const char *name);
WW_API int32_t ww_cmp_of_name(const char *name);

/* Converts every element: rounded to nearest even, floats to integers towards zero and saturated, NaN to 0. */
WW_API ww_status ww_tensor_cast(const ww_tensor *x, ww_dtype dtype, ww_tensor *out);

/* op(x) and op(x, y), where x and y have the same type. Shapes are broadcast as in NumPy: counted from the last
 * dimension, sizes must be equal, or 1 or missing in one operand, which is then repeated. */
WW_API ww_status ww_tensor_unary(ww_unary op, const ww_tensor *x, ww_tensor *out);
WW_API ww_status ww_tensor_binary(ww_binary op, const ww_tensor *x, const ww_tensor *y, ww_tensor *out);

/* 1 where the comparison holds and 0 elsewhere, as u8. */
WW_API ww_status ww_tensor_cmp(ww_cmp op, const ww_tensor *x, const ww_tensor *y, ww_tensor *out);

/* The element of x where the condition (u8, u32 or i64) is not 0, otherwise that of y. All three are broadcast. */
WW_API ww_status ww_tensor_where(const ww_tensor *condition, const ww_tensor *x, const ww_tensor *y, ww_tensor *out);

/* x * mul + add, fused. For integers mul and add are converted to their type, and the result wraps. */
WW_API ww_status ww_tensor_affine(const ww_tensor *x, double mul, double add, ww_tensor *out);

/* x to the power of e; and x where it is positive, alpha (exp(x) - 1) elsewhere. Floats only. */
WW_API ww_status ww_tensor_powf(const ww_tensor *x, double e, ww_tensor *out);
WW_API ww_status ww_tensor_elu(const ww_tensor *x, double alpha, ww_tensor *out);

/* ---- products ------------------------------------------------------------------------------------------------------------ */

/* Canonical: the same bits on every device. Fast: the vendor's library and low-precision units if available;
 * docs/design/arithmetic.md has the error. Calls that take a struct of options have it there as `math`, a product of two
 * tensors has it as an argument, and everything else (attention, reductions, element functions) is always canonical. */
typedef enum ww_math { WW_MATH_CANONICAL = 0, WW_MATH_FAST = 1 } ww_math;

/* [..., m, k] times [..., k, n] is [..., m, n], for f64, f32, f16 and bf16, and for i8, whose products are i32 (wrapping).
 * Batch dimensions are broadcast. Transpose with strides. */
WW_API ww_status ww_tensor_matmul(const ww_tensor *a, const ww_tensor *b, ww_math math, ww_tensor *out);

/* Options of a convolution, for y and x; in one dimension only the first number is used. */
typedef struct ww_conv {
    size_t struct_size; /* set by ww_conv_default() */
    int64_t padding[2];
    int64_t stride[2];
    int64_t dilation[2];
    int64_t output_padding[2]; /* transposed convolutions: added to the end of the output; less than stride or dilation */
    int64_t groups;            /* number of groups; each convolves only its own channels */
    ww_math math;
} ww_conv;

/* No padding, strides and dilations of 1, one group, canonical. */
WW_API ww_status ww_conv_init(void *value, size_t struct_size);
static inline ww_conv ww_conv_default(void)
{
    ww_conv value;
    ww_conv_init(&value, sizeof value);
    return value;
}

/* The size of an output in one dimension; -1 if there is no output. */
WW_API int64_t ww_conv_size(int64_t in, int64_t kernel, int64_t padding, int64_t stride, int64_t dilation);
WW_API int64_t ww_conv_transpose_size(int64_t in, int64_t kernel, int64_t padding, int64_t stride, int64_t dilation,
                                      int64_t output_padding);

/* x is [images, in, (y,) x]; w is [out, in / groups, (y,) x], or for transposed convolutions [in, out / groups, (y,) x]; the
 * result is [images, out, (y,) x]. f64, f32, f16, bf16; u8 and u32, which wrap, in either mode. */
WW_API ww_status ww_tensor_conv1d(const ww_tensor *x, const ww_tensor *w, const ww_conv *how, ww_tensor *out);
WW_API ww_status ww_tensor_conv2d(const ww_tensor *x, const ww_tensor *w, const ww_conv *how, ww_tensor *out);
WW_API ww_status ww_tensor_conv_transpose1d(const ww_tensor *x, const ww_tensor *w, const ww_conv *how, ww_tensor *out);
WW_API ww_status ww_tensor_conv_transpose2d(const ww_tensor *x, const ww_tensor *w, const ww_conv *how, ww_tensor *out);

/* ---- images: pools and enlargements -------------------------------------------------------------------------------------- */

/* A window over y and x. Padding is at most half of the kernel: every window holds an element. */
typedef struct ww_pool {
    size_t struct_size; /* set by ww_pool_default() */
    int64_t kernel[2];
    int64_t stride[2];
    int64_t padding[2];
    int32_t padding_counts; /* not 0: averages include padding as zeros; 0: only elements inside count */
} ww_pool;

/* Windows side by side, no padding; ..._init() makes them 1 x 1. */
WW_API ww_status ww_pool_init(void *value, size_t struct_size);
static inline ww_pool ww_pool_default(int64_t kernel_y, int64_t kernel_x)
{
    ww_pool value;
    ww_pool_init(&value, sizeof value);
    value.kernel[0] = value.stride[0] = kernel_y;
    value.kernel[1] = value.stride[1] = kernel_x;
    return value;
}

/* x is [images, channels, y, x]; the sizes of the result are those of ww_conv_size() with dilation 1. Any type but i8; averages
 * of integers are divided towards zero. */
WW_API ww_status ww_tensor_avg_pool2d(const ww_tensor *x, const ww_pool *how, ww_tensor *out);
WW_API ww_status ww_tensor_max_pool2d(const ww_tensor *x, const ww_pool *how, ww_tensor *out);

/* [images, channels, (y,) x] to other sizes of y and x: output o is the element at the integer part of o * in / out. Any type
 * but i8. */
WW_API ww_status ww_tensor_upsample_nearest1d(const ww_tensor *x, int64_t size, ww_tensor *out);
WW_API ww_status ww_tensor_upsample_nearest2d(const ww_tensor *x, int64_t size_y, int64_t size_x, ww_tensor *out);

/* The same, interpolated between the four nearest elements. Output o is at (o + 0.5) * in / out - 0.5, or, with align_corners,
 * at o * (in - 1) / (out - 1). `factors` (two numbers, y and x, or NULL) take the place of out / in if corners are not aligned.
 * Floats. */
WW_API ww_status ww_tensor_upsample_bilinear2d(const ww_tensor *x, int64_t size_y, int64_t size_x, int32_t align_corners,
                                               const double *factors, ww_tensor *out);

#ifdef __cplusplus
}
#endif

#endif
