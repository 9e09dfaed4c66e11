# The libraries that the rooms stand on. The store needs SQLite, models PCRE2 and utf8proc, the server libmicrohttpd with GnuTLS and zlib; what is missing leaves
# its room out, with one line. A builder who wants less says -DWARPWAVE_STORE=OFF or -DWARPWAVE_MODEL=OFF.
option(WARPWAVE_STORE "Collections in SQLite files" ON)
option(WARPWAVE_MODEL "Embedding and language models" ON)

find_package(Threads REQUIRED)
find_package(PkgConfig QUIET)
find_library(JANSSON_LIBRARY jansson REQUIRED)
find_path(JANSSON_INCLUDE jansson.h REQUIRED)
find_library(ZSTD_LIBRARY zstd REQUIRED)
find_path(ZSTD_INCLUDE zstd.h REQUIRED)
find_path(XXHASH_INCLUDE xxhash.h REQUIRED) # header only: src/base/checksum.c

# Do these libraries link here? For this processor: pkg-config may know those of another one. The memory sanitizer takes what libraries without
# it have written for memory that nobody has.
include(CheckCSourceCompiles)
function(libraries_link result source)
    set(${result} FALSE PARENT_SCOPE)
    foreach(library ${ARGN})
        if(NOT TARGET ${library})
            return()
        endif()
    endforeach()
    if(NOT WARPWAVE_SANITIZE MATCHES "memory")
        set(CMAKE_REQUIRED_LIBRARIES ${ARGN})
        check_c_source_compiles("${source}" ${result}_LINK)
        set(${result} ${${result}_LINK} PARENT_SCOPE)
    endif()
endfunction()

if(WARPWAVE_STORE)
    find_package(SQLite3 QUIET)
    if(NOT SQLite3_FOUND OR SQLite3_VERSION VERSION_LESS 3.38)
        set(WARPWAVE_STORE FALSE)
        message(NOTICE "warpwave: no store: it needs SQLite 3.38 or later (libsqlite3-dev), found ${SQLite3_VERSION}")
    endif()
endif()

if(WARPWAVE_MODEL)
    if(PkgConfig_FOUND)
        pkg_check_modules(PCRE2 QUIET IMPORTED_TARGET libpcre2-8)
        pkg_check_modules(UTF8PROC QUIET IMPORTED_TARGET libutf8proc)
    endif()
    libraries_link(WARPWAVE_MODEL_LIBRARIES "#define PCRE2_CODE_UNIT_WIDTH 8\n#include <pcre2.h>\n#include <utf8proc.h>
        int main(void) { pcre2_code_free(0); return utf8proc_tolower(0); }" PkgConfig::PCRE2 PkgConfig::UTF8PROC)
    if(NOT WARPWAVE_MODEL_LIBRARIES)
        set(WARPWAVE_MODEL FALSE)
        message(NOTICE "warpwave: no models: they need PCRE2 and utf8proc (libpcre2-dev, libutf8proc-dev, pkg-config)")
    endif()
endif()

set(WARPWAVE_TEXT FALSE) # collections of text: a store with a model
set(WARPWAVE_SERVER FALSE)
if(WARPWAVE_STORE AND WARPWAVE_MODEL)
    set(WARPWAVE_TEXT TRUE)
    if(PkgConfig_FOUND)
        pkg_check_modules(MICROHTTPD QUIET IMPORTED_TARGET libmicrohttpd>=0.9.71)
        pkg_check_modules(GNUTLS QUIET IMPORTED_TARGET gnutls>=3.6.3)
        find_package(ZLIB QUIET)
        pkg_check_modules(LIBPQ QUIET IMPORTED_TARGET libpq) # for warpwave serve --follow
        pkg_check_modules(CURL QUIET IMPORTED_TARGET libcurl>=7.85)
    endif()
    libraries_link(WARPWAVE_SERVER "#include <gnutls/gnutls.h>\n#include <microhttpd.h>\n#include <zlib.h>
        int main(void) { return MHD_get_version() == gnutls_check_version(zlibVersion()); }" PkgConfig::MICROHTTPD PkgConfig::GNUTLS ZLIB::ZLIB)
endif()
if(NOT WARPWAVE_SERVER)
    message(NOTICE "warpwave: no server: it needs libmicrohttpd with GnuTLS (libmicrohttpd-dev), zlib (zlib1g-dev), stores and models")
endif()
