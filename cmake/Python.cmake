# The files of the Python wheel (pyproject.toml, `make wheel`): one shared library with everything in it, and the command, which is one call
# of it, so that the kernels of all chips are in the wheel once. Both need a glibc of 2.28 or later only, if WARPWAVE_WHEEL_ZIG says so: then
# the objects, which the usual compiler made, are linked by zig, which knows the symbols of old versions. What they need of other libraries
# (jansson, zstd, PCRE2, utf8proc, SQLite, libmicrohttpd, zlib) is linked in where the distribution's archive can be; otherwise the shared library is needed, which
# `make wheel` has auditwheel put into the wheel.
option(WARPWAVE_WHEEL "Make the files of the Python wheel" OFF)
set(WARPWAVE_WHEEL_ZIG "" CACHE STRING "The command of zig (a list) that links the wheel's files for an old glibc; empty: the usual linker")
set(wheel_dir ${CMAKE_BINARY_DIR}/wheel)
set(wheel_library libwarpwave.so.${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

add_library(wheel_command_objects OBJECT ${CMAKE_SOURCE_DIR}/python/command_library.c)
target_include_directories(wheel_command_objects PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/programs)
set(wheel_objects ${LIBRARY_OBJECTS} $<TARGET_OBJECTS:warpwave_command_objects> $<TARGET_OBJECTS:wheel_command_objects>)
set(wheel_wants jansson zstd)
# The library knows SQLite only by its table of functions (src/store/sqlite_host.c), so its stores use Python's own. Only where that cannot be had,
# and in the command, a copy that the wheel brings serves.
if(WARPWAVE_STORE)
    target_sources(wheel_command_objects PRIVATE ${CMAKE_SOURCE_DIR}/python/bundled_sqlite.c)
    target_include_directories(wheel_command_objects PRIVATE ${SQLite3_INCLUDE_DIRS})
    list(APPEND wheel_wants sqlite3)
    list(APPEND wheel_objects $<TARGET_OBJECTS:warpwave_snapshot_objects>)
endif()
if(WARPWAVE_MODEL)
    list(APPEND wheel_wants pcre2-8 utf8proc)
endif()

if(WARPWAVE_WHEEL_ZIG)
    execute_process(COMMAND ${CMAKE_C_COMPILER} -print-libgcc-file-name OUTPUT_VARIABLE libgcc OUTPUT_STRIP_TRAILING_WHITESPACE)
    set(link_with ${WARPWAVE_WHEEL_ZIG} cc -target ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu.2.28 -O2)
    set(link_last ${libgcc})
else()
    set(link_with ${CMAKE_C_COMPILER} -Wl,-z,text) # as zig does always
    if(CMAKE_SYSROOT)
        list(APPEND link_with --sysroot=${CMAKE_SYSROOT})
    endif()
    set(link_last "")
endif()
# Inside, names are bound to our own definitions, as the list of exports says anyway: an archive that was compiled for programs (-fPIE, as
# Debian's for amd64 are) may then be linked if it reads no variable of libc.
set(wheel_link_options -Wl,-Bsymbolic -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)

# What pulls in the parts of each archive that we use.
set(WHEEL_USES_jansson json_loadb json_loads json_dumps)
set(WHEEL_USES_zstd ZSTD_decompressDCtx ZSTD_DCtx_refPrefix ZSTD_getErrorName ZSTD_compressStream2)
set(WHEEL_USES_z inflate deflate)
set(WHEEL_USES_sqlite3 sqlite3_open_v2)
set(WHEEL_USES_pcre2-8 pcre2_compile_8 pcre2_jit_compile_8 pcre2_match_8)
set(WHEEL_USES_utf8proc utf8proc_decompose_char utf8proc_normalize_utf32)
set(WHEEL_WITH_microhttpd -fPIC ${CMAKE_SOURCE_DIR}/python/no_gnutls.c)
set(WHEEL_USES_microhttpd MHD_start_daemon MHD_suspend_connection MHD_create_response_from_callback)

# Can this archive be part of a shared library? The linker says, once for each archive and linker. WHEEL_WITH_name is linked beside it.
function(archive_can_be_shared library archive result)
    string(MAKE_C_IDENTIFIER "WARPWAVE_LINKS_${link_with}_${archive}" tried)
    if(NOT DEFINED ${tried})
        list(TRANSFORM WHEEL_USES_${library} PREPEND -Wl,-u, OUTPUT_VARIABLE uses)
        set(trial ${wheel_dir}/trial.so)
        file(MAKE_DIRECTORY ${wheel_dir})
        execute_process(COMMAND ${link_with} -shared -o ${trial} ${wheel_link_options} ${uses} ${WHEEL_WITH_${library}} ${archive} -lm -lpthread -ldl ${link_last}
                        RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
        file(REMOVE ${trial})
        set(answer FALSE)
        if(failed EQUAL 0)
            set(answer TRUE)
        endif()
        set(${tried} ${answer} CACHE INTERNAL "")
    endif()
    set(${result} ${${tried}} PARENT_SCOPE)
endfunction()

# The server, without TLS (python/no_tls.c), where libmicrohttpd's archive can be linked in: the shared library would need GnuTLS. The
# archive's variable stderr gets another name, which a shared library can define.
set(wheel_server FALSE)
find_library(MICROHTTPD_ARCHIVE NAMES libmicrohttpd.a)
if(WARPWAVE_SERVER AND MICROHTTPD_ARCHIVE AND CMAKE_OBJCOPY)
    file(MAKE_DIRECTORY ${wheel_dir})
    set(WHEEL_ARCHIVE_microhttpd ${wheel_dir}/libmicrohttpd.a)
    execute_process(COMMAND ${CMAKE_OBJCOPY} --redefine-sym stderr=wheel_stderr ${MICROHTTPD_ARCHIVE} ${WHEEL_ARCHIVE_microhttpd} RESULT_VARIABLE failed)
    if(failed EQUAL 0)
        archive_can_be_shared(microhttpd ${WHEEL_ARCHIVE_microhttpd} wheel_server)
    endif()
endif()
if(wheel_server)
    list(APPEND wheel_wants microhttpd z)
    target_sources(wheel_command_objects PRIVATE ${CMAKE_SOURCE_DIR}/python/no_tls.c ${CMAKE_SOURCE_DIR}/python/no_gnutls.c
                   ${CMAKE_SOURCE_DIR}/programs/server/cluster/absent.c)
    list(APPEND wheel_objects $<TARGET_OBJECTS:warpwave_server_objects> $<TARGET_OBJECTS:warpwave_serve_objects>)
else()
    target_sources(wheel_command_objects PRIVATE ${CMAKE_SOURCE_DIR}/python/no_serve.c)
    if(WARPWAVE_WHEEL)
        message(NOTICE "-- wheel: no server in it: libmicrohttpd.a is missing or cannot be part of a shared library")
    endif()
endif()

set(wheel_libraries "")
set(wheel_shared "")
foreach(library ${wheel_wants})
    find_library(WHEEL_ARCHIVE_${library} NAMES lib${library}.a)
    set(possible FALSE)
    if(WHEEL_ARCHIVE_${library})
        archive_can_be_shared(${library} ${WHEEL_ARCHIVE_${library}} possible)
    endif()
    if(possible)
        list(APPEND wheel_libraries ${WHEEL_ARCHIVE_${library}})
    else()
        find_library(WHEEL_SHARED_${library} NAMES ${library} REQUIRED)
        list(APPEND wheel_libraries ${WHEEL_SHARED_${library}})
        list(APPEND wheel_shared ${WHEEL_SHARED_${library}})
        if(WARPWAVE_WHEEL)
            message(NOTICE "-- wheel: lib${library}.a is missing or cannot be part of a shared library; the package will need ${WHEEL_SHARED_${library}}")
        endif()
    endif()
endforeach()

# In a file of its own: the command line would be too long for some, and the test that links these very objects for an old glibc
# (tests/python/package/test_wheel.py) reads it. shared.txt has the shared libraries among them.
file(GENERATE OUTPUT ${wheel_dir}/shared.txt CONTENT "$<JOIN:${wheel_shared},\n>\n")
file(GENERATE OUTPUT ${wheel_dir}/objects.rsp CONTENT "$<JOIN:${wheel_objects};${wheel_libraries},\n>\n")
add_custom_command(OUTPUT ${wheel_dir}/${wheel_library}
    COMMAND ${link_with} -shared -s -o ${wheel_dir}/${wheel_library} -Wl,-soname,${wheel_library} -Wl,-z,nodelete -Wl,-z,defs ${wheel_link_options}
            -Wl,--version-script=${CMAKE_SOURCE_DIR}/python/exports.map @${wheel_dir}/objects.rsp -lm -lpthread -ldl ${link_last}
    DEPENDS ${wheel_objects} ${CMAKE_SOURCE_DIR}/python/exports.map
    COMMAND_EXPAND_LISTS VERBATIM COMMENT "Linking the wheel's library")
add_custom_command(OUTPUT ${wheel_dir}/warpwave
    COMMAND ${link_with} -s -O2 -fPIE -pie -fstack-protector-strong ${branch_protection} -Wl,-z,relro -Wl,-z,now -o ${wheel_dir}/warpwave ${CMAKE_SOURCE_DIR}/python/command.c ${wheel_dir}/${wheel_library}
            "-Wl,-rpath,$ORIGIN/../lib"
    DEPENDS ${CMAKE_SOURCE_DIR}/python/command.c ${wheel_dir}/${wheel_library} VERBATIM COMMENT "Linking the wheel's command")
add_custom_target(wheel_files DEPENDS ${wheel_dir}/${wheel_library} ${wheel_dir}/warpwave)

if(WARPWAVE_WHEEL)
    add_custom_target(wheel_files_all ALL DEPENDS wheel_files)
    install(FILES ${wheel_dir}/${wheel_library} DESTINATION warpwave/lib COMPONENT python)
    install(PROGRAMS ${wheel_dir}/warpwave DESTINATION warpwave/bin COMPONENT python)
    install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION warpwave/licenses RENAME warpwave.txt COMPONENT python)
    install(DIRECTORY ${CMAKE_SOURCE_DIR}/python/licenses/ DESTINATION warpwave/licenses COMPONENT python FILES_MATCHING PATTERN "*.txt")
endif()
