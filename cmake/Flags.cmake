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

# Hardening, of every library and program that users get: addresses that the loader fills are read-only before main() begins, stacks are guarded, libc
# checks the sizes that the compiler knows, and indirect jumps end where a function begins. scripts/package/check-hardening.py reads it from the files.
include(CheckCCompilerFlag)
include(CheckPIESupported)
check_pie_supported()
add_compile_options($<$<COMPILE_LANGUAGE:C>:-fstack-protector-strong>)
add_link_options(-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
    set(branch_protection -fcf-protection=full)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    set(branch_protection -mbranch-protection=standard)
endif()
check_c_compiler_flag("${branch_protection}" WARPWAVE_HAS_BRANCH_PROTECTION)
if(WARPWAVE_HAS_BRANCH_PROTECTION)
    add_compile_options(${branch_protection})
endif()
if(NOT WARPWAVE_SANITIZE) # gcc 11 knows level 2 only, and takes 3 for it
    add_compile_options($<$<COMPILE_LANGUAGE:C>:-U_FORTIFY_SOURCE> $<$<COMPILE_LANGUAGE:C>:-D_FORTIFY_SOURCE=3>)
endif()

if(WARPWAVE_SANITIZE)
    add_compile_options(-fsanitize=${WARPWAVE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1 -O1)
    add_link_options(-fsanitize=${WARPWAVE_SANITIZE})
endif()
