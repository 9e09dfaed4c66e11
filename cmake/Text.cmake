# Collections of text: what needs both a store and a model. A library of its own, which stands on the other three; left out where one of them
# is missing.
if(NOT WARPWAVE_STORE OR NOT WARPWAVE_MODEL)
    set(WARPWAVE_TEXT FALSE)
    return()
endif()
set(WARPWAVE_TEXT TRUE)
file(GLOB text_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/text/*.c)
# Small things of base that have no state to share with the core's, as for the store.
set(text_base ${CMAKE_SOURCE_DIR}/src/base)
set(text_base_sources ${text_base}/system/memory.c ${text_base}/json/json.c ${text_base}/json/json_value.c ${text_base}/text.c ${text_base}/structs.c ${text_base}/float_guard.c
    ${text_base}/system/large_blocks.c ${text_base}/system/limits.c)

# Compiled once for the library, for the command and for tests, which link it with the other objects.
add_library(warpwave_text_objects OBJECT ${text_sources})
target_include_directories(warpwave_text_objects PUBLIC ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)

add_library(warpwave_text_base OBJECT ${text_base_sources})
target_include_directories(warpwave_text_base PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)

add_library(warpwave_text SHARED $<TARGET_OBJECTS:warpwave_text_objects> $<TARGET_OBJECTS:warpwave_text_base>)
target_link_libraries(warpwave_text PUBLIC warpwave_store warpwave_model warpwave PRIVATE Threads::Threads m)
target_include_directories(warpwave_text INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
set_target_properties(warpwave_text PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} INSTALL_RPATH "$ORIGIN")
target_link_options(warpwave_text PRIVATE -Wl,--no-undefined -Wl,--exclude-libs,ALL)
target_link_libraries(warpwave_command PRIVATE warpwave_text_objects)
