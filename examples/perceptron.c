/* Trains a two-layer perceptron, softmax(relu(x W1) W2), on 1500 handwritten digits and tests it on 297 others.
 * Usage: perceptron [digits.csv [device]]. Every device computes the same bits, so all print the same accuracy. */
#include <stdio.h>
#include <stdlib.h>
#include <warpwave.h>

enum { COUNT = 1797, TRAIN = 1500, IN = 65, HIDDEN = 64, DIGITS = 10, STEPS = 500 }; /* IN: 64 pixels and a constant */
static ww_tensor x, y, w1, w2, h, z, p, e, d, on, dh, g1, g2, x_train, h_train, e_train, x_t, h_t, w2_t;

static void must(int failed)
{
    if (failed)
        exit((fprintf(stderr, "%s\n", ww_error_message()), EXIT_FAILURE));
}

/* Results get their storages in the first step and are written into in the others; a view is made once. */
static void train(void)
{
    for (int step = 0; step < STEPS; step++) {
        must(ww_tensor_matmul(&x, &w1, WW_MATH_CANONICAL, &h) || ww_tensor_unary(WW_RELU, &h, &h));
        must(ww_tensor_matmul(&h, &w2, WW_MATH_CANONICAL, &z) || ww_tensor_softmax(&z, 1, &p));
        must(ww_tensor_binary(WW_SUB, &y, &p, &e));
        if (step == 0) /* it learns from the first rows */
            must(ww_tensor_narrow(&x, 0, 0, TRAIN, &x_train) || ww_tensor_transpose(&x_train, 0, 1, &x_t) ||
                 ww_tensor_narrow(&h, 0, 0, TRAIN, &h_train) || ww_tensor_transpose(&h_train, 0, 1, &h_t) ||
                 ww_tensor_narrow(&e, 0, 0, TRAIN, &e_train) || ww_tensor_transpose(&w2, 0, 1, &w2_t));
        must(ww_tensor_affine(&e_train, 0.02 / TRAIN, 0, &d));
        must(ww_tensor_unary(WW_SIGN, &h_train, &on)); /* the derivative of relu */
        must(ww_tensor_matmul(&d, &w2_t, WW_MATH_CANONICAL, &dh) || ww_tensor_binary(WW_MUL, &dh, &on, &dh));
        must(ww_tensor_matmul(&x_t, &dh, WW_MATH_CANONICAL, &g1) || ww_tensor_binary(WW_ADD, &w1, &g1, &w1));
        must(ww_tensor_matmul(&h_t, &d, WW_MATH_CANONICAL, &g2) || ww_tensor_binary(WW_ADD, &w2, &g2, &w2));
    }
}

int main(int argc, char **argv)
{
    static float pixels[COUNT][IN], wanted[COUNT][DIGITS];
    uint32_t found[COUNT], right = 0;
    ww_device *device = NULL;
    ww_matrix *file = NULL;
    ww_tensor best = {0};
    must(ww_device_open(argc > 2 ? argv[2] : "auto", &device));
    must(ww_matrix_open(argc > 1 ? argv[1] : "data/digits.csv", &file) || ww_matrix_read_f32(file, 0, COUNT, pixels[0]));
    for (int i = 0; i < COUNT; pixels[i++][IN - 1] = 16) /* a row: 64 numbers from 0 to 16, then the digit */
        wanted[i][(int)pixels[i][IN - 1] % DIGITS] = 1;
    must(ww_tensor_from_host(device, WW_F32, 2, (int64_t[]){COUNT, IN}, pixels, &x));
    must(ww_tensor_from_host(device, WW_F32, 2, (int64_t[]){COUNT, DIGITS}, wanted, &y));
    must(ww_tensor_normal(device, WW_F32, 2, (int64_t[]){IN, HIDDEN}, 0, 0.01, &w1));
    must(ww_tensor_normal(device, WW_F32, 2, (int64_t[]){HIDDEN, DIGITS}, 0, 0.1, &w2));
    train();
    must(ww_tensor_reduce(WW_REDUCE_ARGMAX, &p, (int32_t[]){1}, 1, &best) || ww_tensor_to_host(&best, found));
    for (int i = TRAIN; i < COUNT; i++)
        right += wanted[i][found[i]] == 1;
    printf("%u of %d right: %.4f\n", right, COUNT - TRAIN, (double)right / (COUNT - TRAIN));
    ww_tensor *const all[] = {&x,  &y,  &w1, &w2,      &h,       &z,       &p,   &e,   &d,    &on,
                              &dh, &g1, &g2, &x_train, &h_train, &e_train, &x_t, &h_t, &w2_t, &best};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        ww_tensor_release(all[i]);
    ww_matrix_close(file);
    ww_device_close(device);
}
