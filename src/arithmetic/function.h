/* CANON_FUNCTION declares arithmetic shared by all targets. The same source is compiled by the host's C compiler, for the
 * emulator, and by clang for GPUs, where everything is inlined. */
#ifndef WW_ARITHMETIC_FUNCTION_H
#define WW_ARITHMETIC_FUNCTION_H

#if defined(__AMDGCN__) || defined(__NVPTX__)
#define CANON_FUNCTION static inline __attribute__((device, always_inline, unused))
#else
#define CANON_FUNCTION static inline __attribute__((unused))
#endif

#endif
