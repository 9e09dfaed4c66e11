/* CANON_FUNCTION: how arithmetic that every target shares is declared. The same text is compiled by the host's C compiler, as
 * code of the emulator, and by clang as code of a GPU, where everything is inlined. */
#ifndef WW_ARITHMETIC_FUNCTION_H
#define WW_ARITHMETIC_FUNCTION_H

#if defined(__AMDGCN__) || defined(__NVPTX__)
#define CANON_FUNCTION static inline __attribute__((device, always_inline, unused))
#else
#define CANON_FUNCTION static inline __attribute__((unused))
#endif

#endif
