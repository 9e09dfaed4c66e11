/* What tests of code objects need of the library beyond its interface. With all of its objects it makes the library that they
 * load. */
#include "device/backend.h"

__attribute__((visibility("default"))) void codeobjects_screen(ww_device *device, bool always, int32_t capacity);
__attribute__((visibility("default"))) void codeobjects_mfma(ww_device *device, bool used);
__attribute__((visibility("default"))) void codeobjects_lower(ww_device *device, uint32_t steps);
__attribute__((visibility("default"))) void codeobjects_indices_64(ww_device *device, bool always);
__attribute__((visibility("default"))) int32_t codeobjects_units(ww_device *device, int32_t units);
__attribute__((visibility("default"))) void codeobjects_gemv_splits(ww_device *device, int32_t splits);

/* Screens however few rows there are, with lists that have room for so many kept rows (0: as many as usual). */
void codeobjects_screen(ww_device *device, bool always, int32_t capacity)
{
    device->tuning.screen_always = always;
    device->tuning.screen_list_capacity = capacity;
}

/* Whether chips with MFMA screen by their own kernel, or as the others do. */
void codeobjects_mfma(ww_device *device, bool used)
{
    device->tuning.screen_mfma = used ? TUNING_AUTO : TUNING_NEVER;
}

/* Thresholds of samples are made better by so many steps of a float, and what is answered then is not repeated: for counting
 * what a search of more rows does. */
void codeobjects_lower(ww_device *device, uint32_t steps)
{
    device->tuning.thresholds_lowered = steps;
    device->tuning.keep_unproven = steps > 0;
}

/* Places of elements are calculated with 64 bits, as for tensors that are too large for a test. */
void codeobjects_indices_64(ww_device *device, bool always)
{
    device->tuning.indices_64 = always;
}

/* The device has so many compute units: work is cut into as many parts, and lists are as many, as on a card. Returns how many
 * it had. */
int32_t codeobjects_units(ww_device *device, int32_t units)
{
    const int32_t before = device->info.compute_units;
    device->info.compute_units = units;
    return before;
}

/* So many thread blocks share 16 rows of a product with few columns; 0: as many as fill the device. */
void codeobjects_gemv_splits(ww_device *device, int32_t splits)
{
    device->tuning.quant_gemv_splits = splits;
}
