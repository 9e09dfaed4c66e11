/* The structs that describe a device, initialised for callers without C headers. Separate from the registry, which names every
 * backend, so that a backend can be linked without the others. */
#include <warpwave/device.h>

#include "base/structs.h"

STRUCT_INIT(ww_device_info, {0})
STRUCT_INIT(ww_memory_info, {0})
