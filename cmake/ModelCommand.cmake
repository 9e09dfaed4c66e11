# `warpwave model` and what else needs models, where they are; else what says that there are none.
if(WARPWAVE_MODEL)
    file(GLOB model_command_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/programs/warpwave/model/*.c)
    target_sources(warpwave_command_objects PRIVATE ${model_command_sources} ${CMAKE_SOURCE_DIR}/programs/warpwave/gguf/from_safetensors.c)
    target_link_libraries(warpwave_command PRIVATE warpwave_model_objects)
else()
    target_sources(warpwave_command_objects PRIVATE ${CMAKE_SOURCE_DIR}/programs/warpwave/absent/no_model.c)
endif()
