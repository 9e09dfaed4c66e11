/* Compiles kernels on this machine with ROCm's compiler (hipRTC): ours, for an AMD chip without embedded code, and those of
 * the caller.
 *
 * hipRTC takes a source and its headers as texts, which are embedded for that. It puts HIP's own declarations before ours; some
 * versions declare their own types under the names of stdint.h. So ours are macros over compiler types, which cannot clash. The
 * flags that change results are those of cmake/Kernels.cmake. simt_amd.h recognizes hipRTC by __HIPCC_RTC__ and does not rely
 * on a code object version there.
 */
#include "gpu/driver/hiprtc.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/system/environment.h"
#include "base/text.h"
#include "gpu/driver/hip_api.h"
#include "gpu/driver/rocm_library.h"
#include "gpu/driver/rtc.h"
#include "kernels/embedded.h"

/* A process loads the libraries once, with the HIP that it has. `rtc_lock` protects the search for them. */
static rtc_library rtc = {.prefix = "hiprtc", .code_functions = "Code", .called = "hipRTC"};
static char rtc_absence[256]; /* why it is not available */
static void *rtc_hip_library;
static struct { /* the list of chips in the library that hipRTC compiles with; NULL if that was not found */
    int (*count)(size_t *count);
    int (*name)(size_t index, const char **name);
} isas;
static pthread_mutex_t rtc_lock = PTHREAD_MUTEX_INITIALIZER;
static bool rtc_looked;

/* Macros, because some versions of HIP's own header define these types, and not all in the same way. */
#define INTEGER(bits)                                                                                                          \
    "typedef __INT" #bits "_TYPE__ ww_int" #bits ";\n#define int" #bits "_t ww_int" #bits "\n"                                 \
    "typedef __UINT" #bits "_TYPE__ ww_uint" #bits ";\n#define uint" #bits "_t ww_uint" #bits "\n"                             \
    "#undef INT" #bits "_MAX\n#undef INT" #bits "_MIN\n#undef UINT" #bits "_MAX\n"                                             \
    "#define INT" #bits "_MIN (-__INT" #bits "_MAX__ - 1)\n"                                                                   \
    "#define INT" #bits "_MAX __INT" #bits "_MAX__\n#define UINT" #bits "_MAX __UINT" #bits "_MAX__\n"

/* ROCm 5's compiler lacks it. Each element is one fused operation, as in the compiler's own. */
#define ELEMENTWISE_FMA                                                                                                        \
    "#if !__has_builtin(__builtin_elementwise_fma)\n#define __builtin_elementwise_fma(a, b, c) ({ "                            \
    "__typeof__(a) fma_a = (a), fma_b = (b), fma_c = (c); "                                                                    \
    "for (unsigned fma_i = 0; fma_i < sizeof(fma_a) / sizeof(fma_a[0]); fma_i++) "                                             \
    "fma_c[fma_i] = __builtin_fmaf(fma_a[fma_i], fma_b[fma_i], fma_c[fma_i]); fma_c; })\n#endif\n"

static const embedded_source standard_headers[] = {
    {"stdint.h", "#pragma once\n#ifndef NULL\n#define NULL __null\n#endif\n" ELEMENTWISE_FMA INTEGER(8) INTEGER(16) INTEGER(32)
                     INTEGER(64) "typedef __UINTPTR_TYPE__ ww_uintptr;\n"
                                 "#define uintptr_t ww_uintptr\n"
                                 "#undef INT64_C\n#undef UINT64_C\n"
                                 "#define INT64_C(c) c##ll\n"
                                 "#define UINT64_C(c) c##ull\n"},
    {"stdbool.h", "#pragma once\n"},
    {"stddef.h", "#pragma once\ntypedef __SIZE_TYPE__ ww_size;\n#define size_t ww_size\n"
                 "#undef offsetof\n#define offsetof(type, member) __builtin_offsetof(type, member)\n"},
};
enum { STANDARD_HEADERS = sizeof standard_headers / sizeof standard_headers[0] };
#undef INTEGER

/* ---- finding the compiler ------------------------------------------------------------------------------------------------ */

/* hipRTC opens that library, too, so it stays open. */
static void look_for_isas(void)
{
    static const char *const names[] = {"libamd_comgr.so.3", "libamd_comgr.so.2"};
    void *library = NULL;
    for (size_t i = 0; library == NULL && i < sizeof names / sizeof names[0]; i++)
        library = rocm_library_beside((const void *)(uintptr_t)rtc.compile, names[i]);
    *(void **)&isas.count = library != NULL ? dlsym(library, "amd_comgr_get_isa_count") : NULL;
    *(void **)&isas.name = library != NULL ? dlsym(library, "amd_comgr_get_isa_name") : NULL;
}

static void look_for_compiler(void *hip_library)
{
    static const char *const names[] = {"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libhiprtc.so"};
    const char *path;
    rtc.loaded = false;
    if (!environment_path("WARPWAVE_HIPRTC_LIBRARY", &path, rtc_absence, sizeof rtc_absence))
        return;
    const bool named = path != NULL;
    if (!named)
        (void)rtc_find_functions(&rtc, hip_library);
    for (size_t i = 0; !rtc.loaded && i < (named ? 1 : sizeof names / sizeof names[0]); i++) {
        void *library = rocm_library_open(named ? path : names[i]);
        if (!rtc_find_functions(&rtc, library) && library != NULL)
            dlclose(library);
    }
    if (rtc.loaded)
        look_for_isas();
    else
        snprintf(rtc_absence, sizeof rtc_absence, "%s has no hipRTC to compile kernels here",
                 named ? path : "neither the ROCm runtime nor libhiprtc.so");
}

static bool compiler_is_loaded(void *hip_library, char *detail, size_t capacity)
{
    pthread_mutex_lock(&rtc_lock);
    if (!rtc_looked || rtc_hip_library != hip_library)
        look_for_compiler(hip_library);
    rtc_looked = true;
    rtc_hip_library = hip_library;
    pthread_mutex_unlock(&rtc_lock);
    text_copy(detail, capacity, rtc_absence);
    return rtc.loaded;
}

/* ---- what is compiled ---------------------------------------------------------------------------------------------------- */

static bool is_header(const char *name)
{
    const char *ending = strrchr(name, '.');
    return ending != NULL && (strcmp(ending, ".h") == 0 || strcmp(ending, ".def") == 0);
}

/* Returns true if this is "kernels/ROOM/module.c". */
static bool is_source_of(const char *name, const char *module)
{
    const char *file = strrchr(name, '/');
    const size_t bytes = strlen(module);
    return file != NULL && strncmp(file + 1, module, bytes) == 0 && strcmp(file + 1 + bytes, ".c") == 0;
}

/* The headers that a source may include, and the source of a module, if one is named. */
static void collect(const char *module, rtc_text *text)
{
    for (int i = 0; i < STANDARD_HEADERS; i++)
        rtc_add_header(text, standard_headers[i].name, standard_headers[i].text);
    for (const embedded_source *source = embedded_sources(); source->name != NULL; source++)
        if (is_header(source->name))
            rtc_add_header(text, source->name, source->text);
        else if (module != NULL && is_source_of(source->name, module))
            text->source = source->text;
}

/* The options that change results are those of cmake/Kernels.cmake. */
static void add_options(rtc_text *text, const char *target)
{
    static const char *const options[] = {"-O3", "-std=c++17", "-ffp-contract=off", "-fno-gpu-flush-denormals-to-zero"};
    (void)rtc_add_option(text, target);
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        (void)rtc_add_option(text, options[i]);
}

/* ---- compiling ----------------------------------------------------------------------------------------------------------- */

static int number_of(rtc_result result)
{
    return result == RTC_DONE ? AMD_SUCCESS : result == RTC_NO_MEMORY ? AMD_ERROR_OUT_OF_MEMORY : AMD_ERROR_NO_BINARY_FOR_GPU;
}

/* The compilers of ROCm 5 and 6 end the process if they do not know the chip. */
static bool knows_chip(const char *arch)
{
    const size_t length = strcspn(arch, ":"); /* before the features */
    size_t count = 0;
    if (isas.count == NULL || isas.name == NULL || isas.count(&count) != 0 || count == 0)
        return true;
    for (size_t i = 0; i < count; i++) {
        const char *isa = NULL; /* such as amdgcn-amd-amdhsa--gfx90a */
        const char *chip = isas.name(i, &isa) == 0 && isa != NULL ? strstr(isa, "--") : NULL;
        if (chip != NULL && strlen(chip + 2) == length && strncmp(chip + 2, arch, length) == 0)
            return true;
    }
    return false;
}

/* Later than 5.2, whose compiler takes every kernel. Releases between are treated as 5.7. */
static bool is_of_late_rocm_5(void *hip_library)
{
    enum { HIP_5_3 = 50300000, HIP_6 = 60000000 }; /* as HIP numbers its versions */
    int (*runtime_version)(int *version);
    int version = 0;
    *(void **)&runtime_version = dlsym(hip_library, "hipRuntimeGetVersion");
    return runtime_version != NULL && runtime_version(&version) == AMD_SUCCESS && version >= HIP_5_3 && version < HIP_6;
}

/* Returns false, with the reason, if the compiler must not be asked because it would end the process. ROCm 5.7's does that with
 * attention_tile for any chip, unless it optimizes little, and with conv_shared for gfx90a and gfx942 in any case. */
static bool avoid_a_crash(const hiprtc_job *job, const char *arch, rtc_text *text)
{
    if (!knows_chip(arch)) {
        snprintf(job->detail, job->detail_capacity, "this release of ROCm does not know %s; a later one may", arch);
        return false;
    }
    if (job->module == NULL || !is_of_late_rocm_5(job->hip_library))
        return true;
    if (strcmp(job->module, "attention_tile") == 0)
        (void)rtc_add_option(text, "-O1");
    if (strcmp(job->module, "conv_shared") != 0 || (strncmp(arch, "gfx90a", 6) != 0 && strncmp(arch, "gfx94", 5) != 0))
        return true;
    snprintf(job->detail, job->detail_capacity, "the compiler of ROCm 5 crashes with '%s' for %s; ROCm 6 compiles it",
             job->module, arch);
    return false;
}

int hiprtc_compile(const hiprtc_job *job, driver_compiled *out)
{
    char target[64], name[128];
    rtc_text text = {.name = job->module, .entry = name, .anew = job->anew};
    const rtc_report report = {.detail = job->detail, .detail_capacity = job->detail_capacity};
    *out = (driver_compiled){0};
    if (!compiler_is_loaded(job->hip_library, job->detail, job->detail_capacity))
        return AMD_ERROR_NO_BINARY_FOR_GPU;
    collect(job->module, &text);
    if (text.source == NULL) {
        snprintf(job->detail, job->detail_capacity, "this library has no source of '%s' to compile", job->module);
        return AMD_ERROR_NO_BINARY_FOR_GPU;
    }
    snprintf(target, sizeof target, "--offload-arch=%s", job->arch);
    snprintf(name, sizeof name, "%s-%s", job->arch, job->module);
    add_options(&text, target);
    (void)rtc_add_option(&text, "-w");
    if (!avoid_a_crash(job, job->arch, &text))
        return AMD_ERROR_NO_BINARY_FOR_GPU;
    return number_of(rtc_compile_or_read(&rtc, &text, out, &report));
}

int hiprtc_compile_source(const hiprtc_job *job, const driver_source *source, driver_compiled *out, char **log)
{
    char target[64], name[128];
    rtc_text text = {.source = source->text, .name = source->name, .entry = name, .anew = source->anew};
    const rtc_report report = {.detail = job->detail, .detail_capacity = job->detail_capacity, .log = log};
    *out = (driver_compiled){0};
    *log = NULL;
    if (!compiler_is_loaded(job->hip_library, job->detail, job->detail_capacity))
        return AMD_ERROR_NOT_SUPPORTED;
    collect(NULL, &text);
    snprintf(target, sizeof target, "--offload-arch=%s", source->arch);
    snprintf(name, sizeof name, "%s-own", source->arch);
    add_options(&text, target);
    if (!avoid_a_crash(job, source->arch, &text))
        return AMD_ERROR_NO_BINARY_FOR_GPU;
    for (size_t i = 0; i < source->option_count; i++)
        if (!rtc_add_option(&text, source->options[i])) {
            snprintf(job->detail, job->detail_capacity, "too many options");
            return AMD_ERROR_INVALID_VALUE;
        }
    return number_of(rtc_compile_or_read(&rtc, &text, out, &report));
}
