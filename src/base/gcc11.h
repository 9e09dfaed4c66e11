/* What gcc 12 brought and gcc 11 (Ubuntu 22.04) has under another name; included before every file where that is the compiler.
 *
 * __builtin_shufflevector as far as it is used here: constant places, and as many as the operands have elements. The comparison
 * gives the type of the mask: integers, as many and as wide as the elements. */
#ifndef WW_BASE_GCC11_H
#define WW_BASE_GCC11_H

#define __builtin_shufflevector(a, b, ...) __builtin_shuffle((a), (b), (__typeof__((a) < (a))){__VA_ARGS__})

#endif
