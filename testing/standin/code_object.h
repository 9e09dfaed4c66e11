/* Reads an AMD code object as a runtime's loader does: its target chip, and what its kernels take and need. */
#ifndef TESTS_STANDIN_CODE_OBJECT_H
#define TESTS_STANDIN_CODE_OBJECT_H

#include <stddef.h>
#include <stdint.h>

enum { CODE_KERNELS_MAX = 64 };

typedef struct code_kernel {
    char name[64];
    char symbol[72];         /* the name of its descriptor */
    uint64_t explicit_bytes; /* of the arguments that the caller gives */
    uint64_t kernarg_bytes;  /* including those that the runtime appends */
    uint64_t wave_size, threads_max, shared_bytes, scratch_bytes, registers;
    const void *owner; /* for the loader: the module that contains it */
} code_kernel;

typedef struct code_object {
    uint32_t elf_mach;
    int version; /* of the code object: 4, 5, 6 */
    char target[64];
    int count;
    code_kernel kernels[CODE_KERNELS_MAX];
} code_object;

/* Reads a code object. Returns NULL, or what is wrong with it. The ELF headers give its length. */
const char *code_object_read(const void *image, code_object *out);

/* The length according to the headers; 0 if it is not an ELF file. */
size_t code_object_bytes(const void *image);

#endif
