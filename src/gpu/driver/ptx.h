/* What the text of PTX says before a driver compiles it. */
#ifndef WW_GPU_DRIVER_PTX_H
#define WW_GPU_DRIVER_PTX_H

#include <stddef.h>

/* Writes into `text` why a driver for CUDA `have` (NVIDIA's count: 12020 is 12.2) refuses this PTX as too new, and which one
 * would take it. Leaves `text` as it was if the PTX does not state its version. */
void ptx_explain_old_driver(const char *ptx, int have, char *text, size_t capacity);

#endif
