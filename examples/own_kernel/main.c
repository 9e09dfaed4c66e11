/* Runs the kernel of scale.c between two operations on tensors, and compares with the same computed here.
 *   own_kernel DEVICE FOLDER
 *   own_kernel DEVICE scale.hip
 * DEVICE is "rocm:0", "cuda:0" or, in a build with tests, "emulator:32"; FOLDER has what scale.c was compiled to:
 * scale.gfx90a.hsaco and the like, scale.sm_75.ptx, scale.so. A file is a source, which hipRTC or NVRTC compiles now. Exits
 * with 0 if all is the same, with 77 if there is no such device or no code for it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <warpwave.h>

enum { COUNT = 1000, THREADS = 128, BLOCKS = (COUNT + THREADS - 1) / THREADS };
enum { SAME = 0, FAILED = 1, NO_DEVICE = 77 };

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, ww_error_message());
    return FAILED;
}

/* The code for this device; NULL if it was not compiled. */
static void *read_code(const ww_device_info *info, const char *folder, size_t *bytes)
{
    char path[1024];
    if (strcmp(info->backend, "rocm") == 0)
        snprintf(path, sizeof path, "%s/scale.%s.hsaco", folder, info->arch);
    else
        snprintf(path, sizeof path, "%s/scale.%s", folder, strcmp(info->backend, "cuda") == 0 ? "sm_75.ptx" : "so");
    FILE *file = fopen(path, "rb");
    if (!file) {
        printf("there is no %s\n", path);
        return NULL;
    }
    char *code = malloc(16 << 20);
    *bytes = code ? fread(code, 1, 16 << 20, file) : 0;
    fclose(file);
    return code;
}

static float number(int i)
{
    return (float)(i % 37) * 0.25f - 3.0f;
}

/* Computes abs(x), then runs the kernel, then squares its result: three steps on the device's stream. */
static ww_status compute(ww_device *device, ww_kernel *scale, float *y, float *sums)
{
    float host[COUNT];
    const int64_t count = COUNT, blocks = BLOCKS;
    ww_tensor x = {0}, positive = {0}, scaled = {0}, parts = {0}, squared = {0};
    for (int i = 0; i < COUNT; i++)
        host[i] = number(i);
    ww_status status = ww_tensor_from_host(device, WW_F32, 1, &count, host, &x);
    if (status == WW_OK)
        status = ww_tensor_unary(WW_ABS, &x, &positive);
    if (status == WW_OK)
        status = ww_tensor_zeros(device, WW_F32, 1, &count, &scaled);
    if (status == WW_OK)
        status = ww_tensor_zeros(device, WW_F32, 1, &blocks, &parts);
    const ww_argument arguments[] = {ww_argument_tensor(&positive), ww_argument_tensor(&scaled), ww_argument_tensor(&parts),
                                     ww_argument_f32(0.5f), ww_argument_i64(COUNT)};
    ww_launch launch = ww_launch_default();
    launch.grid[0] = BLOCKS;
    launch.block[0] = THREADS;
    launch.arguments = arguments;
    launch.argument_count = sizeof arguments / sizeof arguments[0];
    if (status == WW_OK)
        status = ww_kernel_launch(scale, &launch);
    if (status == WW_OK)
        status = ww_tensor_unary(WW_SQR, &scaled, &squared);
    if (status == WW_OK)
        status = ww_tensor_to_host(&squared, y);
    if (status == WW_OK)
        status = ww_tensor_to_host(&parts, sums);
    ww_tensor_release(&x);
    ww_tensor_release(&positive);
    ww_tensor_release(&scaled);
    ww_tensor_release(&parts);
    ww_tensor_release(&squared);
    return status;
}

static int compare(const float *y, const float *sums)
{
    for (int block = 0; block < BLOCKS; block++) {
        float sum = 0.0f;
        for (int i = block * THREADS; i < COUNT && i < (block + 1) * THREADS; i++) {
            const float scaled = 0.5f * (number(i) < 0 ? -number(i) : number(i));
            sum += scaled;
            if (y[i] != scaled * scaled) {
                fprintf(stderr, "element %d is %g, not %g\n", i, (double)y[i], (double)(scaled * scaled));
                return FAILED;
            }
        }
        if (sums[block] != sum) {
            fprintf(stderr, "the sum of block %d is %g, not %g\n", block, (double)sums[block], (double)sum);
            return FAILED;
        }
    }
    return SAME;
}

static ww_status load(ww_device *device, const ww_device_info *info, const char *folder, ww_module **module)
{
    size_t bytes = 0;
    void *code = read_code(info, folder, &bytes);
    if (!code)
        return ww_error_set(WW_NOT_FOUND, "no code for this device");
    const ww_status status = ww_module_load(device, code, bytes, module);
    free(code);
    return status;
}

static ww_status compile(ww_device *device, const char *path, ww_module **module)
{
    static char source[1 << 16];
    char *log = NULL;
    FILE *file = fopen(path, "r");
    if (!file)
        return ww_error_set(WW_NOT_FOUND, "there is no such source");
    source[fread(source, 1, sizeof source - 1, file)] = '\0';
    fclose(file);
    const ww_status status = ww_module_compile(device, source, NULL, module, &log);
    if (log)
        printf("the compiler: %s\n", log);
    ww_compile_log_destroy(log);
    return status;
}

static int run(ww_device *device, const char *from)
{
    float y[COUNT], sums[BLOCKS];
    ww_module *module = NULL;
    ww_kernel *scale = NULL;
    ww_device_info info = ww_device_info_default();
    ww_kernel_info needs = ww_kernel_info_default();
    if (ww_device_describe(device, &info) != WW_OK)
        return fail("describing the device");
    const char *ending = strrchr(from, '.');
    ww_status status =
        ending && strcmp(ending, ".hip") == 0 ? compile(device, from, &module) : load(device, &info, from, &module);
    if (status == WW_NOT_FOUND)
        return NO_DEVICE;
    if (status == WW_OK)
        status = ww_module_function(module, "scale", &scale);
    if (status == WW_OK)
        status = ww_kernel_describe(scale, &needs);
    if (status == WW_OK)
        status = compute(device, scale, y, sums);
    ww_module_release(module);
    if (status != WW_OK)
        return fail(info.id);
    printf("%s: kernel 'scale', at most %d threads a block, %lld bytes of arguments\n", info.id, needs.threads_per_block_max,
           (long long)needs.argument_bytes);
    const int code_of_comparison = compare(y, sums);
    if (code_of_comparison == SAME)
        printf("%d elements and %d sums are as computed here\n", COUNT, BLOCKS);
    return code_of_comparison;
}

int main(int count, char **arguments)
{
    ww_device *device = NULL;
    if (count != 3) {
        fprintf(stderr, "usage: own_kernel DEVICE FOLDER|scale.hip\n");
        return FAILED;
    }
    if (ww_device_open(arguments[1], &device) != WW_OK) {
        printf("%s\n", ww_error_message());
        return NO_DEVICE;
    }
    const int code = run(device, arguments[2]);
    ww_device_close(device);
    return code;
}
