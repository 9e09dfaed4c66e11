/* Which of the embedded code a chip can run, and which of it is best. */
#ifndef WW_GPU_CHIP_H
#define WW_GPU_CHIP_H

#include <stdint.h>

enum {
    CHIP_GENERIC = 1,    /* code for the family of the chip */
    CHIP_EXACT = 1 << 20 /* above every chip's number */
};

/* How well code for `target` ("sm_90a", "gfx90a") suits a device of `arch` ("sm_90", "gfx90a"): 0 not at all, more is better.
 *
 * NVIDIA: code for the very chip with all its features (sm_90a for sm_90) is best; then baseline code, which every chip of its
 * number or a higher one runs: the nearest below is best. AMD: the very chip, then the generic target of its family
 * (gfx11-generic for gfx1101). */
int32_t chip_fitness(const char *arch, const char *target);

/* The same for code of a `format` (kernels/embedded.h), on a scale of its own. A cubin is finished code: it runs on the chip it
 * was made for, and is then better than the PTX it was made of, which the driver would have to compile. */
int32_t chip_code_fitness(const char *arch, const char *target, const char *format);

/* What the matrix units of a chip of AMD multiply, of floats, by kernels that are compiled for it. */
typedef enum chip_matrix_units {
    CHIP_MATRIX_NONE,
    CHIP_MATRIX_DOT2, /* it has none, but instructions of two products of f16 each (v_dot2_f32_f16) */
    CHIP_MATRIX_F16,  /* f16 and bf16 */
    CHIP_MATRIX_F32,  /* and f32 */
} chip_matrix_units;
chip_matrix_units chip_matrix_units_of(const char *chip); /* a chip, or the target of code for it */

/* 90 for "sm_90" and "sm_90a"; 0 for anything but a chip of NVIDIA. */
int32_t chip_sm_number(const char *target);

#endif
