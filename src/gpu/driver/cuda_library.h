/* NVIDIA's driver library after opening: its functions, which of them failed, and what its numbers mean. For cuda.c. */
#ifndef WW_GPU_DRIVER_CUDA_LIBRARY_H
#define WW_GPU_DRIVER_CUDA_LIBRARY_H

#include "gpu/driver/cuda_api.h"
#include "gpu/driver/driver.h"

typedef struct cuda_library {
    void *handle;
#define FUNCTION(name, symbol, parameters) int(*name) parameters; // NOLINT(bugprone-macro-parentheses)
    CUDA_FUNCTIONS(FUNCTION)
    CUDA_OPTIONAL_FUNCTIONS(FUNCTION)
#undef FUNCTION
    int number; /* what load() returns */
    char why[256];
} cuda_library;

/* Empty until cuda_load() has succeeded, then constant. */
extern cuda_library cuda;
extern _Atomic process_mark cuda_started_in; /* as the driver table says (driver.h) */

/* What the vendor said about this thread's last failure beside its number. */
extern _Thread_local char cuda_detail[DRIVER_DETAIL_BYTES];

/* Every vendor call goes through here, so that the name of a failed one is known. Returns `number`. */
int cuda_answer(const char *call, int number);

#define CALL(name, symbol, ...) cuda_answer(#symbol, cuda.name(__VA_ARGS__))

/* As the driver table says (driver.h). */
int cuda_load(char *why, size_t why_capacity);
const char *cuda_error_name(int number);
driver_error cuda_error_class(int number);
void cuda_failure(driver_failure *out);

#endif
