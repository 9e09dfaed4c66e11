/* A vendor's compiler that takes a source as text and gives code: hipRTC and NVRTC have the same functions under other names.
 */
#ifndef WW_GPU_DRIVER_RTC_H
#define WW_GPU_DRIVER_RTC_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/driver/driver.h"

/* FUNCTION(name here, the end of the symbol's name, parameters), for those that both vendors call the same. All return an int:
 * 0 is success. A program is a pointer. */
#define RTC_FUNCTIONS(FUNCTION)                                                                                                \
    FUNCTION(version, Version, (int *major, int *minor))                                                                       \
    FUNCTION(create, CreateProgram,                                                                                            \
             (void **program, const char *source, const char *name, int headers, const char **texts, const char **names))      \
    FUNCTION(destroy, DestroyProgram, (void **program))                                                                        \
    FUNCTION(compile, CompileProgram, (void *program, int count, const char **options))                                        \
    FUNCTION(log_size, GetProgramLogSize, (void *program, size_t *bytes))                                                      \
    FUNCTION(log, GetProgramLog, (void *program, char *text))

typedef struct rtc_library {
    const char *prefix;         /* "hiprtc", "nvrtc": begins the symbols */
    const char *code_functions; /* "Code", "CUBIN": ends the symbols of those that give the code */
    const char *called;         /* "hipRTC", "NVRTC": for messages */
    bool loaded;
#define FUNCTION(name, symbol, parameters) int(*name) parameters; // NOLINT(bugprone-macro-parentheses)
    RTC_FUNCTIONS(FUNCTION)
#undef FUNCTION
    int (*code_size)(void *program, size_t *bytes);
    int (*code)(void *program, char *bytes);
    const char *(*error_string)(int number);
} rtc_library;

/* Finds the functions in an open library, which may be NULL. Returns true, and sets `loaded`, if all are there. */
bool rtc_find_functions(rtc_library *rtc, void *library);

enum { RTC_HEADERS_MAX = 160, RTC_OPTIONS_MAX = 64 };

/* A source, its headers and the options that it is compiled with. */
typedef struct rtc_text {
    const char *source, *name;
    const char *header_names[RTC_HEADERS_MAX], *header_texts[RTC_HEADERS_MAX];
    int headers;
    const char *options[RTC_OPTIONS_MAX];
    int option_count;
    const char *entry; /* begins its name in the cache */
    bool anew;         /* the cached code is bad and is replaced */
} rtc_text;

void rtc_add_header(rtc_text *text, const char *name, const char *header);
/* Returns false if there is no more room. */
bool rtc_add_option(rtc_text *text, const char *option);

/* Hashes everything that determines the code, so that an old cache entry is never used for new code. */
uint64_t rtc_hash(const rtc_library *rtc, const rtc_text *text);

typedef enum rtc_result { RTC_DONE, RTC_REFUSED, RTC_NO_MEMORY } rtc_result;

/* What becomes of a compilation beside its result. */
typedef struct rtc_report {
    char *detail; /* gets the reason of a failure: the first error */
    size_t detail_capacity;
    char **log; /* NULL, or gets all that the compiler wrote, to memory_free(); NULL if that is nothing */
} rtc_report;

/* Compiles. Takes seconds. */
rtc_result rtc_compile(const rtc_library *rtc, const rtc_text *text, driver_compiled *out, const rtc_report *report);

/* The same, or from the cache (code_cache.h) under `text->entry` and the text's hash. */
rtc_result rtc_compile_or_read(const rtc_library *rtc, const rtc_text *text, driver_compiled *out, const rtc_report *report);

#endif
