/* Trains a two-layer perceptron, softmax(relu(x W1) W2), on 1500 handwritten digits and tests it on 297 others.
 * Usage: perceptron [digits.csv [device]]. Every device computes the same bits, so all print the same accuracy. */
#include <stdio.h>
#include <stdlib.h>
#include <warpwave.h>
enum { COUNT = 1797, TRAIN = 1500, IN = 65, HIDDEN = 64, DIGITS = 10, STEPS = 500 }; /* IN: 64 pixels and a constant */
static ww_tensor x, y, w1, w2, h, z, p, e, d, on, dh, g1, g2;
static ww_storage *s; /* the newest result, before it is some tensor's */
static void set(ww_tensor *to, int failed, int64_t rows, int64_t columns)
{
    if (failed)
        exit((fprintf(stderr, "%s\n", ww_error_message()), EXIT_FAILURE));
    ww_storage_destroy(to->storage);
    *to = (ww_tensor){s, ww_layout_contiguous(2, (int64_t[]){rows, columns})};
}
static void multiply(ww_tensor *to, ww_tensor a, ww_tensor b)
{
    set(to, ww_tensor_matmul(&a, &b, WW_MATH_CANONICAL, &s), a.layout.shape[0], b.layout.shape[1]);
}
static ww_tensor transposed(ww_tensor t)
{
    return (ww_tensor){t.storage, {2, {t.layout.shape[1], t.layout.shape[0]}, {1, t.layout.strides[0]}, 0}};
}
int main(int argc, char **argv)
{
    static float pixels[COUNT][IN], wanted[COUNT][DIGITS];
    uint32_t found[COUNT], right = 0;
    ww_device *device = NULL;
    ww_matrix *file = NULL;
    int failed = ww_device_open(argc > 2 ? argv[2] : "auto", &device) ||
                 ww_matrix_open(argc > 1 ? argv[1] : "data/digits.csv", &file) || ww_matrix_read_f32(file, 0, COUNT, pixels[0]);
    for (int i = 0; i < COUNT; pixels[i++][IN - 1] = 16) /* a row: 64 numbers from 0 to 16, then the digit */
        wanted[i][(int)pixels[i][IN - 1] % DIGITS] = 1;
    set(&x, failed || ww_storage_from_host(device, WW_F32, (int64_t)COUNT * IN, pixels, &s), COUNT, IN);
    set(&y, ww_storage_from_host(device, WW_F32, (int64_t)COUNT * DIGITS, wanted, &s), COUNT, DIGITS);
    set(&w1, ww_storage_normal(device, WW_F32, (int64_t)IN * HIDDEN, 0, 0.01, &s), IN, HIDDEN);
    set(&w2, ww_storage_normal(device, WW_F32, (int64_t)HIDDEN * DIGITS, 0, 0.1, &s), HIDDEN, DIGITS);
    for (int step = 0; step < STEPS; step++, x.layout.shape[0] = COUNT) {
        multiply(&h, x, w1);
        set(&h, ww_tensor_unary(WW_RELU, &h, &s), COUNT, HIDDEN);
        multiply(&z, h, w2);
        set(&p, ww_tensor_softmax(&z, 1, &s), COUNT, DIGITS);
        set(&e, ww_tensor_binary(WW_SUB, &y, &p, &s), COUNT, DIGITS);
        x.layout.shape[0] = h.layout.shape[0] = e.layout.shape[0] = TRAIN; /* it learns from these */
        set(&d, ww_tensor_affine(&e, 0.02 / TRAIN, 0, &s), TRAIN, DIGITS);
        set(&on, ww_tensor_unary(WW_SIGN, &h, &s), TRAIN, HIDDEN); /* the derivative of relu */
        multiply(&dh, d, transposed(w2));
        set(&dh, ww_tensor_binary(WW_MUL, &dh, &on, &s), TRAIN, HIDDEN);
        multiply(&g1, transposed(x), dh);
        multiply(&g2, transposed(h), d);
        set(&w1, ww_tensor_binary(WW_ADD, &w1, &g1, &s), IN, HIDDEN);
        set(&w2, ww_tensor_binary(WW_ADD, &w2, &g2, &s), HIDDEN, DIGITS);
    }
    set(&e, ww_tensor_reduce(WW_REDUCE_ARGMAX, &p, (int32_t[]){1}, 1, &s) || ww_storage_to_host(s, found), COUNT, 1);
    for (int i = TRAIN; i < COUNT; i++)
        right += wanted[i][found[i]] == 1;
    printf("%u of %d right: %.4f\n", right, COUNT - TRAIN, (double)right / (COUNT - TRAIN));
    ww_matrix_close(file), ww_device_close(device);
}
