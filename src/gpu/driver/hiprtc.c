/* Compiles kernels on this machine for an AMD chip without embedded code, with ROCm's compiler (hipRTC).
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
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/system/environment.h"
#include "base/tables/hash.h"
#include "base/text.h"
#include "gpu/driver/code_cache.h"
#include "gpu/driver/hip_api.h"
#include "gpu/driver/rocm_library.h"
#include "kernels/embedded.h"

/* hiprtcResult, an int: 0 is success. hiprtcProgram is a pointer. */
#define HIPRTC_FUNCTIONS(FUNCTION)                                                                                             \
    FUNCTION(version, hiprtcVersion, (int *major, int *minor))                                                                 \
    FUNCTION(create, hiprtcCreateProgram,                                                                                      \
             (void **program, const char *source, const char *name, int headers, const char **texts, const char **names))      \
    FUNCTION(destroy, hiprtcDestroyProgram, (void **program))                                                                  \
    FUNCTION(compile, hiprtcCompileProgram, (void *program, int count, const char **options))                                  \
    FUNCTION(log_size, hiprtcGetProgramLogSize, (void *program, size_t *bytes))                                                \
    FUNCTION(log, hiprtcGetProgramLog, (void *program, char *text))                                                            \
    FUNCTION(code_size, hiprtcGetCodeSize, (void *program, size_t *bytes))                                                     \
    FUNCTION(code, hiprtcGetCode, (void *program, char *bytes))

typedef struct compiler {
#define FUNCTION(name, symbol, parameters) int(*name) parameters; // NOLINT(bugprone-macro-parentheses)
    HIPRTC_FUNCTIONS(FUNCTION)
#undef FUNCTION
    const char *(*error_string)(int number);
    bool loaded;
    char why[256]; /* why it is not available */
} compiler;

/* A process loads the library once, with the HIP that it has. `rtc_lock` protects the search for it. */
static compiler rtc;
static void *rtc_hip_library;
static pthread_mutex_t rtc_lock = PTHREAD_MUTEX_INITIALIZER;
static bool rtc_looked;

enum { HEADERS_MAX = 128, LOG_BYTES_SHOWN = 400 };

static const char *const options[] = {"-O3", "-std=c++17", "-ffp-contract=off", "-fno-gpu-flush-denormals-to-zero", "-w"};
enum { OPTIONS = sizeof options / sizeof options[0] };

/* Macros, because some versions of HIP's own header define these types, and not all in the same way. */
#define INTEGER(bits)                                                                                                          \
    "typedef __INT" #bits "_TYPE__ ww_int" #bits ";\n#define int" #bits "_t ww_int" #bits "\n"                                 \
    "typedef __UINT" #bits "_TYPE__ ww_uint" #bits ";\n#define uint" #bits "_t ww_uint" #bits "\n"                             \
    "#undef INT" #bits "_MAX\n#undef INT" #bits "_MIN\n#undef UINT" #bits "_MAX\n"                                             \
    "#define INT" #bits "_MIN (-__INT" #bits "_MAX__ - 1)\n"                                                                   \
    "#define INT" #bits "_MAX __INT" #bits "_MAX__\n#define UINT" #bits "_MAX __UINT" #bits "_MAX__\n"

static const embedded_source standard_headers[] = {
    {"stdint.h", "#pragma once\n#ifndef NULL\n#define NULL __null\n#endif\n" INTEGER(8) INTEGER(16) INTEGER(32)
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

static bool find_functions(void *library)
{
    bool all = library != NULL;
#define FUNCTION(name, symbol, parameters)                                                                                     \
    *(void **)&rtc.name = all ? dlsym(library, #symbol) : NULL;                                                                \
    all = all && rtc.name != NULL;
    HIPRTC_FUNCTIONS(FUNCTION)
#undef FUNCTION
    if (all)
        *(void **)&rtc.error_string = dlsym(library, "hiprtcGetErrorString");
    return all && rtc.error_string != NULL;
}

static void look_for_compiler(void *hip_library)
{
    static const char *const names[] = {"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libhiprtc.so"};
    const char *path;
    rtc.loaded = false;
    if (!environment_path("WARPWAVE_HIPRTC_LIBRARY", &path, rtc.why, sizeof rtc.why))
        return;
    const bool named = path != NULL;
    rtc.loaded = !named && find_functions(hip_library);
    for (size_t i = 0; !rtc.loaded && i < (named ? 1 : sizeof names / sizeof names[0]); i++) {
        void *library = rocm_library_open(named ? path : names[i]);
        rtc.loaded = find_functions(library);
        if (!rtc.loaded && library != NULL)
            dlclose(library);
    }
    if (!rtc.loaded)
        snprintf(rtc.why, sizeof rtc.why, "%s has no hipRTC to compile them here",
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
    text_copy(detail, capacity, rtc.why);
    return rtc.loaded;
}

/* ---- what is compiled ---------------------------------------------------------------------------------------------------- */

typedef struct program_text {
    const char *source;
    const char *names[HEADERS_MAX];
    const char *texts[HEADERS_MAX];
    int headers;
} program_text;

static bool is_header(const char *name)
{
    const char *ending = strrchr(name, '.');
    return ending != NULL && (strcmp(ending, ".h") == 0 || strcmp(ending, ".def") == 0);
}

static void add_header(program_text *text, const embedded_source *header)
{
    if (text->headers < HEADERS_MAX) {
        text->names[text->headers] = header->name;
        text->texts[text->headers++] = header->text;
    }
}

/* Returns true if this is "kernels/ROOM/module.c". */
static bool is_source_of(const char *name, const char *module)
{
    const char *file = strrchr(name, '/');
    const size_t bytes = strlen(module);
    return file != NULL && strncmp(file + 1, module, bytes) == 0 && strcmp(file + 1 + bytes, ".c") == 0;
}

static bool collect(const char *module, program_text *text)
{
    for (int i = 0; i < STANDARD_HEADERS; i++)
        add_header(text, &standard_headers[i]);
    for (const embedded_source *source = embedded_sources(); source->name != NULL; source++)
        if (is_header(source->name))
            add_header(text, source);
        else if (is_source_of(source->name, module))
            text->source = source->text;
    return text->source != NULL;
}

/* Hashes everything that determines the code, so that an old cache entry is never used for new code. */
static uint64_t hash_of(const program_text *text)
{
    int version[2] = {0, 0};
    (void)rtc.version(&version[0], &version[1]);
    uint64_t hash = fnv_bytes(FNV_BEGIN, version, sizeof version);
    for (size_t i = 0; i < OPTIONS; i++)
        hash = fnv_bytes(hash, options[i], strlen(options[i]) + 1);
    for (int i = 0; i < text->headers; i++)
        hash = fnv_bytes(hash, text->texts[i], strlen(text->texts[i]) + 1);
    return fnv_bytes(hash, text->source, strlen(text->source));
}

/* ---- compiling ----------------------------------------------------------------------------------------------------------- */

/* Copies the beginning of the compiler's log: its first error says the most. */
static void show_log(void *program, char *detail, size_t capacity)
{
    size_t bytes = 0;
    if (rtc.log_size(program, &bytes) != 0 || bytes < 2)
        return;
    char *log = memory_alloc(bytes + 1);
    if (log == NULL)
        return;
    log[0] = log[bytes] = '\0';
    if (rtc.log(program, log) == 0) {
        const char *error = strstr(log, "error:");
        char shown[LOG_BYTES_SHOWN];
        text_copy(shown, sizeof shown, error != NULL ? error : log);
        text_append(detail, capacity, ": ");
        text_append(detail, capacity, shown);
    }
    memory_free(log);
}

static int take_code(void *program, void **image, size_t *bytes)
{
    int number = rtc.code_size(program, bytes);
    if (number != 0 || *bytes == 0)
        return AMD_ERROR_NO_BINARY_FOR_GPU;
    char *code = memory_alloc(*bytes);
    if (code == NULL)
        return AMD_ERROR_OUT_OF_MEMORY;
    number = rtc.code(program, code);
    if (number != 0) {
        memory_free(code);
        return AMD_ERROR_NO_BINARY_FOR_GPU;
    }
    *image = code;
    return AMD_SUCCESS;
}

static int compile(const hiprtc_job *job, program_text *text, driver_compiled *out)
{
    char target[64];
    const char *all[OPTIONS + 1];
    void *program = NULL;
    snprintf(target, sizeof target, "--offload-arch=%s", job->arch);
    all[0] = target;
    memcpy(all + 1, options, sizeof options);
    int result = rtc.create(&program, text->source, job->module, text->headers, text->texts, text->names);
    if (result != 0) {
        snprintf(job->detail, job->detail_capacity, "hiprtcCreateProgram: %s (%d)", rtc.error_string(result), result);
        return AMD_ERROR_NO_BINARY_FOR_GPU;
    }
    int number = AMD_ERROR_NO_BINARY_FOR_GPU;
    result = rtc.compile(program, OPTIONS + 1, all);
    if (result == 0) {
        number = take_code(program, &out->image, &out->bytes);
        if (number != AMD_SUCCESS)
            text_copy(job->detail, job->detail_capacity, "hipRTC compiled it, but does not give the code");
    } else {
        snprintf(job->detail, job->detail_capacity, "%s (%d)", rtc.error_string(result), result);
        show_log(program, job->detail, job->detail_capacity);
    }
    (void)rtc.destroy(&program);
    return number;
}

int hiprtc_compile(const hiprtc_job *job, driver_compiled *out)
{
    program_text text = {0};
    char name[192];
    *out = (driver_compiled){0};
    if (!compiler_is_loaded(job->hip_library, job->detail, job->detail_capacity))
        return AMD_ERROR_NO_BINARY_FOR_GPU;
    if (!collect(job->module, &text)) {
        snprintf(job->detail, job->detail_capacity, "this library has no source of '%s' to compile", job->module);
        return AMD_ERROR_NO_BINARY_FOR_GPU;
    }
    snprintf(name, sizeof name, "%s-%s-%016llx.hsaco", job->arch, job->module, (unsigned long long)hash_of(&text));
    if (job->anew)
        (void)code_cache_remove(name);
    else if (code_cache_read(name, out))
        return AMD_SUCCESS;
    const int number = compile(job, &text, out);
    if (number == AMD_SUCCESS)
        code_cache_write(name, out->image, out->bytes);
    return number;
}
