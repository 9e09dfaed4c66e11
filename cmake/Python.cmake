# The files of the Python wheel (pyproject.toml, `make wheel`): one shared library with everything in it, and the command, which is one call
# of it, so that the kernels of all chips are in the wheel once. Both need a glibc of 2.28 or later only, if WARPWAVE_WHEEL_ZIG says so: then
# the objects, which the usual compiler made, are linked by zig, which knows the symbols of old versions. What they need of other libraries
# (jansson, zstd, PCRE2, utf8proc, SQLite) is linked in.
option(WARPWAVE_WHEEL "Make the files of the Python wheel" OFF)
set(WARPWAVE_WHEEL_ZIG "" CACHE STRING "The command of zig (a list) that links the wheel's files for an old glibc; empty: the usual linker")
set(wheel_dir ${CMAKE_BINARY_DIR}/wheel)

add_library(wheel_command_objects OBJECT ${CMAKE_SOURCE_DIR}/python/command_library.c)
target_include_directories(wheel_command_objects PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
set(wheel_objects $<TARGET_OBJECTS:warpwave_objects> $<TARGET_OBJECTS:warpwave_command_objects> $<TARGET_OBJECTS:wheel_command_objects>)
set(wheel_wants jansson zstd)

# The store for Python: two copies of SQLite in a process drop each other's locks on a file, so this one knows SQLite only by the table of
# functions that Python's own hands over when it loads this library as an extension (python/warpwave/_library.py), as the extension does;
# unlike that it has the calls of store.h as well.
if(WARPWAVE_STORE)
    add_library(python_store_objects OBJECT ${store_sources} ${store_entry})
    target_compile_definitions(python_store_objects PRIVATE WARPWAVE_SQLITE_EXTENSION)
    target_include_directories(python_store_objects PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src ${SQLite3_INCLUDE_DIRS})
    add_library(python_store SHARED $<TARGET_OBJECTS:python_store_objects> $<TARGET_OBJECTS:warpwave_store_base>)
    target_link_libraries(python_store PRIVATE warpwave Threads::Threads m)
    target_link_options(python_store PRIVATE -Wl,--no-undefined -Wl,-z,nodelete)
    set_target_properties(python_store PROPERTIES OUTPUT_NAME warpwave_store LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python BUILD_RPATH "$ORIGIN/..")
    # Only where Python's cannot be had, and in the command, a copy that the wheel brings serves.
    target_sources(wheel_command_objects PRIVATE ${CMAKE_SOURCE_DIR}/python/bundled_sqlite.c)
    target_compile_definitions(wheel_command_objects PRIVATE WARPWAVE_BUNDLED_SQLITE)
    target_include_directories(wheel_command_objects PRIVATE ${SQLite3_INCLUDE_DIRS})
    list(APPEND wheel_objects $<TARGET_OBJECTS:python_store_objects>)
    list(APPEND wheel_wants sqlite3)
endif()
if(WARPWAVE_MODEL)
    list(APPEND wheel_objects $<TARGET_OBJECTS:warpwave_model_objects>)
    list(APPEND wheel_wants pcre2-8 utf8proc)
endif()

# Each library as an archive where there is one. A distribution without archives makes a package that needs its shared libraries.
set(wheel_libraries "")
foreach(library ${wheel_wants})
    find_library(WHEEL_${library} NAMES lib${library}.a ${library})
    if(WARPWAVE_WHEEL AND NOT WHEEL_${library} MATCHES "\\.a$")
        message(NOTICE "-- wheel: lib${library}.a is not here; the package will need the shared one of the system")
    endif()
    list(APPEND wheel_libraries ${WHEEL_${library}})
endforeach()

if(WARPWAVE_WHEEL_ZIG)
    execute_process(COMMAND ${CMAKE_C_COMPILER} -print-libgcc-file-name OUTPUT_VARIABLE libgcc OUTPUT_STRIP_TRAILING_WHITESPACE)
    set(link_with ${WARPWAVE_WHEEL_ZIG} cc -target ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu.2.28 -O2)
    set(link_last ${libgcc})
else()
    set(link_with ${CMAKE_C_COMPILER})
    set(link_last "")
endif()
# In a file of its own: the command line would be too long for some, and the test that links these very objects for an old glibc
# (tests/python/test_wheel.py) reads it.
file(GENERATE OUTPUT ${wheel_dir}/objects.rsp CONTENT "$<JOIN:${wheel_objects};${wheel_libraries},\n>\n")
add_custom_command(OUTPUT ${wheel_dir}/libwarpwave.so.0
    COMMAND ${link_with} -shared -s -o ${wheel_dir}/libwarpwave.so.0 -Wl,-soname,libwarpwave.so.0 -Wl,-z,nodelete -Wl,-z,defs
            -Wl,--version-script=${CMAKE_SOURCE_DIR}/python/exports.map @${wheel_dir}/objects.rsp -lm -lpthread -ldl ${link_last}
    DEPENDS ${wheel_objects} ${CMAKE_SOURCE_DIR}/python/exports.map
    COMMAND_EXPAND_LISTS VERBATIM COMMENT "Linking the wheel's library")
add_custom_command(OUTPUT ${wheel_dir}/warpwave
    COMMAND ${link_with} -s -fPIE -pie -o ${wheel_dir}/warpwave ${CMAKE_SOURCE_DIR}/python/command.c ${wheel_dir}/libwarpwave.so.0
            "-Wl,-rpath,$ORIGIN/../lib"
    DEPENDS ${CMAKE_SOURCE_DIR}/python/command.c ${wheel_dir}/libwarpwave.so.0 VERBATIM COMMENT "Linking the wheel's command")
add_custom_target(wheel_files DEPENDS ${wheel_dir}/libwarpwave.so.0 ${wheel_dir}/warpwave)

if(WARPWAVE_WHEEL)
    add_custom_target(wheel_files_all ALL DEPENDS wheel_files)
    install(FILES ${wheel_dir}/libwarpwave.so.0 DESTINATION warpwave/lib COMPONENT python)
    install(PROGRAMS ${wheel_dir}/warpwave DESTINATION warpwave/bin COMPONENT python)
    install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION warpwave/licenses RENAME warpwave.txt COMPONENT python)
    file(GLOB wheel_licenses ${CMAKE_SOURCE_DIR}/python/licenses/*.txt)
    install(FILES ${wheel_licenses} DESTINATION warpwave/licenses COMPONENT python)
endif()
