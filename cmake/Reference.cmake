# What is made of the tables by which the commands parse their options: the reference with its lists, manual pages and completions of shells.
find_package(Python3 COMPONENTS Interpreter)
set(MANUALS "")
set(COMPLETIONS "")
if(NOT Python3_FOUND)
    message(NOTICE "python3 is missing, so this build has no manual pages and no completions for shells")
elseif(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
    message(NOTICE "the command cannot run on this machine, so this build has no manual pages and no completions for shells")
else()
    set(folder ${CMAKE_BINARY_DIR}/reference)
    file(MAKE_DIRECTORY ${folder})
    foreach(command warpwave_command warpwave_mpi_command)
        if(TARGET ${command})
            get_target_property(name ${command} OUTPUT_NAME)
            add_custom_command(OUTPUT ${folder}/${name}.json COMMAND ${command} help --json > ${folder}/${name}.json DEPENDS ${command} VERBATIM)
            list(APPEND tables ${folder}/${name}.json)
            list(APPEND MANUALS ${folder}/${name}.1)
            add_custom_command(OUTPUT ${folder}/${name}.1
                COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/scripts/docs/man-page.py ${name} ${folder}/command.md ${folder}/${name}.1
                DEPENDS ${folder}/command.md ${CMAKE_SOURCE_DIR}/scripts/docs/man-page.py ${CMAKE_SOURCE_DIR}/docs/reference/errors.md VERBATIM)
        endif()
    endforeach()
    set(maker ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/scripts/command-reference.py)
    add_custom_command(OUTPUT ${folder}/command.md
        COMMAND ${maker} --page ${folder}/command.md ${folder}/warpwave.json ${folder}/warpwave-mpi.json
        DEPENDS ${tables} ${CMAKE_SOURCE_DIR}/scripts/command-reference.py ${CMAKE_SOURCE_DIR}/docs/reference/command.md VERBATIM)
    set(COMPLETIONS ${folder}/warpwave.bash ${folder}/_warpwave ${folder}/warpwave.fish)
    add_custom_command(OUTPUT ${COMPLETIONS} COMMAND ${maker} --completions ${folder} ${folder}/warpwave.json
        DEPENDS ${folder}/warpwave.json ${CMAKE_SOURCE_DIR}/scripts/command-reference.py VERBATIM)
    add_custom_target(reference ALL DEPENDS ${folder}/command.md ${MANUALS} ${COMPLETIONS})
endif()
