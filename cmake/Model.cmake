# Models: a library of its own, so that the core links neither PCRE2 nor utf8proc. It stands on libwarpwave. Left out, with one line,
# where one of the two is missing.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
    pkg_check_modules(PCRE2 QUIET IMPORTED_TARGET libpcre2-8)
    pkg_check_modules(UTF8PROC QUIET IMPORTED_TARGET libutf8proc)
endif()
# The memory sanitizer takes what libraries without it have written for memory that nobody has.
if(PCRE2_FOUND AND UTF8PROC_FOUND AND NOT WARPWAVE_SANITIZE MATCHES "memory") # for this processor: pkg-config may know those of another one
    include(CheckCSourceCompiles)
    set(CMAKE_REQUIRED_LIBRARIES PkgConfig::PCRE2 PkgConfig::UTF8PROC)
    check_c_source_compiles("#define PCRE2_CODE_UNIT_WIDTH 8\n#include <pcre2.h>\n#include <utf8proc.h>\nint main(void) { pcre2_code_free(0); return utf8proc_tolower(0); }"
                            WARPWAVE_MODEL_LIBRARIES_LINK)
    unset(CMAKE_REQUIRED_LIBRARIES)
endif()
if(WARPWAVE_MODEL_LIBRARIES_LINK AND NOT WARPWAVE_SANITIZE MATCHES "memory")
    set(WARPWAVE_MODEL TRUE)
else()
    set(WARPWAVE_MODEL FALSE)
    message(NOTICE "warpwave: no models: they need PCRE2 and utf8proc (libpcre2-dev, libutf8proc-dev, pkg-config)")
    return()
endif()

file(GLOB_RECURSE model_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/model/*.c)
# Small things of base that have no state to share with the core's, as for the store.
set(model_base ${CMAKE_SOURCE_DIR}/src/base)
set(model_base_sources ${model_base}/system/memory.c ${model_base}/tables/hash.c ${model_base}/json/json.c ${model_base}/json/json_value.c ${model_base}/text.c ${model_base}/structs.c ${model_base}/system/process.c
    ${model_base}/float_guard.c ${model_base}/system/large_blocks.c ${model_base}/system/limits.c ${model_base}/system/threads.c
    ${CMAKE_SOURCE_DIR}/src/files/output.c ${CMAKE_SOURCE_DIR}/src/files/source.c) # of saved sessions

# Compiled once for the library, for the command and for tests, which link it with the core's objects.
add_library(warpwave_model_objects OBJECT ${model_sources})
target_include_directories(warpwave_model_objects PUBLIC ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src ${JANSSON_INCLUDE})
target_link_libraries(warpwave_model_objects PUBLIC PkgConfig::PCRE2 PkgConfig::UTF8PROC ${JANSSON_LIBRARY})

add_library(warpwave_model_base OBJECT ${model_base_sources})
target_include_directories(warpwave_model_base PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)

add_library(warpwave_model SHARED $<TARGET_OBJECTS:warpwave_model_objects> $<TARGET_OBJECTS:warpwave_model_base>)
target_link_libraries(warpwave_model PUBLIC warpwave PRIVATE PkgConfig::PCRE2 PkgConfig::UTF8PROC ${JANSSON_LIBRARY} Threads::Threads m)
target_include_directories(warpwave_model INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
set_target_properties(warpwave_model PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} INSTALL_RPATH "$ORIGIN")
target_link_options(warpwave_model PRIVATE -Wl,--no-undefined -Wl,--exclude-libs,ALL)
