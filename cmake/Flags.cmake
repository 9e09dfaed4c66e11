# What every C file is compiled with. Contraction is off everywhere: a fused multiply-add happens where the code writes one,
# because canonical arithmetic (src/arithmetic/canon.h) counts roundings.
add_compile_definitions(_GNU_SOURCE)
add_compile_options($<$<COMPILE_LANGUAGE:C>:-Wall> $<$<COMPILE_LANGUAGE:C>:-Wextra> $<$<COMPILE_LANGUAGE:C>:-Werror>
                    $<$<COMPILE_LANGUAGE:C>:-Wshadow> $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>
                    $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes> $<$<COMPILE_LANGUAGE:C>:-Wvla>
                    # how vectors wider than registers are passed between functions: they are not (src/cpu/quant/lanes16.h)
                    $<$<COMPILE_LANGUAGE:C>:-Wno-psabi>
                    -ffp-contract=off -fno-math-errno -fno-trapping-math)

# gcc 11 is the oldest that does, with what it lacks from a header.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_COMPILER_VERSION VERSION_LESS 12)
    add_compile_options("$<$<COMPILE_LANGUAGE:C>:SHELL:-include \"${CMAKE_SOURCE_DIR}/src/base/gcc11.h\">")
endif()

if(WARPWAVE_SANITIZE)
    add_compile_options(-fsanitize=${WARPWAVE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1 -O1)
    add_link_options(-fsanitize=${WARPWAVE_SANITIZE})
endif()
