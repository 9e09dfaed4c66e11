/* What gcc 12 brought and gcc 11 (Ubuntu 22.04) has under another name; included before every file where that is the compiler.
 *
 * __builtin_shufflevector as far as it is used here: constant places, and as many as the operands have elements. The places are
 * a vector of integers, as many and as wide as the elements. */
#ifndef WW_BASE_GCC11_H
#define WW_BASE_GCC11_H

#define GCC11_PLACE(a)                                                                                                         \
    __typeof__(__builtin_choose_expr(                                                                                          \
        sizeof((a)[0]) == 1, (signed char)0,                                                                                   \
        __builtin_choose_expr(sizeof((a)[0]) == 2, (short)0, __builtin_choose_expr(sizeof((a)[0]) == 4, 0, 0LL))))

#define __builtin_shufflevector(a, b, ...)                                                                                     \
    __extension__({                                                                                                            \
        typedef GCC11_PLACE(a) gcc11_places __attribute__((vector_size(sizeof(a))));                                           \
        __builtin_shuffle((a), (b), (gcc11_places){__VA_ARGS__});                                                              \
    })

#endif
