/* Converts folders for tests of the converter. */
#ifndef TESTS_MODEL_CONVERSIONS_H
#define TESTS_MODEL_CONVERSIONS_H

#include "model/convert/convert.h"

/* Converts the scratch folder "folder" into the scratch file "out.gguf", which is not there before. `type` may be NULL. */
ww_status folder_convert(ww_device *device, const char *type);
/* Converts with each allocation failing in turn: no memory leaks, and no file is left. Returns the number of allocations. */
int64_t convert_with_faults(const ww_conversion *job);

#endif
