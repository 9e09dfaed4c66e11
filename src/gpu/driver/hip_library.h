/* AMD's runtime library, opened: its functions, which of them failed, and what its numbers mean. For hip.c. */
#ifndef WW_GPU_DRIVER_HIP_LIBRARY_H
#define WW_GPU_DRIVER_HIP_LIBRARY_H

#include "gpu/driver/driver.h"
#include "gpu/driver/hip_api.h"

enum { HIP_NO_CHIP = -2 }; /* a number of ours: the runtime's properties do not name a chip */

typedef struct hip_library {
    void *handle;
#define FUNCTION(name, symbol, parameters) int(*name) parameters; // NOLINT(bugprone-macro-parentheses)
    HIP_FUNCTIONS(FUNCTION)
    HIP_PROPERTIES_FUNCTIONS(FUNCTION)
    HIP_OPTIONAL_FUNCTIONS(FUNCTION)
#undef FUNCTION
    hip_error_text error_name;
    hip_last_error last_error;
    int number;           /* what load() answers */
    const char *starting; /* the call that it is from, or "" */
    char why[512];
} hip_library;

/* Nothing before hip_load() has succeeded; the same from then on. */
extern hip_library hip;
extern _Atomic process_mark hip_started_in; /* as the driver table says (driver.h) */

/* What the vendor had to say about this thread's last failure beside its number. */
extern _Thread_local char hip_detail[DRIVER_DETAIL_BYTES];

/* Every call of the vendor's goes through here, so that the one that failed is known by name: returns `number`. HIP remembers
 * the last error of a thread: ours is taken out again, so that another user of HIP on the same thread does not find
 * it. */
int hip_answer(const char *call, int number);

/* The last failure is that of a function of another library, which has said why in hip_detail. */
void hip_failed_elsewhere(const char *call);

#define CALL(name, symbol, ...) hip_answer(#symbol, hip.name(__VA_ARGS__))

/* As the driver table says (driver.h). */
int hip_load(char *why, size_t why_capacity);
const char *hip_error_name(int number);
driver_error hip_error_class(int number);
void hip_failure(driver_failure *out);

#endif
