# The files of the Python wheel (pyproject.toml, `make wheel`): the store, which is loaded through Python's own SQLite; a shared library that also has the command in it, behind ww_command_main(),
# so that the kernels of all chips are in the wheel once; and the command itself, which is that one call. Both need a glibc of 2.28 or
# later only, if WARPWAVE_WHEEL_ZIG says so: then the objects, which the usual compiler made, are linked by zig, which knows the symbols
# of old versions. jansson and zstd are linked in.
option(WARPWAVE_WHEEL "Make the files of the Python wheel" OFF)
set(WARPWAVE_WHEEL_ZIG "" CACHE STRING "The command of zig (a list) that links the wheel's files for an old glibc; empty: the usual linker")

find_library(JANSSON_STATIC_LIBRARY libjansson.a)
find_library(ZSTD_STATIC_LIBRARY libzstd.a)
set(wheel_libraries ${JANSSON_LIBRARY} ${ZSTD_LIBRARY})
if(JANSSON_STATIC_LIBRARY AND ZSTD_STATIC_LIBRARY)
    set(wheel_libraries ${JANSSON_STATIC_LIBRARY} ${ZSTD_STATIC_LIBRARY})
elseif(WARPWAVE_WHEEL)
    message(NOTICE "-- wheel: libjansson.a and libzstd.a are not both here; the library will need the shared ones of the system")
endif()

set(wheel_all EXCLUDE_FROM_ALL)
if(WARPWAVE_WHEEL)
    set(wheel_all "")
endif()
set(wheel_dir ${CMAKE_BINARY_DIR}/wheel)
add_library(wheel_command_objects OBJECT ${wheel_all} ${command_sources} ${CMAKE_SOURCE_DIR}/src/cli/absent/no_store.c # stores need Python's SQLite, models PCRE2 and utf8proc
            ${CMAKE_SOURCE_DIR}/src/cli/absent/no_model.c
            ${CMAKE_SOURCE_DIR}/python/command_library.c)
target_include_directories(wheel_command_objects PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src ${JANSSON_INCLUDE} ${ZSTD_INCLUDE})
target_compile_definitions(wheel_command_objects PRIVATE WARPWAVE_SOURCE_DATA_DIR="${CMAKE_SOURCE_DIR}/data" main=command_main WARPWAVE_WHEEL_COMMAND)
target_compile_options(wheel_command_objects PRIVATE -Wno-missing-prototypes) # of what was main()

set(zig_target ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu.2.28)
if(WARPWAVE_WHEEL_ZIG)
    execute_process(COMMAND ${CMAKE_C_COMPILER} -print-libgcc-file-name OUTPUT_VARIABLE libgcc OUTPUT_STRIP_TRAILING_WHITESPACE)
    set(link_with ${WARPWAVE_WHEEL_ZIG} cc -target ${zig_target} -O2)
    set(link_last ${libgcc})
else()
    set(link_with ${CMAKE_C_COMPILER})
    set(link_last "")
endif()
add_custom_command(OUTPUT ${wheel_dir}/libwarpwave.so.0
    COMMAND ${CMAKE_COMMAND} -E make_directory ${wheel_dir}
    COMMAND ${link_with} -shared -s -o ${wheel_dir}/libwarpwave.so.0 -Wl,-soname,libwarpwave.so.0 -Wl,--version-script=${CMAKE_SOURCE_DIR}/python/exports.map -Wl,-z,defs
            $<TARGET_OBJECTS:warpwave_objects> $<TARGET_OBJECTS:wheel_command_objects> ${wheel_libraries} -lm -lpthread -ldl ${link_last}
    DEPENDS warpwave_objects wheel_command_objects $<TARGET_OBJECTS:warpwave_objects> $<TARGET_OBJECTS:wheel_command_objects>
    COMMAND_EXPAND_LISTS VERBATIM COMMENT "Linking the wheel's library")
add_custom_command(OUTPUT ${wheel_dir}/warpwave
    COMMAND ${link_with} -s -fPIE -pie -o ${wheel_dir}/warpwave ${CMAKE_SOURCE_DIR}/python/command.c ${wheel_dir}/libwarpwave.so.0
            "-Wl,-rpath,$ORIGIN/../lib"
    DEPENDS ${CMAKE_SOURCE_DIR}/python/command.c ${wheel_dir}/libwarpwave.so.0 VERBATIM COMMENT "Linking the wheel's command")
set(wheel_made ${wheel_dir}/libwarpwave.so.0 ${wheel_dir}/warpwave)

# The store for Python: two copies of SQLite in a process drop each other's locks on a file, so this one has none. It knows SQLite only by the
# table of functions that Python's own hands over when it loads this library as an extension (python/warpwave/_library.py), as the extension
# does; unlike that it has the calls of store.h as well.
if(TARGET warpwave_store)
    add_library(python_store_objects OBJECT ${store_sources} ${store_entry})
    target_compile_definitions(python_store_objects PRIVATE WARPWAVE_SQLITE_EXTENSION)
    target_include_directories(python_store_objects PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src ${SQLite3_INCLUDE_DIRS})
    add_library(python_store SHARED $<TARGET_OBJECTS:python_store_objects> $<TARGET_OBJECTS:warpwave_store_base>)
    target_link_libraries(python_store PRIVATE warpwave Threads::Threads m)
    target_link_options(python_store PRIVATE -Wl,--no-undefined -Wl,-z,nodelete)
    set_target_properties(python_store PROPERTIES OUTPUT_NAME warpwave_store LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python BUILD_RPATH "$ORIGIN/..")
    add_custom_command(OUTPUT ${wheel_dir}/libwarpwave_store.so.0
        COMMAND ${link_with} -shared -s -o ${wheel_dir}/libwarpwave_store.so.0 -Wl,-soname,libwarpwave_store.so.0 -Wl,-z,defs -Wl,-z,nodelete
                -Wl,--version-script=${CMAKE_SOURCE_DIR}/python/exports.map $<TARGET_OBJECTS:python_store_objects>
                $<TARGET_OBJECTS:warpwave_store_base> ${wheel_dir}/libwarpwave.so.0 "-Wl,-rpath,$ORIGIN" ${wheel_libraries} -lm -lpthread -ldl
                ${link_last}
        DEPENDS ${wheel_dir}/libwarpwave.so.0 $<TARGET_OBJECTS:python_store_objects> $<TARGET_OBJECTS:warpwave_store_base>
        COMMAND_EXPAND_LISTS VERBATIM COMMENT "Linking the wheel's store")
    list(APPEND wheel_made ${wheel_dir}/libwarpwave_store.so.0)
endif()
add_custom_target(wheel_files DEPENDS ${wheel_made})

# For the test that links these very objects for an old glibc (tests/python/test_wheel.py).
file(GENERATE OUTPUT ${wheel_dir}/objects.rsp CONTENT "$<JOIN:$<TARGET_OBJECTS:warpwave_objects>;${wheel_libraries},\n>\n")
if(TARGET python_store)
    file(GENERATE OUTPUT ${wheel_dir}/store.rsp
         CONTENT "$<JOIN:$<TARGET_OBJECTS:python_store_objects>;$<TARGET_OBJECTS:warpwave_store_base>;${wheel_libraries},\n>\n")
endif()

if(WARPWAVE_WHEEL)
    add_custom_target(wheel_files_all ALL DEPENDS wheel_files)
    set(wheel_shared ${wheel_made})
    list(REMOVE_ITEM wheel_shared ${wheel_dir}/warpwave)
    install(FILES ${wheel_shared} DESTINATION warpwave/lib COMPONENT python)
    install(PROGRAMS ${wheel_dir}/warpwave DESTINATION warpwave/bin COMPONENT python)
    install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION warpwave/licenses RENAME warpwave.txt COMPONENT python)
    foreach(library jansson zstd)
        install(FILES ${CMAKE_SOURCE_DIR}/python/licenses/${library}.txt DESTINATION warpwave/licenses COMPONENT python)
    endforeach()
endif()
