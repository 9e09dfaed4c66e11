/* AMD's chips by their matrix instructions. CDNA 3 and 4 multiply eight bytes of a lane at once; gfx9-4-generic is what both
 * have in common. gfx1250 has other WMMA than gfx1200 and gfx1201, which no kernel uses yet. Nothing is defined on other chips.
 */
#ifndef WW_KERNELS_SIMT_AMD_FAMILIES_H
#define WW_KERNELS_SIMT_AMD_FAMILIES_H

#if defined(__gfx942__) || defined(__gfx950__) || defined(__gfx9_4_generic__)
#define SIMT_CDNA3
#endif
#if defined(__gfx908__) || defined(__gfx90a__) || defined(SIMT_CDNA3)
#define SIMT_MFMA
#endif
#if defined(__GFX11__) || (defined(__GFX12__) && !defined(__gfx1250__) && !defined(__gfx1251__))
#define SIMT_WMMA
#endif

#endif
