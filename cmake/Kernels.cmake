# Kernels: each module of src/kernels/kernels.def is compiled for every chip by clang, without any vendor's SDK, and the results
# are embedded in the library; with tests, the host's compiler makes the emulated form of the same files as well.
set(KERNELS_DEF ${CMAKE_SOURCE_DIR}/src/kernels/kernels.def)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${KERNELS_DEF})
file(STRINGS ${KERNELS_DEF} entries REGEX "^KERNEL_ENTRY\\(")
set(KERNEL_MODULES "")
foreach(entry ${entries})
    string(REGEX REPLACE "^KERNEL_ENTRY\\( *([a-z0-9_]+).*" "\\1" module "${entry}")
    list(APPEND KERNEL_MODULES ${module})
endforeach()
list(REMOVE_DUPLICATES KERNEL_MODULES)

# ---- the emulator: the kernels as host code ----------------------------------------------------------------------------------
set(KERNEL_SOURCES "")
set(EMULATED_OPTIONS -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=)
if(WARPWAVE_SANITIZE MATCHES "thread")
    # Fibers would confuse it, and each launch runs on one thread then.
    list(APPEND EMULATED_OPTIONS -fno-sanitize=thread -DWARPWAVE_THREAD_SANITIZER)
endif()
if(WARPWAVE_TESTS)
    file(GLOB emulator_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/emulator/*.c ${CMAKE_SOURCE_DIR}/src/emulator/*.S)
    foreach(module ${KERNEL_MODULES})
        list(APPEND emulator_sources ${CMAKE_SOURCE_DIR}/src/kernels/${module}.c)
    endforeach()
    set_source_files_properties(${emulator_sources} PROPERTIES COMPILE_OPTIONS "${EMULATED_OPTIONS}")
    list(APPEND KERNEL_SOURCES ${emulator_sources})
    add_compile_definitions(WARPWAVE_EMULATOR)
endif()
