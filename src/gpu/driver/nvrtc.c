/* Compiles kernels of the caller on this machine with CUDA's compiler (NVRTC). */
#include "gpu/driver/nvrtc.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/system/environment.h"
#include "base/text.h"
#include "gpu/driver/cuda_api.h"
#include "gpu/driver/rtc.h"

/* A process loads the library once. */
static rtc_library rtc = {.prefix = "nvrtc", .code_functions = "CUBIN", .called = "NVRTC"};
static char rtc_absence[512]; /* why it is not available */
static pthread_once_t rtc_once = PTHREAD_ONCE_INIT;

/* NVRTC has no headers of its own. int64_t is long here as on the host, so that both mangle it alike. */
static const char stdint_header[] = "#pragma once\n"
                                    "typedef signed char int8_t;\ntypedef unsigned char uint8_t;\n"
                                    "typedef short int16_t;\ntypedef unsigned short uint16_t;\n"
                                    "typedef int int32_t;\ntypedef unsigned int uint32_t;\n"
                                    "typedef long int64_t;\ntypedef unsigned long uint64_t;\n"
                                    "typedef long intptr_t;\ntypedef unsigned long uintptr_t;\n"
                                    "#define INT32_MAX 2147483647\n#define INT32_MIN (-INT32_MAX - 1)\n"
                                    "#define UINT32_MAX 4294967295u\n"
                                    "#define INT64_MAX 9223372036854775807l\n#define INT64_MIN (-INT64_MAX - 1)\n"
                                    "#define UINT64_MAX 18446744073709551615ul\n";

/* ---- finding the compiler ------------------------------------------------------------------------------------------------ */

static void try_file(const char *path)
{
    void *library = rtc.loaded ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return;
    if (!rtc_find_functions(&rtc, library))
        dlclose(library);
}

static void load_once(void)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"};
    const char *path, *folders[] = {environment_folder("CUDA_PATH"), "/usr/local/cuda"};
    char file[512];
    if (!environment_path("WARPWAVE_NVRTC_LIBRARY", &path, rtc_absence, sizeof rtc_absence))
        return;
    if (path != NULL) {
        try_file(path);
    } else {
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            try_file(names[i]);
        for (size_t f = 0; f < sizeof folders / sizeof folders[0]; f++)
            for (size_t i = 0; folders[f] != NULL && i < sizeof names / sizeof names[0]; i++) {
                const int length = snprintf(file, sizeof file, "%s/lib64/%s", folders[f], names[i]);
                if (length > 0 && (size_t)length < sizeof file)
                    try_file(file);
            }
    }
    if (!rtc.loaded)
        snprintf(rtc_absence, sizeof rtc_absence,
                 "there is no NVRTC: %s; install it (Debian and Ubuntu: libnvrtc12, or CUDA's own packages)",
                 path != NULL ? path : "libnvrtc.so was not found");
}

/* ---- compiling ----------------------------------------------------------------------------------------------------------- */

int nvrtc_compile_source(const driver_source *source, driver_compiled *out, char **log, char *detail, size_t detail_capacity)
{
    char target[64], name[128];
    rtc_text text = {.source = source->text, .name = source->name, .entry = name, .anew = source->anew};
    const rtc_report report = {.detail = detail, .detail_capacity = detail_capacity, .log = log};
    *out = (driver_compiled){0};
    *log = NULL;
    pthread_once(&rtc_once, load_once);
    text_copy(detail, detail_capacity, rtc_absence);
    if (!rtc.loaded)
        return NV_ERROR_NOT_SUPPORTED;
    rtc_add_header(&text, "stdint.h", stdint_header);
    rtc_add_header(&text, "stdbool.h", "#pragma once\n");
    rtc_add_header(&text, "stddef.h", "#pragma once\n");
    snprintf(target, sizeof target, "--gpu-architecture=%s", source->arch);
    snprintf(name, sizeof name, "%s-own", source->arch);
    (void)rtc_add_option(&text, target);
    (void)rtc_add_option(&text, "--std=c++17");
    (void)rtc_add_option(&text, "--fmad=false"); /* as everywhere here: the code says where one happens */
    for (size_t i = 0; i < source->option_count; i++)
        if (!rtc_add_option(&text, source->options[i])) {
            snprintf(detail, detail_capacity, "too many options");
            return NV_ERROR_NOT_SUPPORTED;
        }
    switch (rtc_compile_or_read(&rtc, &text, out, &report)) {
    case RTC_DONE:
        return NV_SUCCESS;
    case RTC_NO_MEMORY:
        return NV_ERROR_OUT_OF_MEMORY;
    default:
        return NV_ERROR_NO_BINARY_FOR_GPU;
    }
}
