/* From a vendor's number to a status with a text that a person can act on. */
#include "gpu/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static ww_status status_of(driver_error class)
{
    switch (class) {
    case DRIVER_ERROR_MEMORY:
        return WW_OUT_OF_MEMORY;
    case DRIVER_ERROR_IMAGE:
    case DRIVER_ERROR_TOO_OLD:
        return WW_UNSUPPORTED;
    default:
        return WW_DRIVER_ERROR;
    }
}

/* Stores the failure in fields. ROCm's compiler counts as a library of its own. */
/* The vendor's library that a call belongs to. */
static const char *library_of(const char *call, const gpu_driver *driver)
{
    return strncmp(call, "hiprtc", 6) == 0 ? "hipRTC" : strncmp(call, "nvrtc", 5) == 0 ? "NVRTC" : driver->api;
}

void driver_note(const gpu_driver *driver, int number)
{
    driver_failure failure;
    vendor_failure noted = {.code = number};
    driver->failure(&failure);
    text_copy(noted.backend, sizeof noted.backend, driver->backend);
    text_copy(noted.library, sizeof noted.library, library_of(failure.call, driver));
    text_copy(noted.call, sizeof noted.call, failure.call);
    text_copy(noted.name, sizeof noted.name, driver->error_name(number));
    vendor_failure_note(&noted);
}

typedef struct error_text {
    char text[1024];
} error_text;

static error_text describe(const gpu_driver *driver, int number, const char *format, va_list arguments)
{
    error_text error;
    char *text = error.text;
    const size_t capacity = sizeof error.text;
    driver_failure failure;
    driver->failure(&failure);
    driver_note(driver, number);
    const int length = snprintf(text, capacity, "%s: %s (%d): ", failure.call, driver->error_name(number), number);
    if (length > 0 && (size_t)length < capacity)
        vsnprintf(text + length, capacity - (size_t)length, format, arguments);
    if (failure.detail[0] != '\0') {
        text_append(text, capacity, ": ");
        text_append(text, capacity, failure.detail);
    }
    return error;
}

ww_status driver_check(const gpu_driver *driver, int number, const char *format, ...)
{
    if (number == 0)
        return WW_OK;
    va_list arguments;
    va_start(arguments, format);
    const error_text error = describe(driver, number, format, arguments);
    va_end(arguments);
    return ww_fail(status_of(driver->error_class(number)), "%s", error.text);
}

void gpu_lose(gpu_device *device, const char *because)
{
    if (atomic_flag_test_and_set(&device->losing))
        return;
    text_copy(device->lost_because, sizeof device->lost_because, because);
    atomic_store(&device->lost, true);
}

ww_status gpu_check(gpu_device *device, int number, const char *format, ...)
{
    if (number == 0)
        return WW_OK;
    va_list arguments;
    va_start(arguments, format);
    const error_text error = describe(device->driver, number, format, arguments);
    va_end(arguments);
    const driver_error class = device->driver->error_class(number);
    if (class != DRIVER_ERROR_LOST)
        return ww_fail(status_of(class), "%s: %s", device->base.info.id, error.text);
    gpu_lose(device, error.text);
    return ww_fail(WW_DRIVER_ERROR, "%s: device lost: %s; close it and open it again", device->base.info.id, error.text);
}
