/* Code objects in the stand-in for libamdhip64: it parses and checks them as a runtime's loader does. Their kernels run as the
 * emulated kernels of the same name, or as machine code if something can execute it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/emulator.h"
#include "emulator/object.h"
#include "standin/code_object.h"
#include "standin/hip_parts.h"

#define FUNCTION(name, symbol, parameters) STANDIN_EXPORT int symbol parameters;
HIP_FUNCTIONS(FUNCTION)
#undef FUNCTION

enum { OBJECT_BYTES_MAX = 16 << 20 };

/* A function is a kernel of its module's code. */
typedef struct module {
    int device;
    code_object code;
    size_t image_bytes;
    unsigned char image[];
} module;

static standin_executor execute; /* NULL: the emulator */

void standin_execute_with(standin_executor executor)
{
    execute = executor;
    if (executor != NULL)
        emulated_guard_memory();
}

/* The device's own code, or that of its family in the version that this ROCm knows. */
static const char *refusal(const standin_chip *chip, const code_object *code)
{
    char target[96];
    const bool exact = code->elf_mach == chip->elf_mach;
    const standin_chip *family = chip->family[0] != '\0' ? standin_find_chip(chip->family) : NULL;
    const bool generic = family != NULL && code->elf_mach == family->elf_mach;
    if (!exact && !generic)
        return "it is code for another chip";
    snprintf(target, sizeof target, "amdgcn-amd-amdhsa--%s", exact ? chip->name : family->name);
    if (strcmp(code->target, target) != 0)
        return "its notes name another chip than its header";
    if (code->version > (STANDIN_ROCM == 5 ? 5 : 6))
        return "its version is newer than this runtime";
    for (int i = 0; i < code->count; i++)
        if (code->kernels[i].wave_size != (uint64_t)chip->wave_size)
            return "its waves have another size than the chip's";
    return NULL;
}

int hipModuleLoadData(void **out, const void *image)
{
    BEGIN("hipModuleLoadData");
    ENTER(standin_current);
    const size_t bytes = code_object_bytes(image);
    module *made = malloc(sizeof *made + bytes);
    made->device = standin_current;
    made->image_bytes = bytes;
    memcpy(made->image, image, bytes);
    const char *wrong = code_object_read(image, &made->code);
    int number = wrong != NULL ? AMD_ERROR_INVALID_KERNEL_FILE : AMD_SUCCESS;
    if (wrong == NULL && refusal(standin_set.chips[standin_current], &made->code) != NULL)
        number = AMD_ERROR_NO_BINARY_FOR_GPU;
    if (number != AMD_SUCCESS) {
        free(made);
        return standin_result(number);
    }
    standin_add_handle(HANDLE_MODULE, standin_current, made);
    *out = made;
    return AMD_SUCCESS;
}

int hipModuleUnload(void *unloading)
{
    module *m = unloading;
    const int device = standin_remove_handle("hipModuleUnload", HANDLE_MODULE, m);
    if (device >= 0) {
        for (int i = 0; i < m->code.count; i++) /* its functions go with it */
            (void)standin_remove_handle(NULL, HANDLE_FUNCTION, &m->code.kernels[i]);
        free(m);
    }
    return standin_give("hipModuleUnload", device < 0 ? AMD_ERROR_INVALID_HANDLE : AMD_SUCCESS);
}

/* Returns the kernel that runs instead of a kernel's code: the library's, or one of the object in the settings, which stays
 * loaded. */
static const emulated_kernel *host_form(const char *name)
{
    static void *object;
    static char loaded[sizeof standin_set.kernels];
    const emulated_kernel *own = emulator_find(name);
    if (own != NULL || standin_set.kernels[0] == '\0')
        return own;
    if (object == NULL || strcmp(loaded, standin_set.kernels) != 0) {
        char why[256] = "";
        FILE *file = fopen(standin_set.kernels, "rb");
        char *image = malloc(OBJECT_BYTES_MAX);
        const size_t bytes = file != NULL ? fread(image, 1, OBJECT_BYTES_MAX, file) : 0;
        object = emulator_object_load(image, bytes, why, sizeof why);
        if (object == NULL)
            fprintf(stderr, "stand-in: %s: %s\n", standin_set.kernels, why);
        snprintf(loaded, sizeof loaded, "%s", standin_set.kernels);
        free(image);
        if (file != NULL)
            fclose(file);
    }
    return object != NULL ? emulator_object_find(object, name) : NULL;
}

int hipModuleGetFunction(void **function, void *of, const char *name)
{
    BEGIN("hipModuleGetFunction");
    ALIVE("hipModuleGetFunction", HANDLE_MODULE, of);
    module *m = of;
    for (int i = 0; i < m->code.count; i++) {
        code_kernel *kernel = &m->code.kernels[i];
        if (strcmp(kernel->name, name) != 0)
            continue;
        if (host_form(name) == NULL)
            return standin_result(AMD_ERROR_NOT_FOUND);
        if (standin_find_handle(NULL, HANDLE_FUNCTION, kernel) < 0)
            standin_add_handle(HANDLE_FUNCTION, m->device, kernel);
        kernel->owner = m;
        *function = kernel;
        return AMD_SUCCESS;
    }
    return standin_result(AMD_ERROR_NOT_FOUND);
}

int hipFuncGetAttribute(int *value, int attribute, void *function)
{
    BEGIN("hipFuncGetAttribute");
    ALIVE("hipFuncGetAttribute", HANDLE_FUNCTION, function);
    const code_kernel *kernel = function;
    switch (attribute) {
    case AMD_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = (int)kernel->threads_max;
        return AMD_SUCCESS;
    case AMD_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = (int)kernel->shared_bytes;
        return AMD_SUCCESS;
    case AMD_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = (int)kernel->scratch_bytes;
        return AMD_SUCCESS;
    case AMD_FUNC_ATTRIBUTE_NUM_REGS:
        *value = (int)kernel->registers;
        return AMD_SUCCESS;
    default:
        return standin_result(AMD_ERROR_INVALID_VALUE);
    }
}

static const char *launch_fault(const code_kernel *kernel, const driver_launch *launch)
{
    if (launch->arguments_bytes != kernel->explicit_bytes || launch->arguments_bytes > kernel->kernarg_bytes)
        return "a launch with another size of arguments than the code object says";
    if (launch->block_x > kernel->threads_max)
        return "a launch with larger blocks than the kernel was compiled for";
    if ((uint64_t)launch->grid_x * launch->block_x > UINT32_MAX)
        return "a launch of more threads than a packet can say";
    if (launch->grid_y > UINT16_MAX)
        return "a launch with more blocks along y than the device has";
    if (launch->shared_bytes + kernel->shared_bytes > EMULATOR_SHARED_BYTES)
        return "a launch with more LDS than a block has";
    return NULL;
}

bool standin_emulate(const standin_launch *launch)
{
    char fault[EMULATOR_FAULT_BYTES];
    const emulator_shape shape = {.grid_x = launch->grid_x,
                                  .grid_y = launch->grid_y,
                                  .block = launch->block,
                                  .wave_size = (uint32_t)standin_set.chips[standin_current]->wave_size,
                                  .shared_bytes = launch->shared_bytes};
    const emulated_kernel *kernel = host_form(launch->kernel);
    return kernel != NULL && emulator_launch(kernel, launch->arguments, launch->arguments_bytes, &shape, fault);
}

/* The queued work of the executor: the launch, followed by the arguments. */
typedef struct handed_over {
    standin_launch launch;
    _Alignas(16) unsigned char arguments[];
} handed_over;

static void hand_over(const void *queued)
{
    const handed_over *item = queued;
    standin_launch launch = item->launch;
    launch.arguments = item->arguments;
    execute(&launch);
}

static int launch_machine_code(const code_kernel *kernel, void *stream, const driver_launch *launch)
{
    const module *of = kernel->owner;
    const size_t bytes = sizeof(handed_over) + launch->arguments_bytes;
    handed_over *item = malloc(bytes);
    item->launch = (standin_launch){.image = of->image,
                                    .image_bytes = of->image_bytes,
                                    .kernel = kernel->name,
                                    .grid_x = launch->grid_x,
                                    .grid_y = launch->grid_y,
                                    .block = launch->block_x,
                                    .shared_bytes = launch->shared_bytes,
                                    .arguments_bytes = launch->arguments_bytes};
    memcpy(item->arguments, launch->arguments, launch->arguments_bytes);
    const int number = emulated_call(stream, hand_over, item, bytes);
    free(item);
    return number;
}

// NOLINTNEXTLINE(readability-function-size): the shape is AMD's
int hipModuleLaunchKernel(void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
                          unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, void *stream, void **arguments,
                          void **extra)
{
    BEGIN("hipModuleLaunchKernel");
    ALIVE("hipModuleLaunchKernel", HANDLE_FUNCTION, function);
    ON_STREAM("hipModuleLaunchKernel", stream);
    const code_kernel *kernel = function;
    const bool shape = grid_x > 0 && grid_y > 0 && grid_z == 1 && block_x > 0 && block_y == 1 && block_z == 1;
    const bool list = arguments == NULL && extra != NULL && extra[0] == (void *)AMD_LAUNCH_PARAM_BUFFER_POINTER &&
                      extra[1] != NULL && extra[2] == (void *)AMD_LAUNCH_PARAM_BUFFER_SIZE &&
                      extra[4] == (void *)AMD_LAUNCH_PARAM_END;
    if (!shape || !list)
        return standin_result(AMD_ERROR_INVALID_VALUE);
    const driver_launch launch = {.grid_x = grid_x,
                                  .grid_y = grid_y,
                                  .block_x = block_x,
                                  .shared_bytes = shared_bytes,
                                  .arguments = extra[1],
                                  .arguments_bytes = *(size_t *)extra[3]};
    const char *wrong = launch_fault(kernel, &launch);
    if (wrong != NULL) {
        standin_misused(wrong);
        return standin_result(AMD_ERROR_INVALID_VALUE);
    }
    if (execute != NULL)
        return standin_result(launch_machine_code(kernel, stream, &launch));
    return standin_result(emulated_launch((driver_function)(uintptr_t)host_form(kernel->name), stream, &launch));
}
