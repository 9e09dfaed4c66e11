/* A vendor's compiler that takes a source as text and gives code: hipRTC and NVRTC have the same functions under other names.
 */
#include "gpu/driver/rtc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/tables/hash.h"
#include "base/text.h"
#include "gpu/driver/code_cache.h"

enum { LOG_BYTES_SHOWN = 400 };

/* ---- the library --------------------------------------------------------------------------------------------------------- */

static void *find(const rtc_library *rtc, void *library, const char *before, const char *end)
{
    char symbol[64];
    snprintf(symbol, sizeof symbol, "%s%s%s", rtc->prefix, before, end);
    return dlsym(library, symbol);
}

bool rtc_find_functions(rtc_library *rtc, void *library)
{
    rtc->loaded = library != NULL;
    if (!rtc->loaded)
        return false;
#define FUNCTION(name, symbol, parameters)                                                                                     \
    *(void **)&rtc->name = find(rtc, library, "", #symbol);                                                                    \
    rtc->loaded = rtc->loaded && rtc->name != NULL;
    RTC_FUNCTIONS(FUNCTION)
#undef FUNCTION
    char sized[32];
    snprintf(sized, sizeof sized, "%sSize", rtc->code_functions);
    *(void **)&rtc->code_size = find(rtc, library, "Get", sized);
    *(void **)&rtc->code = find(rtc, library, "Get", rtc->code_functions);
    *(void **)&rtc->error_string = find(rtc, library, "", "GetErrorString");
    rtc->loaded = rtc->loaded && rtc->code_size != NULL && rtc->code != NULL && rtc->error_string != NULL;
    return rtc->loaded;
}

/* ---- what is compiled ---------------------------------------------------------------------------------------------------- */

void rtc_add_header(rtc_text *text, const char *name, const char *header)
{
    if (text->headers < RTC_HEADERS_MAX) {
        text->header_names[text->headers] = name;
        text->header_texts[text->headers++] = header;
    }
}

bool rtc_add_option(rtc_text *text, const char *option)
{
    if (text->option_count == RTC_OPTIONS_MAX)
        return false;
    text->options[text->option_count++] = option;
    return true;
}

uint64_t rtc_hash(const rtc_library *rtc, const rtc_text *text)
{
    int version[2] = {0, 0};
    (void)rtc->version(&version[0], &version[1]);
    uint64_t hash = fnv_bytes(FNV_BEGIN, version, sizeof version);
    for (int i = 0; i < text->option_count; i++)
        hash = fnv_bytes(hash, text->options[i], strlen(text->options[i]) + 1);
    for (int i = 0; i < text->headers; i++)
        hash = fnv_bytes(hash, text->header_texts[i], strlen(text->header_texts[i]) + 1);
    return fnv_bytes(hash, text->source, strlen(text->source));
}

/* ---- compiling ----------------------------------------------------------------------------------------------------------- */

/* All that the compiler wrote; NULL if that is nothing or cannot be had. */
static char *read_log(const rtc_library *rtc, void *program)
{
    size_t bytes = 0;
    if (rtc->log_size(program, &bytes) != 0 || bytes < 2)
        return NULL;
    char *log = memory_alloc(bytes + 1);
    if (log == NULL)
        return NULL;
    log[0] = log[bytes] = '\0';
    if (rtc->log(program, log) == 0 && log[0] != '\0')
        return log;
    memory_free(log);
    return NULL;
}

/* Copies the beginning of the compiler's log: its first error says the most. */
static void show_log(const char *log, const rtc_report *report)
{
    if (log == NULL)
        return;
    const char *error = strstr(log, "error");
    while (error != NULL && strncmp(error, "error:", 6) != 0 && strncmp(error, "error ", 6) != 0)
        error = strstr(error + 1, "error");
    char shown[LOG_BYTES_SHOWN];
    text_copy(shown, sizeof shown, error != NULL ? error : log);
    shown[strcspn(shown, "\n")] = '\0';
    text_append(report->detail, report->detail_capacity, ": ");
    text_append(report->detail, report->detail_capacity, shown);
}

static rtc_result take_code(const rtc_library *rtc, void *program, driver_compiled *out, const rtc_report *report)
{
    size_t bytes = 0;
    char *code = NULL;
    if (rtc->code_size(program, &bytes) == 0 && bytes > 0) {
        code = memory_alloc(bytes);
        if (code == NULL)
            return RTC_NO_MEMORY;
        if (rtc->code(program, code) == 0) {
            out->image = code;
            out->bytes = bytes;
            return RTC_DONE;
        }
        memory_free(code);
    }
    snprintf(report->detail, report->detail_capacity, "%s compiled it, but does not give the code", rtc->called);
    return RTC_REFUSED;
}

rtc_result rtc_compile(const rtc_library *rtc, const rtc_text *text, driver_compiled *out, const rtc_report *report)
{
    void *program = NULL;
    const char **texts = (const char **)text->header_texts, **names = (const char **)text->header_names;
    int number = rtc->create(&program, text->source, text->name, text->headers, texts, names);
    if (number != 0) {
        snprintf(report->detail, report->detail_capacity, "%sCreateProgram: %s (%d)", rtc->prefix, rtc->error_string(number),
                 number);
        return RTC_REFUSED;
    }
    rtc_result result = RTC_REFUSED;
    number = rtc->compile(program, text->option_count, (const char **)text->options);
    char *log = read_log(rtc, program);
    if (number == 0) {
        result = take_code(rtc, program, out, report);
    } else {
        snprintf(report->detail, report->detail_capacity, "%s (%d)", rtc->error_string(number), number);
        show_log(log, report);
    }
    (void)rtc->destroy(&program);
    if (report->log != NULL)
        *report->log = log;
    else
        memory_free(log);
    return result;
}

rtc_result rtc_compile_or_read(const rtc_library *rtc, const rtc_text *text, driver_compiled *out, const rtc_report *report)
{
    char entry[192];
    snprintf(entry, sizeof entry, "%s-%016llx.hsaco", text->entry, (unsigned long long)rtc_hash(rtc, text));
    if (text->anew)
        (void)code_cache_remove(entry);
    else if (code_cache_read(entry, out))
        return RTC_DONE;
    const rtc_result result = rtc_compile(rtc, text, out, report);
    if (result == RTC_DONE)
        code_cache_write(entry, out->image, out->bytes);
    return result;
}
