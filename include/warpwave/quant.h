/* Quantized matrices: weights in ggml's block formats on a device, as GGUF files store them.
 *
 * A matrix has rows of `cols` numbers, coded in blocks of 32 or 256 along the row. Decoding and coding give the same bits on
 * every device. A view is a matrix that shares another's rows; either may be destroyed first. A matrix never changes, so any
 * number of threads may use it.
 */
#ifndef WARPWAVE_QUANT_H
#define WARPWAVE_QUANT_H

#include <stddef.h>
#include <stdint.h>

#include <warpwave/device.h>
#include <warpwave/status.h>
#include <warpwave/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers are those of GGUF files. */
typedef enum ww_quant_type {
    WW_QUANT_F32 = 0,
    WW_QUANT_F16 = 1,
    WW_QUANT_Q4_0 = 2,
    WW_QUANT_Q4_1 = 3,
    WW_QUANT_Q5_0 = 6,
    WW_QUANT_Q5_1 = 7,
    WW_QUANT_Q8_0 = 8,
    WW_QUANT_Q8_1 = 9, /* for activations */
    WW_QUANT_Q2_K = 10,
    WW_QUANT_Q3_K = 11,
    WW_QUANT_Q4_K = 12,
    WW_QUANT_Q5_K = 13,
    WW_QUANT_Q6_K = 14,
    WW_QUANT_Q8_K = 15, /* for activations */
    WW_QUANT_IQ4_NL = 20,
    WW_QUANT_IQ4_XS = 23,
    WW_QUANT_BF16 = 30,
    WW_QUANT_MXFP4 = 39
} ww_quant_type;

typedef struct ww_quant ww_quant;

typedef struct ww_quant_info {
    size_t struct_size;
    ww_quant_type type;
    int64_t rows;
    int64_t cols;
    int64_t row_bytes;
    int64_t bytes; /* of all rows, without the padding after them */
    char device[32];
    int32_t finite; /* not 0: loading from a file has checked that all weights are finite; 0: not checked, or not all are */
} ww_quant_info;

/* An empty struct to be filled in; device.h says how ..._default() and ..._init() differ. */
WW_API ww_status ww_quant_info_init(void *value, size_t struct_size);
static inline ww_quant_info ww_quant_info_default(void)
{
    ww_quant_info value;
    ww_quant_info_init(&value, sizeof value);
    return value;
}

/* Takes a type; returns "q4_K", "f16", ..., or NULL for other numbers. */
WW_API const char *ww_quant_name(ww_quant_type type);

/* Finds the type called `name`, in small or capital letters. Refuses an unknown name with the list of types. */
WW_API ww_status ww_quant_find(const char *name, ww_quant_type *type);

/* Return how many numbers a block of the type holds, and how many bytes it has; 0 for an unknown type. */
WW_API int64_t ww_quant_block_elements(ww_quant_type type);
WW_API int64_t ww_quant_block_bytes(ww_quant_type type);

/* Returns in `bytes` how many bytes a row of `cols` numbers has. Refuses cols below 1, or not a multiple of the block. */
WW_API ww_status ww_quant_row_bytes(ww_quant_type type, int64_t cols, int64_t *bytes);

/* Makes a matrix from `rows` x `cols` floats in host memory (rows `row_stride` floats apart, 0 means cols), coded on the
 * device. Refuses cols that are not a multiple of the block, and for the block formats values that are not finite or need a
 * scale that an f16 cannot hold. Blocks. */
WW_API ww_status ww_quant_from_f32(ww_device *device, ww_quant_type type, const float *values, int64_t rows, int64_t cols,
                                   int64_t row_stride, ww_quant **matrix);

/* The same from a tensor, coded where it is: x of shape [..., cols], f32, f16 or bf16, of any layout; the dimensions before the
 * last are rows. As q8_1 or q8_K these are activations for ww_quant_multiply_coded(). Blocks, and waits for queued tensor
 * operations; only the answer whether everything could be coded leaves the device. */
WW_API ww_status ww_quant_from_tensor(ww_quant_type type, const ww_tensor *x, ww_quant **matrix);

/* Makes a matrix from coded blocks: `size` bytes in host memory, which must be rows x the bytes of a row. They are not changed
 * or checked. Blocks. */
WW_API ww_status ww_quant_load(ww_device *device, ww_quant_type type, const void *blocks, size_t size, int64_t rows,
                               int64_t cols, ww_quant **matrix);

/* Makes a matrix that shares `count` rows of another, from row `first` on. Refuses a range outside. Does not block. */
WW_API ww_status ww_quant_view(const ww_quant *matrix, int64_t first, int64_t count, ww_quant **view);

/* Frees it; the device's memory is freed with the last matrix that shares it. Accepts NULL. */
WW_API void ww_quant_destroy(ww_quant *matrix);

/* Describes a matrix into `info`. Refuses NULL. Does not block. */
WW_API ww_status ww_quant_describe(const ww_quant *matrix, ww_quant_info *info);

/* Reads `count` rows from row `first` on to the host: as f32, count x cols, decoded on the device; or the blocks as they are,
 * count x row_bytes. Refuse a range outside. Block. */
WW_API ww_status ww_quant_read_f32(const ww_quant *matrix, int64_t first, int64_t count, float *values);
WW_API ww_status ww_quant_read_blocks(const ww_quant *matrix, int64_t first, int64_t count, void *blocks);

/* Looks rows up: values[i] is row ids[i] as f32, count x cols. Refuses an id that is not a row, before anything is written.
 * Blocks. */
WW_API ww_status ww_quant_get_rows(const ww_quant *matrix, const int64_t *ids, int64_t count, float *values);

/* Decode `count` rows from row `first` on, or look rows up, into `out`, filled as by operations on tensors (tensor.h):
 * f32, f16 or bf16 of shape [count, cols], or the shape of ids followed by cols. Nothing leaves the device. A range outside is
 * refused. Ids are on the matrix's device and like those of ww_tensor_index_select(): u8, u32 or i64; for the largest value of
 * their type the row is zeros; any other invalid id is refused with WW_OUT_OF_RANGE; the call waits for the ids to find it.
 * Otherwise queued. */
WW_API ww_status ww_quant_dequantize(const ww_quant *matrix, int64_t first, int64_t count, ww_dtype dtype, ww_tensor *out);
WW_API ww_status ww_quant_rows(const ww_quant *matrix, const ww_tensor *ids, ww_dtype dtype, ww_tensor *out);

/* Multiplies: x of shape [..., cols], f32, f16 or bf16, on the matrix's device, with each row of the matrix; `out` is
 * f32 of shape [..., rows], filled as operations on tensors do (tensor.h). Activations are coded as q8_1 or q8_K for block
 * formats and stay f32 for f32, f16 and bf16; the same bits on every device (docs/design/arithmetic.md). Refuses activations
 * that are not finite or too large for the scale of a block, except for plain formats. Blocks, and waits for queued tensor
 * operations. */
WW_API ww_status ww_quant_matmul(const ww_quant *matrix, const ww_tensor *x, ww_tensor *out);

/* The same for a mixture of experts. The matrix has the experts one after the other, `expert_rows` rows each; row i of x is
 * multiplied with the rows of expert experts[i] (in host memory, one for each row of x). `out` has the shape [...,
 * expert_rows]. Refuses an invalid expert. */
WW_API ww_status ww_quant_matmul_experts(const ww_quant *matrix, int64_t expert_rows, const ww_tensor *x,
                                         const int64_t *experts, ww_tensor *out);

/* How activations are used. Coded: as in ww_quant_matmul(), fast, with a small error. Float: they stay f32, the weights are
 * decoded, and each result is a canonical dot product; no activations are refused. */
typedef enum ww_activations { WW_ACTIVATIONS_CODED = 0, WW_ACTIVATIONS_FLOAT = 1 } ww_activations;

/* How matrices are multiplied; begin with ww_quant_product_default(). */
typedef struct ww_quant_product {
    size_t struct_size;
    int32_t queued;         /* not 0: like an operation on tensors, see below */
    ww_math math;           /* fast: more than 32 rows of x on a GPU may go through its vendor's BLAS, as bf16 */
    int64_t expert_rows;    /* of each expert, if experts or expert_ids are given */
    const int64_t *experts; /* NULL: none */
    /* The same on the matrix's device, u8, u32 or i64, one for each row of x; `experts` is NULL then. For the largest value of
     * their type results are zeros. Any other invalid id is refused with WW_OUT_OF_RANGE, so the call waits for the ids; a
     * queued product does not wait, and the results are NaN. */
    const ww_tensor *expert_ids;
    ww_activations activations; /* float: always canonical, whatever `math` says */
    /* Work done together with the product: in one pass over memory if it is queued and the device can, and always with the
     * bits of separate calls. x must be f32, without experts. */
    const ww_tensor *norm_weight; /* not NULL: x goes through ww_tensor_rms_norm() with these weights, f32, first */
    double norm_eps;              /* eps of that norm */
    const ww_tensor *up;          /* not NULL: silu(x) * up is multiplied; of x's shape; not with a norm */
    int32_t accumulate;           /* not 0: results are added to what is in `out`, which has the result's shape, f32 */
} ww_quant_product;

/* Canonical, not queued, no experts, activations coded, nothing beside it. */
WW_API ww_status ww_quant_product_init(void *value, size_t struct_size);
static inline ww_quant_product ww_quant_product_default(void)
{
    ww_quant_product value;
    ww_quant_product_init(&value, sizeof value);
    return value;
}

/* The same with options; NULL: those of ww_quant_matmul(). On a GPU a queued product returns before it is done, as operations
 * on tensors do, so that products can follow each other without a gap. It cannot report activations that cannot be coded: all
 * results of such a row of x are NaN, on every device. */
WW_API ww_status ww_quant_multiply(const ww_quant *matrix, const ww_tensor *x, const ww_quant_product *options, ww_tensor *out);

/* The same with coded activations, for several products with the same activations: q8_1 for weights in blocks of 32, q8_K for
 * those in blocks of 256, made on the matrix's device by ww_quant_from_tensor() or ww_quant_from_f32(). `out` is of shape [rows
 * of the activations, rows], with the bits of the product that codes them itself. Refuses activations that were loaded, whose
 * codes were not checked, float activations, and plain weights; `math` has no effect. */
WW_API ww_status ww_quant_multiply_coded(const ww_quant *matrix, const ww_quant *activations, const ww_quant_product *options,
                                         ww_tensor *out);

#ifdef __cplusplus
}
#endif

#endif
