/* The list of operations on tensors. */
#include "support/calls/tensor.h"

#include <warpwave/attention.h>

#include <warpwave/dlpack.h>

tensor_operands tensor_operands_make(ww_device *device)
{
    static const int64_t shape[] = {6, 10}, six = 6, ids[] = {3, 0, 5, 5, 2, 1};
    test_random random = {77};
    tensor_operands o = {0};
    o.x = test_tensor_make(device, &random, WW_F32, 2, shape, TEST_VIEW);
    o.y = test_tensor_make(device, &random, WW_F32, 2, shape, TEST_DENSE);
    o.target = test_tensor_make(device, &random, WW_F32, 2, shape, TEST_VIEW);
    o.condition = test_tensor_make(device, &random, WW_U8, 2, shape, TEST_DENSE);
    o.ids = test_tensor_of(device, WW_I64, 1, &six, ids);
    CHECK_OK(ww_device_open("cpu", &o.cpu));
    return o;
}

void tensor_operands_free(tensor_operands *o)
{
    test_tensor_free(&o->x);
    test_tensor_free(&o->y);
    test_tensor_free(&o->target);
    test_tensor_free(&o->condition);
    test_tensor_free(&o->ids);
    ww_device_close(o->cpu);
}

static ww_status create(const tensor_operands *o, ww_tensor *out)
{
    return ww_storage_create(ww_storage_device(o->x.tensor.storage), WW_F16, 12345, &out->storage);
}

static ww_status zeros(const tensor_operands *o, ww_tensor *out)
{
    return ww_tensor_zeros(ww_storage_device(o->x.tensor.storage), WW_I64, 1, (int64_t[]){321}, out);
}

static ww_status from_host(const tensor_operands *o, ww_tensor *out)
{
    return ww_tensor_from_host(ww_storage_device(o->x.tensor.storage), WW_U8, 2, (int64_t[]){4, 5}, o->x.host, out);
}

static ww_status full(const tensor_operands *o, ww_tensor *out)
{
    return ww_tensor_full(ww_storage_device(o->x.tensor.storage), WW_BF16, 2, (int64_t[]){7, 3}, 1.5, out);
}

static ww_status arange(const tensor_operands *o, ww_tensor *out)
{
    return ww_tensor_arange(ww_storage_device(o->x.tensor.storage), WW_F32, 0, 100, 3, out);
}

static ww_status view_to_host(const tensor_operands *o, ww_tensor *out)
{
    float room[60];
    (void)out;
    return ww_tensor_to_host(&o->x.tensor, room);
}

static ww_status write_view(const tensor_operands *o, ww_tensor *out)
{
    (void)out;
    return ww_tensor_write(&o->target.tensor, o->y.host);
}

/* Into a tensor that is not dense, and into one that is also read. */
static ww_status softmax_into_target(const tensor_operands *o, ww_tensor *out)
{
    ww_tensor target = o->target.tensor;
    (void)out;
    return ww_tensor_softmax(&o->y.tensor, 1, &target);
}

static ww_status sums_of_itself(const tensor_operands *o, ww_tensor *out)
{
    ww_tensor target = o->target.tensor, row = target;
    (void)out;
    const ww_status status = ww_tensor_narrow(&row, 0, 2, 1, &row);
    return status == WW_OK ? ww_tensor_binary(WW_ADD, &target, &row, &target) : status;
}

static ww_status wrapped(const tensor_operands *o, ww_tensor *out)
{
    ww_foreign foreign = ww_foreign_default();
    foreign.dtype = WW_F32;
    foreign.layout = o->y.tensor.layout;
    const ww_status status = ww_tensor_data(&o->y.tensor, &foreign.data);
    return status == WW_OK ? ww_tensor_wrap(ww_storage_device(o->y.tensor.storage), &foreign, out) : status;
}

/* The export waits for our stream, and is freed if it is not imported. */
static ww_status by_dlpack(const tensor_operands *o, ww_tensor *out)
{
    struct DLManagedTensorVersioned *managed = NULL;
    ww_device *device = ww_storage_device(o->y.tensor.storage);
    void *stream = NULL;
    ww_status status = ww_device_stream(device, &stream);
    if (status == WW_OK)
        status = ww_tensor_to_dlpack(&o->y.tensor, stream, &managed);
    if (status == WW_OK)
        status = ww_tensor_from_dlpack(device, managed, stream, out);
    if (status != WW_OK && managed)
        managed->deleter(managed);
    return status;
}

static ww_status transposed_view(const tensor_operands *o, ww_tensor *out)
{
    return ww_tensor_transpose(&o->x.tensor, 0, 1, out);
}

static ww_status to_host(const tensor_operands *o, ww_tensor *out)
{
    float room[400];
    (void)out;
    assert_true(ww_storage_elements(o->x.tensor.storage) <= 400);
    return ww_storage_to_host(o->x.tensor.storage, room);
}

static ww_status clone_it(const tensor_operands *o, ww_tensor *out)
{
    return ww_tensor_contiguous(&o->y.tensor, out);
}

static ww_status copy_to_cpu(const tensor_operands *o, ww_tensor *out)
{
    return ww_tensor_copy_to(&o->x.tensor, o->cpu, out);
}

static ww_status synchronize(const tensor_operands *o, ww_tensor *out)
{
    (void)out;
    return ww_device_synchronize(ww_storage_device(o->x.tensor.storage));
}

static ww_status uniform(const tensor_operands *o, ww_tensor *out)
{
    return ww_tensor_uniform(ww_storage_device(o->x.tensor.storage), WW_F16, 1, (int64_t[]){77}, -1.0, 1.0, out);
}

static ww_status normal(const tensor_operands *o, ww_tensor *out)
{
    return ww_tensor_normal(ww_storage_device(o->x.tensor.storage), WW_F64, 1, (int64_t[]){77}, 0.0, 1.0, out);
}

static ww_status contiguous(const tensor_operands *o, ww_tensor *out)
{
    return ww_tensor_contiguous(&o->x.tensor, out);
}

static ww_status copy_strided(const tensor_operands *o, ww_tensor *out)
{
    (void)out;
    return ww_tensor_copy_strided(&o->x.tensor, &o->target.tensor);
}

static ww_status copy_onto_itself(const tensor_operands *o, ww_tensor *out)
{
    ww_tensor from = o->target.tensor;
    (void)out;
    from.layout.shape[0] = 5;
    ww_tensor to = from;
    to.layout.offset += to.layout.strides[0];
    return ww_tensor_copy_strided(&from, &to);
}

static ww_status copy2d(const tensor_operands *o, ww_tensor *out)
{
    (void)out;
    return ww_tensor_copy2d(o->y.tensor.storage, o->target.tensor.storage, 4, 3, 7, 5, 1, 2);
}

static ww_status const_set(const tensor_operands *o, ww_tensor *out)
{
    const float value = 4.5f;
    (void)out;
    return ww_tensor_const_set(&o->target.tensor, &value);
}

static ww_status cat(const tensor_operands *o, ww_tensor *out)
{
    const ww_tensor xs[] = {o->x.tensor, o->y.tensor};
    return ww_tensor_cat(xs, 2, 1, out);
}

static ww_status cast(const tensor_operands *o, ww_tensor *out)
{
    return ww_tensor_cast(&o->x.tensor, WW_BF16, out);
}

static ww_status unary(const tensor_operands *o, ww_tensor *out)
{
    return ww_tensor_unary(WW_TANH, &o->x.tensor, out);
}

static ww_status binary(const tensor_operands *o, ww_tensor *out)
{
    return ww_tensor_binary(WW_POW, &o->x.tensor, &o->y.tensor, out);
}

static ww_status compare(const tensor_operands *o, ww_tensor *out)
{
    return ww_tensor_cmp(WW_LT, &o->x.tensor, &o->y.tensor, out);
}

static ww_status where(const tensor_operands *o, ww_tensor *out)
{
    return ww_tensor_where(&o->condition.tensor, &o->x.tensor, &o->y.tensor, out);
}

static ww_status affine(const tensor_operands *o, ww_tensor *out)
{
    return ww_tensor_affine(&o->x.tensor, 2.0, 1.0, out);
}

static ww_status index_select(const tensor_operands *o, ww_tensor *out)
{
    return ww_tensor_index_select(&o->x.tensor, &o->ids.tensor, 0, out);
}

/* The ids, the same for all columns. */
static ww_tensor wide_ids(const tensor_operands *o)
{
    ww_tensor ids = o->ids.tensor;
    ids.layout = (ww_layout){.rank = 2, .shape = {6, 10}, .strides = {1, 0}};
    return ids;
}

static ww_status gather(const tensor_operands *o, ww_tensor *out)
{
    const ww_tensor ids = wide_ids(o);
    return ww_tensor_gather(&o->x.tensor, &ids, 0, out);
}

static ww_status scatter(const tensor_operands *o, ww_tensor *out)
{
    const ww_tensor ids = wide_ids(o);
    (void)out;
    return ww_tensor_scatter(&o->target.tensor, &ids, &o->y.tensor, 0);
}

static ww_status scatter_add_to_itself(const tensor_operands *o, ww_tensor *out)
{
    const ww_tensor ids = wide_ids(o);
    (void)out;
    return ww_tensor_scatter_add(&o->target.tensor, &ids, &o->target.tensor, 0);
}

static ww_status index_add(const tensor_operands *o, ww_tensor *out)
{
    (void)out;
    return ww_tensor_index_add(&o->target.tensor, &o->ids.tensor, &o->x.tensor, 0);
}

/* ---- products and images ------------------------------------------------------------------------------------------------- */

static ww_tensor turned(const ww_tensor *x)
{
    ww_tensor turned = *x;
    turned.layout.shape[0] = x->layout.shape[1];
    turned.layout.shape[1] = x->layout.shape[0];
    turned.layout.strides[0] = x->layout.strides[1];
    turned.layout.strides[1] = x->layout.strides[0];
    return turned;
}

static ww_status matmul(const tensor_operands *o, ww_tensor *out)
{
    const ww_tensor y = turned(&o->y.tensor);
    return ww_tensor_matmul(&o->x.tensor, &y, WW_MATH_CANONICAL, out);
}

static ww_status matmul_fast(const tensor_operands *o, ww_tensor *out)
{
    const ww_tensor y = turned(&o->y.tensor);
    return ww_tensor_matmul(&o->x.tensor, &y, WW_MATH_FAST, out);
}

/* Several chunks, whose totals need memory of their own on a GPU. */
static ww_status matmul_f16(const tensor_operands *o, ww_tensor *out)
{
    ww_tensor halves = {0};
    ww_status status = ww_tensor_cast(&o->x.tensor, WW_F16, &halves);
    if (status != WW_OK)
        return status;
    halves.layout = (ww_layout){.rank = 2, .shape = {2, 600}, .strides = {3, 0}};
    const ww_tensor other = turned(&halves);
    status = ww_tensor_matmul(&halves, &other, WW_MATH_CANONICAL, out);
    ww_tensor_release(&halves);
    return status;
}

/* Repeated elements, which no BLAS takes, and which kernels for matrix units want copied. */
static ww_status matmul_fast_copied(const tensor_operands *o, ww_tensor *out)
{
    ww_tensor x = o->x.tensor;
    x.layout.rank = 2;
    x.layout.shape[1] = 50;
    x.layout.strides[1] = 0;
    const ww_tensor other = turned(&x);
    return ww_tensor_matmul(&x, &other, WW_MATH_FAST, out);
}

static ww_tensor as_images(const ww_tensor *x, int64_t images, int64_t channels, int64_t length)
{
    ww_tensor seen = *x;
    seen.layout = (ww_layout){.rank = 4,
                              .shape = {images, channels, 1, length},
                              .strides = {0, x->layout.strides[0], 0, x->layout.strides[1]},
                              .offset = x->layout.offset};
    return seen;
}

static ww_status conv2d(const tensor_operands *o, ww_tensor *out)
{
    const ww_tensor x = as_images(&o->x.tensor, 2, 6, 10), w = as_images(&o->y.tensor, 3, 6, 4);
    ww_conv how = ww_conv_default();
    how.padding[1] = 1;
    return ww_tensor_conv2d(&x, &w, &how, out);
}

static ww_status conv2d_fast(const tensor_operands *o, ww_tensor *out)
{
    const ww_tensor x = as_images(&o->x.tensor, 2, 6, 10), w = as_images(&o->y.tensor, 3, 6, 4);
    ww_conv how = ww_conv_default();
    how.padding[1] = 1;
    how.math = WW_MATH_FAST;
    return ww_tensor_conv2d(&x, &w, &how, out);
}

static ww_status conv_transpose2d(const tensor_operands *o, ww_tensor *out)
{
    const ww_tensor x = as_images(&o->x.tensor, 2, 6, 10), w = as_images(&o->y.tensor, 6, 3, 3);
    ww_conv how = ww_conv_default();
    how.stride[1] = 2;
    return ww_tensor_conv_transpose2d(&x, &w, &how, out);
}

static ww_status avg_pool2d(const tensor_operands *o, ww_tensor *out)
{
    const ww_tensor x = as_images(&o->x.tensor, 1, 6, 10);
    const ww_pool how = ww_pool_default(1, 2);
    return ww_tensor_avg_pool2d(&x, &how, out);
}

static ww_status upsample_nearest2d(const tensor_operands *o, ww_tensor *out)
{
    const ww_tensor x = as_images(&o->x.tensor, 1, 6, 10);
    return ww_tensor_upsample_nearest2d(&x, 2, 20, out);
}

static ww_status upsample_bilinear2d(const tensor_operands *o, ww_tensor *out)
{
    const ww_tensor x = as_images(&o->x.tensor, 1, 6, 10);
    return ww_tensor_upsample_bilinear2d(&x, 2, 20, 0, NULL, out);
}

static ww_status reduce_rows(const tensor_operands *o, ww_tensor *out)
{
    const int32_t dim = 1;
    return ww_tensor_reduce(WW_REDUCE_SUM, &o->x.tensor, &dim, 1, out);
}

/* Three runs, so that results wait between two rounds. */
static ww_status reduce_many(const tensor_operands *o, ww_tensor *out)
{
    ww_tensor many = o->x.tensor;
    many.layout = (ww_layout){.rank = 1, .shape = {3 * 4096}, .strides = {0}};
    return ww_tensor_reduce(WW_REDUCE_SUM, &many, NULL, 0, out);
}

static ww_status arg_max(const tensor_operands *o, ww_tensor *out)
{
    const int32_t dim = 0;
    return ww_tensor_reduce(WW_REDUCE_ARGMAX, &o->x.tensor, &dim, 1, out);
}

/* Two rounds of chunks, of a view. */
static ww_status cumsum(const tensor_operands *o, ww_tensor *out)
{
    ww_tensor many = o->x.tensor;
    many.layout = (ww_layout){.rank = 2, .shape = {2, 100}, .strides = {1, 0}};
    return ww_tensor_cumsum(&many, 1, out);
}

static ww_status conv_integer(const tensor_operands *o, ww_tensor *out)
{
    ww_tensor x = o->condition.tensor;
    x.layout = (ww_layout){.rank = 3, .shape = {1, 6, 10}, .strides = {0, 10, 1}};
    const ww_conv how = ww_conv_default();
    return ww_tensor_conv1d(&x, &x, &how, out);
}

static ww_status softmax(const tensor_operands *o, ww_tensor *out)
{
    return ww_tensor_softmax(&o->x.tensor, 0, out);
}

static ww_status layer_norm(const tensor_operands *o, ww_tensor *out)
{
    ww_tensor vector = o->x.tensor;
    vector.layout = (ww_layout){.rank = 1, .shape = {10}, .strides = {0}};
    return ww_tensor_layer_norm(&o->x.tensor, &vector, &vector, 1e-5, out);
}

static ww_status rope(const tensor_operands *o, ww_tensor *out)
{
    ww_tensor angles = o->y.tensor;
    angles.layout.shape[1] = 5;
    return ww_tensor_rope(&o->x.tensor, &angles, &angles, false, out);
}

/* Any 32 consecutive ones of the 60 elements of y are a token's head. */
static ww_status attention(const tensor_operands *o, ww_tensor *out)
{
    ww_tensor x = o->y.tensor;
    ww_attention how = ww_attention_default();
    how.causal = true;
    x.layout = (ww_layout){.rank = 3, .shape = {20, 1, 32}, .strides = {1, 0, 1}, .offset = 0};
    return ww_tensor_attention(&x, &x, &x, &how, out);
}

static ww_status sort(const tensor_operands *o, ww_tensor *out)
{
    ww_tensor indices = {0};
    const ww_status status = ww_tensor_sort(&o->x.tensor, true, out, &indices);
    ww_tensor_release(&indices);
    return status;
}

const tensor_call tensor_calls[] = {
    {"create", create},
    {"zeros", zeros},
    {"from_host", from_host},
    {"to_host", to_host},
    {"full", full},
    {"arange", arange},
    {"to_host of a view", view_to_host},
    {"write to a view", write_view},
    {"softmax into a view", softmax_into_target},
    {"add onto itself", sums_of_itself},
    {"transpose", transposed_view},
    {"wrap", wrapped},
    {"dlpack", by_dlpack},
    {"clone", clone_it},
    {"copy_to", copy_to_cpu},
    {"synchronize", synchronize},
    {"uniform", uniform},
    {"normal", normal},
    {"contiguous", contiguous},
    {"copy_strided", copy_strided},
    {"copy_strided onto itself", copy_onto_itself},
    {"copy2d", copy2d},
    {"const_set", const_set},
    {"cat", cat},
    {"cast", cast},
    {"unary", unary},
    {"binary", binary},
    {"cmp", compare},
    {"where", where},
    {"affine", affine},
    {"index_select", index_select},
    {"gather", gather},
    {"scatter", scatter},
    {"scatter_add", scatter_add_to_itself},
    {"index_add", index_add},
    {"matmul", matmul},
    {"matmul, fast", matmul_fast},
    {"matmul, fast, of repeated elements", matmul_fast_copied},
    {"matmul of f16", matmul_f16},
    {"conv2d", conv2d},
    {"conv2d, fast", conv2d_fast},
    {"conv_transpose2d", conv_transpose2d},
    {"avg_pool2d", avg_pool2d},
    {"upsample_nearest2d", upsample_nearest2d},
    {"upsample_bilinear2d", upsample_bilinear2d},
    {"reduce", reduce_rows},
    {"reduce many", reduce_many},
    {"argmax", arg_max},
    {"cumsum", cumsum},
    {"conv1d of u8", conv_integer},
    {"softmax", softmax},
    {"layer_norm", layer_norm},
    {"rope", rope},
    {"attention", attention},
    {"sort", sort},
    {NULL, NULL},
};
