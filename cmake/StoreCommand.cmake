# `warpwave store`, where there are stores; else what says that there are none.
if(WARPWAVE_STORE)
    file(GLOB store_command_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/programs/warpwave/store/*.c)
    target_sources(warpwave_command_objects PRIVATE ${store_command_sources})
    target_link_libraries(warpwave_command PRIVATE warpwave_store_objects)
else()
    target_sources(warpwave_command_objects PRIVATE ${CMAKE_SOURCE_DIR}/programs/warpwave/absent/no_store.c)
endif()
