# The library. Its objects are compiled once; the shared library, the static library and the tests are made of them.
find_package(Threads REQUIRED)
find_library(JANSSON_LIBRARY jansson REQUIRED)
find_path(JANSSON_INCLUDE jansson.h REQUIRED)
find_library(ZSTD_LIBRARY zstd REQUIRED)
find_path(ZSTD_INCLUDE zstd.h REQUIRED)
find_path(XXHASH_INCLUDE xxhash.h REQUIRED) # header only: src/base/checksum.c

set(room_sources "")
foreach(room base device cpu gpu vectors map tensor quant gguf files)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${room}/*.c)
    list(APPEND room_sources ${sources})
endforeach()
list(FILTER room_sources EXCLUDE REGEX "/src/cpu/isa/[a-z0-9]+/") # each with flags of its own, below
if(WARPWAVE_TESTS)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/testing/emulated/*.c)
    list(APPEND room_sources ${sources})
endif()
list(APPEND room_sources ${KERNEL_SOURCES}) # cmake/Kernels.cmake

# Each instruction set is a folder whose files are compiled for it; which one runs is decided on the machine (src/cpu/isa/isa.c). They
# come first, and of them the quantized products, because they take longest: what is compiled last should not keep one core waiting.
set(library_sources "")
function(add_instruction_set folder)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/cpu/isa/${folder}/*.c)
    set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS "${ARGN}")
    set(longest ${sources})
    list(FILTER longest INCLUDE REGEX "/quant_[^/]*$")
    list(FILTER sources EXCLUDE REGEX "/quant_[^/]*$")
    set(library_sources ${longest} ${library_sources} ${sources} PARENT_SCOPE)
endfunction()
add_instruction_set(scalar)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
    add_instruction_set(avx2 -mavx2 -mfma -mf16c)
    set(avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c -mprefer-vector-width=512)
    add_instruction_set(avx512 ${avx512})
    add_instruction_set(amx ${avx512} -mamx-tile -mamx-int8 -mamx-bf16)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    add_instruction_set(neon)
endif()

# With every check of the address sanitizer written out in place, the three largest files took a third of the whole compilation (118 s of 341,
# gcc 12): there the checks are calls, and the same ones.
if(WARPWAVE_SANITIZE MATCHES "address" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    set(largest ${library_sources})
    list(FILTER largest INCLUDE REGEX "/quant_product[^/]*$")
    set_property(SOURCE ${largest} APPEND PROPERTY COMPILE_OPTIONS --param=asan-instrumentation-with-call-threshold=0)
endif()
list(APPEND library_sources ${room_sources})

add_library(warpwave_objects OBJECT ${library_sources})
# Callbacks are called from there. Without a table of how to leave its functions, an exception of C++ cannot go on through the
# library, past locks and workers: it ends the program where it was thrown.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/base/float_guard.c PROPERTIES COMPILE_OPTIONS
                            "-fno-exceptions;-fno-unwind-tables;-fno-asynchronous-unwind-tables")
target_include_directories(warpwave_objects PUBLIC ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/programs ${CMAKE_SOURCE_DIR}/testing ${CMAKE_SOURCE_DIR} ${JANSSON_INCLUDE} ${ZSTD_INCLUDE} ${XXHASH_INCLUDE})
target_link_libraries(warpwave_objects PUBLIC Threads::Threads ${CMAKE_DL_LIBS} m ${JANSSON_LIBRARY} ${ZSTD_LIBRARY})

add_library(warpwave SHARED $<TARGET_OBJECTS:warpwave_objects>)
target_link_libraries(warpwave PRIVATE Threads::Threads ${CMAKE_DL_LIBS} m ${JANSSON_LIBRARY} ${ZSTD_LIBRARY})
target_include_directories(warpwave INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
set_target_properties(warpwave PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
target_link_options(warpwave PRIVATE -Wl,--no-undefined -Wl,--exclude-libs,ALL)

# Test programs are made of the objects as well, but share the kernels of all chips, 30 MB: 185 of them took 6 GB, and more under sanitizers.
if(WARPWAVE_TESTS)
    add_library(tested_kernels SHARED ${KERNEL_DIR}/embedded.S)
    target_compile_definitions(tested_kernels PRIVATE WARPWAVE_KERNELS_SHARED)
    set_target_properties(tested_kernels PROPERTIES LINKER_LANGUAGE C LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    set(TESTED_OBJECTS "$<TARGET_OBJECTS:warpwave_objects>")
    set(TESTED_OBJECTS "$<FILTER:${TESTED_OBJECTS},EXCLUDE,/embedded[.]S>")
    # Two targets embed the kernels now. With make, unlike ninja, each would make them, both at once into the same files.
    if(CMAKE_GENERATOR MATCHES "Makefiles")
        add_custom_target(kernels_made DEPENDS ${EMBEDDED_OBJECTS})
        add_dependencies(warpwave_objects kernels_made)
        add_dependencies(tested_kernels kernels_made)
    endif()
endif()

# The static library is one relocatable object whose hidden symbols are made local, so that it, too, exports only ww_ names.
if(NOT WARPWAVE_SANITIZE)
    set(static_object ${CMAKE_BINARY_DIR}/warpwave_static.o)
    add_custom_command(OUTPUT ${static_object}
        COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -o ${static_object}.all.o $<TARGET_OBJECTS:warpwave_objects>
        COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${static_object}.all.o ${static_object}
        DEPENDS warpwave_objects $<TARGET_OBJECTS:warpwave_objects> COMMAND_EXPAND_LISTS VERBATIM)
    add_library(warpwave_static STATIC ${static_object})
    set_target_properties(warpwave_static PROPERTIES OUTPUT_NAME warpwave LINKER_LANGUAGE C)
    target_link_libraries(warpwave_static INTERFACE Threads::Threads ${CMAKE_DL_LIBS} m
                          $<BUILD_INTERFACE:${JANSSON_LIBRARY}> $<BUILD_INTERFACE:${ZSTD_LIBRARY}> $<INSTALL_INTERFACE:jansson>
                          $<INSTALL_INTERFACE:zstd>)
    target_include_directories(warpwave_static INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
endif()

# The command uses the public headers and the library's own small text and memory helpers, so it is linked with the objects. It is compiled
# once for itself and for the Python wheel's library (cmake/Python.cmake).
file(GLOB_RECURSE command_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/programs/warpwave/*.c)
list(FILTER command_sources EXCLUDE REGEX "/programs/warpwave/(store/|absent/|model/|serve/|gguf/from_safetensors)") # cmake/Mpi.cmake, cmake/StoreCommand.cmake, cmake/ModelCommand.cmake, cmake/ServerCommand.cmake
add_library(warpwave_command_objects OBJECT ${command_sources})
target_link_libraries(warpwave_command_objects PRIVATE warpwave_objects)
target_compile_definitions(warpwave_command_objects PRIVATE WARPWAVE_SOURCE_DATA_DIR="${CMAKE_SOURCE_DIR}/data")
add_executable(warpwave_command $<TARGET_OBJECTS:warpwave_command_objects>)
set_target_properties(warpwave_command PROPERTIES OUTPUT_NAME warpwave)
target_link_libraries(warpwave_command PRIVATE warpwave_objects)
if(WARPWAVE_SANITIZE MATCHES "memory")
    target_sources(warpwave_command PRIVATE ${CMAKE_SOURCE_DIR}/tests/memcheck/jansson.c)
endif()
# The demo's digits are put into the command when this file is assembled.
set_source_files_properties(${CMAKE_SOURCE_DIR}/programs/warpwave/demo/digits.c PROPERTIES OBJECT_DEPENDS ${CMAKE_SOURCE_DIR}/data/digits.csv)
