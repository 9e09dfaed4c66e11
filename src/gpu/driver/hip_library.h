/* AMD's runtime library after opening: its functions, which of them failed, and what its numbers mean. For hip.c. */
#ifndef WW_GPU_DRIVER_HIP_LIBRARY_H
#define WW_GPU_DRIVER_HIP_LIBRARY_H

#include "gpu/driver/driver.h"
#include "gpu/driver/hip_api.h"

enum { HIP_NO_CHIP = -2 }; /* our own number: the runtime's properties do not name a chip */

typedef struct hip_library {
    void *handle;
#define FUNCTION(name, symbol, parameters) int(*name) parameters; // NOLINT(bugprone-macro-parentheses)
    HIP_FUNCTIONS(FUNCTION)
    HIP_PROPERTIES_FUNCTIONS(FUNCTION)
    HIP_OPTIONAL_FUNCTIONS(FUNCTION)
#undef FUNCTION
    hip_error_text error_name;
    hip_last_error last_error;
    int number;           /* what load() returns */
    const char *starting; /* the call that returned it, or "" */
    char why[512];
} hip_library;

/* Empty until hip_load() has succeeded, then constant. */
extern hip_library hip;
extern _Atomic process_mark hip_started_in; /* as the driver table says (driver.h) */

/* What the vendor said about this thread's last failure beside its number. */
extern _Thread_local char hip_detail[DRIVER_DETAIL_BYTES];

/* Every vendor call goes through here, so that the name of a failed one is known. Returns `number`. HIP remembers the last
 * error of a thread; this clears it, so that another user of HIP on the same thread does not find ours. */
int hip_answer(const char *call, int number);

/* Records that a function of another library failed, which has written the reason to hip_detail. */
void hip_failed_elsewhere(const char *call);

#define CALL(name, symbol, ...) hip_answer(#symbol, hip.name(__VA_ARGS__))

/* As the driver table says (driver.h). */
int hip_load(char *why, size_t why_capacity);
const char *hip_error_name(int number);
driver_error hip_error_class(int number);
void hip_failure(driver_failure *out);

#endif
