# The store: src/store, compiled twice. Here as SQLite's loadable extension, build/sqlite/warpwave.so, which knows SQLite only by the table of
# functions that its host hands over (sqlite3ext.h) and so links none. Both builds link libwarpwave.so, where what is in memory is shared
# between them; the small helpers of src/base they have themselves, but for the error message, of which there is one a thread.
find_package(SQLite3 3.38 QUIET)
if(NOT SQLite3_FOUND)
    message(STATUS "store: left out, because SQLite 3.38 or later was not found (libsqlite3-dev)")
    return()
endif()

file(GLOB store_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/store/*.c)
file(GLOB sqlite_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/store/sqlite/*.c)
file(GLOB store_base_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/base/*.c ${CMAKE_SOURCE_DIR}/src/base/system/*.c)
list(FILTER store_base_sources EXCLUDE REGEX "/(status|unpack)\\.c$")
set(store_entry ${CMAKE_SOURCE_DIR}/src/store/sqlite/entry.c) # of the extension alone
list(REMOVE_ITEM sqlite_sources ${store_entry})

# For the library of the store and for tests: everything but the entry, against libsqlite3.
add_library(warpwave_store_objects OBJECT ${store_sources} ${sqlite_sources})
target_include_directories(warpwave_store_objects PUBLIC ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src ${SQLite3_INCLUDE_DIRS})
target_link_libraries(warpwave_store_objects PUBLIC SQLite::SQLite3 Threads::Threads)

add_library(warpwave_sqlite MODULE ${store_sources} ${sqlite_sources} ${store_entry} ${store_base_sources})
target_compile_definitions(warpwave_sqlite PRIVATE WARPWAVE_SQLITE_EXTENSION)
target_include_directories(warpwave_sqlite PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src ${SQLite3_INCLUDE_DIRS})
target_link_libraries(warpwave_sqlite PRIVATE warpwave Threads::Threads m)
# Never unloaded: its threads and what it has in memory outlive the connection that loaded it.
target_link_options(warpwave_sqlite PRIVATE -Wl,--no-undefined -Wl,-z,nodelete)
set_target_properties(warpwave_sqlite PROPERTIES PREFIX "" OUTPUT_NAME warpwave LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/sqlite
                      BUILD_RPATH "$ORIGIN/.." INSTALL_RPATH "$ORIGIN/..")
install(TARGETS warpwave_sqlite LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/warpwave COMPONENT library)
