/* The stand-in for ROCm: libamdhip64 and librocblas that run this library's own kernels on the emulator, so that the whole ROCm
 * backend, from dlopen on, is tested on a machine without an AMD GPU. Test equipment: never installed, and its devices say what
 * they are by name.
 *
 * What it claims to be is said by WARPWAVE_STANDIN, or standin_configure(), as settings with semicolons between:
 *   chips=gfx90a,gfx1100   a device each: waves of 64 for gfx9.., of 32 for the others (gfx90a and gfx1100 if not said)
 *   memory=2GiB            of each device (4 GiB)
 *   count=-1  init=100     what hipGetDeviceCount and hipInit say instead of the truth
 *   arch=nonsense          what the properties call every chip            version=60342131   of driver and runtime
 *   units=0  wave=48       what the attributes say of compute units and of the wave size
 *   pci=nonsense           what hipDeviceGetPCIBusId says, a %x in it being the device's bus
 *   kernels=/path/scale.so the host's form of kernels that are not the library's, by their names
 *   compiled=/folder       what hipRTC gives for a source that is not the library's: /folder/scale.CHIP.hsaco
 *   fail=hipMalloc:3:2     the 3rd call of hipMalloc from now on answers 2; "any" in place of the name counts every call
 * ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES hide and order the devices by number, one after the other, as AMD's runtime
 * does. A call that gives something back does it and fails then, as a driver does that reports something late. A number that
 * means a lost device stays: every later call answers with it until the stand-in is configured anew.
 */
#ifndef TESTS_STANDIN_H
#define TESTS_STANDIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STANDIN_EXPORT __attribute__((visibility("default")))

enum { STANDIN_DEVICES_MAX = 8, STANDIN_MEMORY_DEFAULT_GIB = 4 };

/* Objects that exist: all 0 when everything was freed. */
typedef struct standin_counts {
    int64_t blocks, bytes, pinned, streams, events, modules, handles; /* handles: of rocBLAS and hipRTC */
} standin_counts;

/* Reads the settings, or WARPWAVE_STANDIN if it is NULL; resets counts, failures and losses. Not while work is queued. */
STANDIN_EXPORT void standin_configure(const char *text);
STANDIN_EXPORT void standin_count(standin_counts *out);
/* How many calls were made since, and which was made to fail, or NULL. */
STANDIN_EXPORT long standin_calls(void);
STANDIN_EXPORT const char *standin_victim(void);
/* Returns the first invalid use of a handle, or NULL if there was none. */
STANDIN_EXPORT const char *standin_misuse(void);

/* The calls that gave something back, in their order, with spaces between: "rocblas_destroy_handle hipStreamDestroy ...". */
STANDIN_EXPORT const char *standin_given_back(void);

/* Makes another executor run the kernels instead of the emulator (NULL: the emulator again): one that can execute the machine
 * code of the device's code object, tests/codeobjects. It is called when it is the launch's turn, on the thread that waits for
 * it. Memory that is allocated from then on is followed by pages that fault. */
typedef struct standin_launch {
    const void *image; /* the code object that was loaded */
    size_t image_bytes;
    const char *kernel;
    uint32_t grid_x, grid_y, block, shared_bytes;
    const void *arguments;
    size_t arguments_bytes;
} standin_launch;
typedef void (*standin_executor)(const standin_launch *launch);
STANDIN_EXPORT void standin_execute_with(standin_executor executor);
/* For an executor that did not run all blocks: runs them all with the emulated kernel. Returns false if that fails. */
STANDIN_EXPORT bool standin_emulate(const standin_launch *launch);

/* ---- between the libraries of the stand-in ------------------------------------------------------------------------------- */

/* Queues a host call on a live HIP stream, with a copy of its arguments; returns a HIP number. */
STANDIN_EXPORT int standin_queue(void *stream, void (*call)(const void *arguments), const void *arguments, size_t bytes);
/* Returns true if these bytes are in allocated memory of this thread's current device. */
STANDIN_EXPORT bool standin_on_device(const void *address, size_t bytes);
/* The number that a call must answer with, or 0. */
STANDIN_EXPORT int standin_judge(const char *call);
STANDIN_EXPORT void standin_misused(const char *what);
/* One more (+1) or less (-1) handle of rocBLAS or hipRTC. */
STANDIN_EXPORT void standin_count_handle(int change);

/* ---- settings (settings.c) ----------------------------------------------------------------------------------------------- */

typedef struct standin_chip {
    const char *name;
    uint32_t elf_mach; /* EF_AMDGPU_MACH in the flags of a code object */
    int wave_size;
    const char *family; /* the generic target whose code it also runs; "" for none */
} standin_chip;

typedef struct standin_settings {
    const standin_chip *chips[STANDIN_DEVICES_MAX];
    int devices;
    size_t memory_bytes;
    int count; /* what hipGetDeviceCount says */
    bool count_is_said;
    int init;
    int version;
    int units;
    int wave; /* 0: the chip's */
    char arch[64];
    char pci[64];
    char kernels[512];
    char compiled[512];
    char fail_call[64];
    long fail_at;
    int fail_number;
} standin_settings;

extern standin_settings standin_set;

void standin_read_settings(const char *text, int version);
const standin_chip *standin_find_chip(const char *name);

#endif
