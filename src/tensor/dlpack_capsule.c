/* The destructor of Python's DLPack capsules. It is in C because it also runs while the interpreter ends or the garbage
 * collector works. It uses only the two Python functions that it was given. */
#include <warpwave/dlpack.h>

#include <stdatomic.h>
#include <warpwave/tensor_foreign.h>

#include "base/float_guard.h"
#include "base/status.h"

typedef int capsule_is_valid(void *capsule, const char *name);
typedef void *capsule_get_pointer(void *capsule, const char *name);

/* A process has one Python, so every caller gives the same functions. */
static _Atomic(capsule_is_valid *) python_is_valid;
static _Atomic(capsule_get_pointer *) python_get_pointer;

ww_status ww_dlpack_capsules(int (*is_valid)(void *capsule, const char *name),
                             void *(*get_pointer)(void *capsule, const char *name))
{
    FLOAT_GUARD();
    if (!is_valid || !get_pointer)
        return ww_fail(WW_INVALID_ARGUMENT, "dlpack_capsules: %s is NULL", is_valid ? "get_pointer" : "is_valid");
    atomic_store(&python_get_pointer, get_pointer);
    atomic_store(&python_is_valid, is_valid); /* set last: a thread that sees it also sees the other */
    return WW_OK;
}

void ww_dlpack_capsule_destroy(void *capsule)
{
    capsule_is_valid *is_valid = atomic_load(&python_is_valid);
    if (!capsule || !is_valid)
        return;
    capsule_get_pointer *get_pointer = atomic_load(&python_get_pointer);
    if (is_valid(capsule, "dltensor_versioned")) {
        struct DLManagedTensorVersioned *managed = get_pointer(capsule, "dltensor_versioned");
        if (managed && managed->deleter)
            managed->deleter(managed);
    } else if (is_valid(capsule, "dltensor")) {
        struct DLManagedTensor *managed = get_pointer(capsule, "dltensor");
        if (managed && managed->deleter)
            managed->deleter(managed);
    }
}
