/* Loads one matrix of a GGUF model and multiplies a vector by it: y = W x with x = (1, 1/2, 1/3, ...).
 * Usage: gguf_multiply MODEL.gguf TENSOR [DEVICE]; `warpwave gguf info MODEL.gguf` lists the tensors. Every device prints the
 * same numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <warpwave.h>

static int multiply(ww_device *device, const ww_quant *matrix)
{
    ww_quant_info info = ww_quant_info_default();
    if (ww_quant_describe(matrix, &info))
        return 1;
    printf("%s, %lld rows of %lld\n", ww_quant_name(info.type), (long long)info.rows, (long long)info.cols);
    ww_tensor x = {0}, y = {0};
    float *in = malloc((size_t)info.cols * sizeof *in), *out = malloc((size_t)info.rows * sizeof *out);
    for (int64_t i = 0; in && i < info.cols; i++)
        in[i] = 1.0f / (float)(i + 1);
    const int failed = !in || !out || ww_tensor_from_host(device, WW_F32, 1, &info.cols, in, &x) ||
                       ww_quant_matmul(matrix, &x, &y) || ww_tensor_to_host(&y, out);
    for (int64_t i = 0; !failed && i < info.rows && i < 8; i++)
        printf("y[%lld] = %.9g\n", (long long)i, (double)out[i]);
    ww_tensor_release(&y);
    ww_tensor_release(&x);
    free(out);
    free(in);
    return failed;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return fprintf(stderr, "usage: gguf_multiply MODEL.gguf TENSOR [DEVICE]\n"), 2;
    ww_device *device = NULL;
    ww_gguf *model = NULL;
    ww_quant *matrix = NULL;
    int64_t index = 0;
    const int failed = ww_device_open(argc > 3 ? argv[3] : "auto", &device) || ww_gguf_open(argv[1], &model) ||
                       ww_gguf_find_tensor(model, argv[2], &index) || ww_gguf_load(model, index, device, NULL, NULL, &matrix) ||
                       multiply(device, matrix);
    if (failed)
        fprintf(stderr, "%s\n", ww_error_message());
    ww_quant_destroy(matrix);
    ww_gguf_close(model);
    ww_device_close(device);
    return failed;
}
