/* Kernels of your own: GPU code that you have compiled, or a source that the vendor's compiler compiles here, launched by name
 * on your tensors.
 *
 * A module is code as the device's driver takes it: on ROCm a code object (ELF) or a bundle of them, on CUDA PTX, a cubin or a
 * fatbin. On the emulator, in builds with tests, it is a shared object that the host's compiler made of the same source.
 * examples/own_kernel has a kernel for all three.
 *
 * Launches are queued on the stream that a device's tensor operations are queued on, in the order of the calls: a kernel sees
 * what operations before it wrote, and operations after it see what it wrote. The library cannot check what a kernel does to
 * memory: a kernel that faults loses the device, and later calls return WW_DRIVER_ERROR.
 */
#ifndef WARPWAVE_KERNEL_H
#define WARPWAVE_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include <warpwave/device.h>
#include <warpwave/status.h>
#include <warpwave/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ww_module ww_module;
typedef struct ww_kernel ww_kernel;

/* Loads `bytes` of code on a device; the memory may change after the call. Every module needs a ww_module_release().
 * Refuses a CPU and code that is of another vendor (WW_UNSUPPORTED), and code that the driver rejects, with the
 * driver's message (for PTX the log of its compiler). May take a second for PTX. */
WW_API ww_status ww_module_load(ww_device *device, const void *image, size_t bytes, ww_module **module);

/* How a source is compiled. Made by ww_compile_options_default(). */
typedef struct ww_compile_options {
    size_t struct_size; /* set by ww_compile_options_default() */
    /* For the compiler, after the library's own: -std=c++17 and no contraction of a product and a sum. 48 at most. */
    const char *const *options;
    size_t option_count;
    /* NULL, or the name of the module on this device: while a module of the name is loaded there, it is returned again, and
     * nothing is compiled. WW_INVALID_ARGUMENT if that module has another source or other options. */
    const char *name;
} ww_compile_options;

/* Compiles the source of kernels on this machine and loads it: HIP with hipRTC on ROCm, CUDA C++ with NVRTC on CUDA. `options`
 * may be NULL. Headers: on ROCm those for kernels that the library is made of ("kernels/simt/simt.h"); on both stdint.h,
 * stdbool.h and stddef.h. Every success needs a ww_module_release(). `log`: NULL, or gets all that the compiler wrote, also
 * when it fails, for ww_compile_log_destroy(); NULL if that is nothing, or the code came from the cache.
 * Code is kept on disk in $XDG_CACHE_HOME/warpwave, or ~/.cache/warpwave, by the hash of source, headers, options, compiler and
 * chip. Refuses a source that the compiler refuses, with its first error (WW_INVALID_ARGUMENT), a device without a compiler
 * (WW_UNSUPPORTED), and what ww_module_load() refuses. Blocks for seconds where nothing is kept. */
WW_API ww_status ww_module_compile(ww_device *device, const char *source, const ww_compile_options *options, ww_module **module,
                                   char **log);

/* Accepts NULL. */
WW_API void ww_compile_log_destroy(char *log);

/* Waits for the device's tensor operations, and unloads the module with all its kernels; a module that
 * ww_module_compile() has returned several times, after as many calls. Accepts NULL. */
WW_API void ww_module_release(ww_module *module);

/* Finds the kernel called `name` (extern "C", or as the compiler mangled it). It lives as long as its module. WW_NOT_FOUND if
 * there is none. */
WW_API ww_status ww_module_function(ww_module *module, const char *name, ww_kernel **kernel);

/* What a kernel needs and allows. */
typedef struct ww_kernel_info {
    size_t struct_size; /* set by ww_kernel_info_default() */
    int32_t threads_per_block_max;
    int32_t registers;                /* a thread; 0 where the driver does not say */
    int64_t shared_static_bytes;      /* a block */
    int64_t shared_dynamic_bytes_max; /* a block may be given */
    int64_t local_bytes;              /* a thread: what was spilled, and its stack */
    int64_t argument_bytes;           /* of all arguments, or -1 where the driver does not say (HIP) */
} ww_kernel_info;

/* Fills in `info`, which comes from ww_kernel_info_default(). Refuses NULL. Does not block. */
WW_API ww_status ww_kernel_describe(const ww_kernel *kernel, ww_kernel_info *info);

/* One argument. Arguments lie one after the other, each aligned as C aligns its type. Both vendors pass a list of parameters
 * like that, and a struct as the only parameter has the same layout. */
typedef enum ww_argument_kind {
    WW_ARGUMENT_TENSOR = 0, /* the address of its first element */
    WW_ARGUMENT_I32 = 1,
    WW_ARGUMENT_U32 = 2,
    WW_ARGUMENT_I64 = 3,
    WW_ARGUMENT_U64 = 4,
    WW_ARGUMENT_F32 = 5,
    WW_ARGUMENT_F64 = 6,
    WW_ARGUMENT_BYTES = 7 /* any other type: `size` bytes, aligned to `alignment` */
} ww_argument_kind;

typedef struct ww_argument {
    ww_argument_kind kind;
    union {
        const ww_tensor *tensor;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        float f32;
        double f64;
        const void *bytes;
    } value;
    size_t size, alignment; /* of BYTES */
} ww_argument;

/* One argument of a kernel, by its type. Cannot fail; do not block. */
static inline ww_argument ww_argument_tensor(const ww_tensor *tensor)
{
    ww_argument argument = {WW_ARGUMENT_TENSOR, {0}, 0, 0};
    argument.value.tensor = tensor;
    return argument;
}
static inline ww_argument ww_argument_i32(int32_t value)
{
    ww_argument argument = {WW_ARGUMENT_I32, {0}, 0, 0};
    argument.value.i32 = value;
    return argument;
}
static inline ww_argument ww_argument_u32(uint32_t value)
{
    ww_argument argument = {WW_ARGUMENT_U32, {0}, 0, 0};
    argument.value.u32 = value;
    return argument;
}
static inline ww_argument ww_argument_i64(int64_t value)
{
    ww_argument argument = {WW_ARGUMENT_I64, {0}, 0, 0};
    argument.value.i64 = value;
    return argument;
}
static inline ww_argument ww_argument_u64(uint64_t value)
{
    ww_argument argument = {WW_ARGUMENT_U64, {0}, 0, 0};
    argument.value.u64 = value;
    return argument;
}
static inline ww_argument ww_argument_f32(float value)
{
    ww_argument argument = {WW_ARGUMENT_F32, {0}, 0, 0};
    argument.value.f32 = value;
    return argument;
}
static inline ww_argument ww_argument_f64(double value)
{
    ww_argument argument = {WW_ARGUMENT_F64, {0}, 0, 0};
    argument.value.f64 = value;
    return argument;
}
static inline ww_argument ww_argument_bytes(const void *bytes, size_t size, size_t alignment)
{
    ww_argument argument = {WW_ARGUMENT_BYTES, {0}, 0, 0};
    argument.value.bytes = bytes;
    argument.size = size;
    argument.alignment = alignment;
    return argument;
}

typedef struct ww_launch {
    size_t struct_size;  /* set by ww_launch_default() */
    int64_t grid[3];     /* blocks along x, y and z; 1 by default */
    int64_t block[3];    /* threads of a block along x, y and z; 1 by default */
    size_t shared_bytes; /* dynamic */
    const ww_argument *arguments;
    size_t argument_count;
} ww_launch;

/* As the other ..._init() of this library (device.h). */
WW_API ww_status ww_kernel_info_init(void *value, size_t struct_size);
WW_API ww_status ww_launch_init(void *value, size_t struct_size);
WW_API ww_status ww_compile_options_init(void *value, size_t struct_size);

static inline ww_kernel_info ww_kernel_info_default(void)
{
    ww_kernel_info value;
    ww_kernel_info_init(&value, sizeof value);
    return value;
}
static inline ww_compile_options ww_compile_options_default(void)
{
    ww_compile_options value;
    ww_compile_options_init(&value, sizeof value);
    return value;
}
static inline ww_launch ww_launch_default(void)
{
    ww_launch value;
    ww_launch_init(&value, sizeof value);
    return value;
}

/* Queues the kernel. Refuses a grid, a block or shared memory that the kernel or the device does not allow (WW_OUT_OF_RANGE,
 * with the maximum), a tensor that does not lie in its storage or is on another device, and arguments whose bytes are not the
 * kernel's, if the driver says how many those are. Tensors may be released while it is queued. Does not block. */
WW_API ww_status ww_kernel_launch(ww_kernel *kernel, const ww_launch *launch);

#ifdef __cplusplus
}
#endif

#endif
