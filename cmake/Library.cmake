# libwarpwave. Each room names its sources in its own CMakeLists.txt; they are compiled once, and the shared library, the static library, the
# programs and the tests are made of them.
set(library_dependencies Threads::Threads ${CMAKE_DL_LIBS} m ${JANSSON_LIBRARY} ${ZSTD_LIBRARY})
set(library_requires jansson libzstd) # the same, as pkg-config calls them
add_library(warpwave_objects OBJECT)
target_include_directories(warpwave_objects PUBLIC ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src ${JANSSON_INCLUDE} ${ZSTD_INCLUDE} ${XXHASH_INCLUDE})

# With every check of the address sanitizer written out in place, the largest files took a third of the whole compilation (118 s of 341,
# gcc 12): there the checks are calls, and the same ones.
function(compile_with_called_checks)
    if(WARPWAVE_SANITIZE MATCHES "address" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
        set_property(SOURCE ${ARGN} TARGET_DIRECTORY warpwave_objects APPEND PROPERTY COMPILE_OPTIONS --param=asan-instrumentation-with-call-threshold=0)
    endif()
endfunction()

foreach(room cpu base arithmetic kernels device gpu files gguf vectors map tensor quant)
    add_subdirectory(${CMAKE_SOURCE_DIR}/src/${room})
endforeach()
# Arithmetic reads nobody's bytes, and instrumented it was two thirds of the compilation of the fuzzers.
if(WARPWAVE_FUZZ)
    get_target_property(instruction_sets warpwave_objects SOURCES)
    list(FILTER instruction_sets INCLUDE REGEX "/src/cpu/isa/")
    set_property(SOURCE ${instruction_sets} TARGET_DIRECTORY warpwave_objects APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize=all)
endif()
if(WARPWAVE_STORE)
    add_subdirectory(${CMAKE_SOURCE_DIR}/src/store)
    target_compile_definitions(warpwave_objects PUBLIC WARPWAVE_WITH_STORE)
    target_include_directories(warpwave_objects PUBLIC ${SQLite3_INCLUDE_DIRS})
    list(APPEND library_dependencies SQLite::SQLite3)
    list(APPEND library_requires sqlite3)
endif()
if(WARPWAVE_MODEL)
    add_subdirectory(${CMAKE_SOURCE_DIR}/src/model)
    target_compile_definitions(warpwave_objects PUBLIC WARPWAVE_WITH_MODEL)
    list(APPEND library_dependencies PkgConfig::PCRE2 PkgConfig::UTF8PROC)
    list(APPEND library_requires libpcre2-8 libutf8proc)
endif()
if(WARPWAVE_TEXT)
    add_subdirectory(${CMAKE_SOURCE_DIR}/src/text)
endif()
target_link_libraries(warpwave_objects PUBLIC ${library_dependencies})

include(cmake/Kernels.cmake)
add_library(embedded_kernels OBJECT ${EMBEDDED_KERNELS})
target_include_directories(embedded_kernels PRIVATE ${CMAKE_SOURCE_DIR}/src)
# Tests embed them a second time. Whoever comes first makes them, and not both at once into the same files.
add_custom_target(embedded_kernels_made DEPENDS ${EMBEDDED_OBJECTS})
add_dependencies(embedded_kernels embedded_kernels_made)

# What the libraries and programs of this build are made of. With tests they have a further backend, the emulator.
set(LIBRARY_OBJECTS $<TARGET_OBJECTS:warpwave_objects> $<TARGET_OBJECTS:embedded_kernels>)
if(WARPWAVE_TESTS)
    add_subdirectory(testing)
    list(APPEND LIBRARY_OBJECTS $<TARGET_OBJECTS:emulator_objects> $<TARGET_OBJECTS:emulator_backend>)
endif()

# For programs that use what the library does not export.
add_library(warpwave_internal INTERFACE)
target_sources(warpwave_internal INTERFACE ${LIBRARY_OBJECTS})
target_include_directories(warpwave_internal INTERFACE $<TARGET_PROPERTY:warpwave_objects,INTERFACE_INCLUDE_DIRECTORIES>)
target_compile_definitions(warpwave_internal INTERFACE $<TARGET_PROPERTY:warpwave_objects,INTERFACE_COMPILE_DEFINITIONS>)
target_link_libraries(warpwave_internal INTERFACE ${library_dependencies})

# The name says 0.1 while minor versions may break programs. The library is SQLite's extension, too, and has threads that outlive the connection
# that loaded it, so it is never unloaded.
add_library(warpwave SHARED ${LIBRARY_OBJECTS})
target_link_libraries(warpwave PRIVATE ${library_dependencies})
target_include_directories(warpwave INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
set_target_properties(warpwave PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} LINKER_LANGUAGE C)
target_link_options(warpwave PRIVATE -Wl,--no-undefined -Wl,--exclude-libs,ALL -Wl,-z,nodelete)

# The static library is one relocatable object whose hidden symbols are made local, so that it, too, exports only ww_ names.
if(NOT WARPWAVE_SANITIZE)
    set(static_object ${CMAKE_BINARY_DIR}/warpwave_static.o)
    add_custom_command(OUTPUT ${static_object}
        COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -o ${static_object}.all.o ${LIBRARY_OBJECTS}
        COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${static_object}.all.o ${static_object}
        DEPENDS ${LIBRARY_OBJECTS} COMMAND_EXPAND_LISTS VERBATIM)
    add_library(warpwave_static STATIC ${static_object})
    set_target_properties(warpwave_static PROPERTIES OUTPUT_NAME warpwave LINKER_LANGUAGE C)
    set(installed_names ${library_requires})
    list(TRANSFORM installed_names REPLACE "^lib" "")
    target_link_libraries(warpwave_static INTERFACE "$<BUILD_INTERFACE:${library_dependencies}>" "$<INSTALL_INTERFACE:Threads::Threads;${CMAKE_DL_LIBS};m;${installed_names}>")
    target_include_directories(warpwave_static INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
endif()

# SQLite calls the library by another name when it loads it as an extension: sqlite3_warpwave_init() for warpwave.so.
if(WARPWAVE_STORE)
    add_custom_command(TARGET warpwave POST_BUILD COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/sqlite
                       COMMAND ${CMAKE_COMMAND} -E create_symlink ../$<TARGET_FILE_NAME:warpwave> ${CMAKE_BINARY_DIR}/sqlite/warpwave.so VERBATIM)
endif()
