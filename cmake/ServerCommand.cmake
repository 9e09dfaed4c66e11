# `warpwave serve`, where libmicrohttpd with GnuTLS, stores and models are; else what says which of them is missing. Its objects are apart
# from the command's, because the wheel chooses among them (cmake/Python.cmake).
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
    pkg_check_modules(MICROHTTPD QUIET IMPORTED_TARGET libmicrohttpd>=0.9.71)
    pkg_check_modules(GNUTLS QUIET IMPORTED_TARGET gnutls>=3.6.3)
endif()
set(WARPWAVE_SERVER FALSE)
# The memory sanitizer takes what libraries without it have written for memory that nobody has.
if(MICROHTTPD_FOUND AND GNUTLS_FOUND AND WARPWAVE_STORE AND WARPWAVE_MODEL AND NOT WARPWAVE_SANITIZE MATCHES "memory")
    include(CheckCSourceCompiles) # for this processor: pkg-config may know those of another one
    set(CMAKE_REQUIRED_LIBRARIES PkgConfig::MICROHTTPD PkgConfig::GNUTLS)
    check_c_source_compiles("#include <gnutls/gnutls.h>\n#include <microhttpd.h>\nint main(void) { return MHD_get_version() == gnutls_check_version(0); }"
                            WARPWAVE_MICROHTTPD_LINKS)
    unset(CMAKE_REQUIRED_LIBRARIES)
    set(WARPWAVE_SERVER ${WARPWAVE_MICROHTTPD_LINKS})
endif()
set(no_serve ${CMAKE_SOURCE_DIR}/programs/warpwave/absent/no_serve.c)
if(WARPWAVE_SERVER)
    file(GLOB_RECURSE server_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/programs/server/*.c)
    # The page: its files are embedded as they are, with a table of their names (programs/server/ui/ui.h).
    file(GLOB page_paths CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/programs/server/page/*)
    set(page_bytes "")
    set(page_table "")
    foreach(path ${page_paths})
        get_filename_component(file ${path} NAME)
        string(MAKE_C_IDENTIFIER "page_${file}" symbol)
        string(APPEND page_bytes "${symbol}_name:\n    .asciz \"${file}\"\n${symbol}:\n    .incbin \"${path}\"\n${symbol}_end:\n")
        string(APPEND page_table "    .quad ${symbol}_name, ${symbol}, ${symbol}_end\n")
    endforeach()
    set(page_source ${CMAKE_BINARY_DIR}/page_files.S)
    file(CONFIGURE OUTPUT ${page_source} CONTENT "    .section .rodata
${page_bytes}
    .section .data.rel.ro, \"aw\"
    .balign 8
    .globl page_files
    .hidden page_files
    .type page_files, %object
page_files:
${page_table}    .quad 0, 0, 0
    .size page_files, . - page_files
    .section .note.GNU-stack, \"\", %progbits
" @ONLY)
    set_source_files_properties(${page_source} PROPERTIES OBJECT_DEPENDS "${page_paths}")
    add_library(warpwave_server_objects OBJECT ${server_sources} ${page_source})
    target_link_libraries(warpwave_server_objects PUBLIC warpwave_objects warpwave_store_objects warpwave_model_objects PkgConfig::MICROHTTPD PkgConfig::GNUTLS)
    file(GLOB serve_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/programs/warpwave/serve/*.c)
    add_library(warpwave_serve_objects OBJECT ${serve_sources})
    target_link_libraries(warpwave_serve_objects PUBLIC warpwave_objects)
    target_link_libraries(warpwave_command PRIVATE warpwave_serve_objects warpwave_server_objects)
else()
    message(NOTICE "warpwave: no server: it needs libmicrohttpd with GnuTLS (libmicrohttpd-dev), stores and models")
    target_sources(warpwave_command PRIVATE ${no_serve})
endif()
