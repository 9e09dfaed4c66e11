# Included by project() of the build for the other architecture (run). qemu 7.2 decodes a gather whose index register is xmm4 or ymm4 as one
# without an index, so the only file whose loops gather is compiled without that register.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    set_property(SOURCE ${CMAKE_SOURCE_DIR}/src/cpu/isa/avx2/element_loops.c PROPERTY COMPILE_FLAGS -ffixed-xmm4)
endif()
