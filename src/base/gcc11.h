/* Features of gcc 12 for gcc 11 (Ubuntu 22.04), which has them under another name. Included before every file if that is the
 * compiler.
 *
 * Replaces __builtin_shufflevector as far as it is used here: with constant places, as many as the operands have elements. The
 * places are a vector of integers with as many and as wide elements. */
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
