# The store: a library of its own, so that the core links no SQLite, and the loadable extension from the same sources (src/store/sqlite).
# Both stand on libwarpwave. Left out, with one line, where SQLite is missing or too old.
find_package(SQLite3 QUIET)
if(SQLite3_FOUND AND SQLite3_VERSION VERSION_GREATER_EQUAL 3.38)
    set(WARPWAVE_STORE TRUE)
else()
    set(WARPWAVE_STORE FALSE)
    message(NOTICE "warpwave: no store: it needs SQLite 3.38 or later (libsqlite3-dev), found ${SQLite3_VERSION}")
    return()
endif()

file(GLOB_RECURSE store_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/store/*.c)
set(store_entry ${CMAKE_SOURCE_DIR}/src/store/sqlite/entry.c) # of the extension alone
list(REMOVE_ITEM store_sources ${store_entry})
# Small things of base that have no state to share with the core's; status.c, whose messages are the core's, is exported there.
set(store_base ${CMAKE_SOURCE_DIR}/src/base)
set(store_base_sources ${store_base}/system/memory.c ${store_base}/json/json.c ${store_base}/text.c ${store_base}/checksum.c ${store_base}/message.c ${store_base}/structs.c ${store_base}/system/process.c ${store_base}/float_guard.c
    ${store_base}/system/large_blocks.c ${store_base}/system/limits.c ${store_base}/system/threads.c ${store_base}/json/json_value.c ${store_base}/instant.c
    ${CMAKE_SOURCE_DIR}/src/vectors/filter/filter_read.c ${CMAKE_SOURCE_DIR}/src/vectors/filter/filter_match.c
    ${CMAKE_SOURCE_DIR}/src/vectors/filter/filter_qdrant.c ${CMAKE_SOURCE_DIR}/src/vectors/filter/filter_qdrant_match.c ${CMAKE_SOURCE_DIR}/src/vectors/filter/filter_geo.c
    ${CMAKE_SOURCE_DIR}/src/vectors/filter/point_id.c)

# Compiled once for the library and for tests, which link it with the core's objects.
add_library(warpwave_store_objects OBJECT ${store_sources})
target_include_directories(warpwave_store_objects PUBLIC ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src ${SQLite3_INCLUDE_DIRS})
target_link_libraries(warpwave_store_objects PUBLIC SQLite::SQLite3)

add_library(warpwave_store_base OBJECT ${store_base_sources})
target_include_directories(warpwave_store_base PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src ${XXHASH_INCLUDE})

add_library(warpwave_store SHARED $<TARGET_OBJECTS:warpwave_store_objects> $<TARGET_OBJECTS:warpwave_store_base>)
target_link_libraries(warpwave_store PUBLIC warpwave PRIVATE SQLite::SQLite3 Threads::Threads m)
target_include_directories(warpwave_store INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
set_target_properties(warpwave_store PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} INSTALL_RPATH "$ORIGIN")
target_link_options(warpwave_store PRIVATE -Wl,--no-undefined -Wl,--exclude-libs,ALL)

# The extension, build/sqlite/warpwave.so: the same sources, which know SQLite only by the table of functions that the host hands over
# (sqlite3ext.h). It links libwarpwave.so, where what is in memory is shared with programs that use the library. It is never unloaded, because
# its threads outlive the connection that loaded it.
set(extension_sources ${store_sources})
list(FILTER extension_sources EXCLUDE REGEX "/src/store/(store|transaction|connect|collections|readers|reading|selecting|writing|compact|backup|check|page_size|models|maps/maps|ivf/indexing)\\.c$") # the C door
# Compiled once for the extension and for Python's store (cmake/Python.cmake).
add_library(warpwave_sqlite_objects OBJECT ${extension_sources} ${store_entry})
target_compile_definitions(warpwave_sqlite_objects PRIVATE WARPWAVE_SQLITE_EXTENSION)
target_include_directories(warpwave_sqlite_objects PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src ${SQLite3_INCLUDE_DIRS})
add_library(warpwave_sqlite MODULE $<TARGET_OBJECTS:warpwave_sqlite_objects> $<TARGET_OBJECTS:warpwave_store_base>)
target_link_libraries(warpwave_sqlite PRIVATE warpwave Threads::Threads m)
target_link_options(warpwave_sqlite PRIVATE -Wl,--no-undefined -Wl,-z,nodelete)
set_target_properties(warpwave_sqlite PROPERTIES PREFIX "" OUTPUT_NAME warpwave LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/sqlite
                      BUILD_RPATH "$ORIGIN/.." INSTALL_RPATH "$ORIGIN/..")
install(TARGETS warpwave_sqlite LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/warpwave COMPONENT library)
