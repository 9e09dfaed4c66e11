# How tests/ROOM/CMakeLists.txt names its tests. A suite is a file test_NAME.c with cmocka tests over the library's objects, run as the test NAME. The
# suites of a room are one program, which is linked once: ROOM_tests. TEST_FOLDER/test_NAME is a link to it, and it runs the main() of the name it is
# called by (room/room.c). The target test_NAME makes the program.
#   room_tests(SUITES test_NAME.c ... [WITH STORE MODEL SERVER] [PROGRAMS test_NAME.c ...])
# WITH: what the room's tests need more than the core, where this build has it. PROGRAMS are programs of their own: one takes the place of functions of
# the library, one of system calls, and one calls itself.
function(room_tests)
    cmake_parse_arguments(its "" "" "WITH;SUITES;PROGRAMS" ${ARGN})
    get_filename_component(room ${CMAKE_CURRENT_SOURCE_DIR} NAME)
    set(suites "")
    foreach(source ${its_SUITES})
        get_filename_component(name ${source} NAME_WE)
        string(APPEND suites "SUITE(${name})\n")
        set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-Dmain=${name}_main;-include;room/main.h")
        file(CREATE_LINK ${room}_tests ${TEST_FOLDER}/${name} SYMBOLIC)
        add_custom_target(${name})
        add_dependencies(${name} ${room}_tests)
    endforeach()
    file(CONFIGURE OUTPUT ${TEST_FOLDER}/rooms/${room}/suites.def CONTENT "${suites}")
    test_program(${room}_tests "${its_WITH}" ${CMAKE_SOURCE_DIR}/tests/room/room.c ${its_SUITES})
    target_include_directories(${room}_tests PRIVATE ${TEST_FOLDER}/rooms/${room})
    foreach(source ${its_PROGRAMS})
        get_filename_component(name ${source} NAME_WE)
        test_program(${name} "${its_WITH}" ${source})
    endforeach()
    foreach(source ${its_SUITES} ${its_PROGRAMS})
        add_suite(${source})
    endforeach()
    cmake_language(DEFER CALL leave_slow_leak_checks_out)
endfunction()

# test_program(PROGRAM WITH SOURCE ...): what every program of tests is linked with.
function(test_program program with)
    add_executable(${program} ${ARGN})
    target_link_libraries(${program} PRIVATE test_support tested_library ${CMOCKA_LIBRARY})
    if(WARPWAVE_SANITIZE MATCHES "address") # places that the linker knows: relocations for its reports were a third of each program
        target_link_options(${program} PRIVATE -no-pie)
    endif()
    set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${TEST_FOLDER})
    if(WARPWAVE_STORE AND "STORE" IN_LIST with)
        target_compile_definitions(${program} PRIVATE EXTENSION_PATH="${CMAKE_BINARY_DIR}/sqlite/warpwave.so")
        add_dependencies(${program} warpwave)
    endif()
    if(WARPWAVE_MODEL AND "MODEL" IN_LIST with)
        target_link_libraries(${program} PRIVATE model_test_support)
    endif()
    if(WARPWAVE_SERVER AND "SERVER" IN_LIST with)
        target_link_libraries(${program} PRIVATE warpwave_snapshot_objects warpwave_server_objects warpwave_server_tls warpwave_server_follow server_test_support)
    endif()
endfunction()

# A test that this build cannot run. It says why, and ctest and the summary count it as skipped.
function(skip_test test why)
    add_test(NAME ${test} COMMAND sh -c "echo 'SKIP: ${why}'; exit 77")
    set_tests_properties(${test} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()

function(test_runs_on test devices)
    set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT "WARPWAVE_TEST_DEVICES=${devices}")
endfunction()

# A suite runs on the CPU and with waves of 32 on the emulator, and again with waves of 64 on the stand-in for ROCm (rocm_NAME). The other wave size
# of each is the long test waves_NAME or waves_rocm_NAME. Suites of the kernels alone, of drivers and of threads run with both sizes at once.
set(BOTH_WAVES "^(rocm_)?(kernels|gpu|threads)_")

# rocm_runtime, gpu_nvrtc: vendors' compilers are not ours to check. collection_fork: it forks while threads allocate, and the child of a fork waits
# forever for the lock of the sanitizer's allocator (gcc 12) if a thread held it.
set(NOT_SANITIZED "^(rocm_runtime|gpu_nvrtc|(rocm_)?collection_fork)$")

# Adds the tests of a suite: NAME and its forms on other devices.
function(add_suite source)
    get_filename_component(name ${source} NAME_WE)
    string(REGEX REPLACE "^test_" "" test ${name})
    set(program ${TEST_FOLDER}/${name})
    file(STRINGS ${source} on_devices REGEX "RUN_ON_EVERY_DEVICE\\(" LIMIT_COUNT 1)
    if(NOT WARPWAVE_SANITIZE OR NOT test MATCHES "${NOT_SANITIZED}")
        add_plain_tests(${test} ${program} "${on_devices}")
    endif()
    if(test STREQUAL "group_search") # has the devices as members beside others
        set(on_devices TRUE)
    endif()
    if(STANDIN_HAS_KERNELS AND on_devices AND NOT test STREQUAL "gpu_bandwidth") # of a real GPU
        add_standin_tests(${test} ${program})
    endif()
    if(TEST ${test} AND test IN_LIST KERNEL_TESTS)
        set_property(TEST ${test} APPEND PROPERTY LABELS kernels)
    endif()
endfunction()

function(add_plain_tests test program on_devices)
    add_test(NAME ${test} COMMAND ${program})
    if(on_devices AND NOT test MATCHES "${BOTH_WAVES}")
        test_runs_on(${test} cpu,emulator:32)
        if(NOT WARPWAVE_SANITIZE) # they would find the same
            add_test(NAME waves_${test} COMMAND ${program})
            test_runs_on(waves_${test} emulator:64)
            test_is_long(waves_${test})
        endif()
    endif()
    if(test MATCHES "^threads_") # for the thread sanitizer, too
        set_property(TEST ${test} APPEND PROPERTY LABELS threads)
    endif()
    test_length(${test} ${program})
    if(test MATCHES "${EMULATED_LATER}")
        set_tests_properties(${test} PROPERTIES ENVIRONMENT WARPWAVE_TEST_DEVICES=cpu)
        if(NOT TEST ${test}_check)
            add_test(NAME emulated_${test} COMMAND ${program})
            if(on_devices)
                test_runs_on(emulated_${test} emulator:32)
            else()
                test_runs_on(emulated_${test} emulator:32,emulator:64)
            endif()
            set_property(TEST emulated_${test} APPEND PROPERTY ENVIRONMENT WARPWAVE_TEST_CHECK=1)
            test_is_for_check(emulated_${test})
        endif()
    endif()
endfunction()

# The suite once more on the stand-in for ROCm: rocm:0 has waves of 64, rocm:1 of 32. Under sanitizers the kernels' own suites run on the emulator only:
# the stand-in executes the same code.
function(add_standin_tests suite program)
    set(test rocm_${suite})
    if(WARPWAVE_SANITIZE AND test MATCHES "^rocm_kernels_|${NOT_SANITIZED}")
        return()
    endif()
    if(test MATCHES "_threads_" OR (test MATCHES "${BOTH_WAVES}" AND NOT WARPWAVE_SANITIZE))
        add_standin_test(${test} ${program} rocm:0,rocm:1)
    else()
        add_standin_test(${test} ${program} rocm:0)
        if(NOT WARPWAVE_SANITIZE)
            add_standin_test(waves_${test} ${program} rocm:1)
            test_is_long(waves_${test})
        endif()
    endif()
    if(test MATCHES "_threads_")
        set_property(TEST ${test} APPEND PROPERTY LABELS threads)
    endif()
    test_length(${test} ${program})
endfunction()

function(add_standin_test test program devices)
    add_test(NAME ${test} COMMAND ${program})
    test_runs_on(${test} ${devices})
    set_property(TEST ${test} APPEND PROPERTY LABELS rocm)
    set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT WARPWAVE_HIP_LIBRARY=${CMAKE_BINARY_DIR}/standin/libamdhip64.so.6
                 WARPWAVE_ROCBLAS_LIBRARY=${CMAKE_BINARY_DIR}/standin/librocblas.so.4)
    if(program MATCHES "/test_own_kernel$")
        set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT "WARPWAVE_STANDIN=kernels=${OWN_KERNEL_DIR}/scale.so\\;compiled=${OWN_KERNEL_DIR}")
    endif()
    if(NOT WARPWAVE_SANITIZE)
        set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT WARPWAVE_TEST_CHECK=1)
    endif()
endfunction()

# group_form(test_NAME ...): the suites once more on a group of devices, group_NAME.
function(group_form)
    foreach(name ${ARGN})
        string(REGEX REPLACE "^test_" "group_" test ${name})
        add_test(NAME ${test} COMMAND ${TEST_FOLDER}/${name})
        test_runs_on(${test} emulator:32+cpu)
    endforeach()
endfunction()

# limits_form(test_NAME ...): the suites once more where a launch may have few blocks, so that work is cut as it is for HIP's limits on very large
# tensors, limits_NAME.
function(limits_form)
    if(WARPWAVE_SANITIZE)
        return()
    endif()
    foreach(name ${ARGN})
        string(REGEX REPLACE "^test_" "limits_" test ${name})
        add_test(NAME ${test} COMMAND ${TEST_FOLDER}/${name})
        test_runs_on(${test} emulator:32)
        set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT WARPWAVE_EMULATOR_THREADS_X=16384 WARPWAVE_EMULATOR_BLOCKS_Y=4)
        test_length(${test} ${TEST_FOLDER}/${name})
    endforeach()
endfunction()

# gcc's leak check walks through all 2^28 regions that an ARM64 process may have: 4 seconds for an empty program (gcc 12), none on x86-64. So on ARM64
# the suites that make every call of the library and have it fail look for leaks, and those over the memory of other libraries (SQLite, jansson, PCRE2).
# With WARPWAVE_TEST_LEAKS, as in `make check-all`, every program does.
option(WARPWAVE_TEST_LEAKS "Under the address sanitizer every test looks for leaks, also where that takes seconds for each process" OFF)
set(LEAK_SUITES "fault|_(refusals|life|session)$|^(collection|convert|files|gguf|group|json|sqlite_table|store|tensor|tokenizer)$")
set(LEAK_CHECK_IS_SLOW FALSE)
if(WARPWAVE_SANITIZE MATCHES "address" AND NOT WARPWAVE_TEST_LEAKS AND CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    set(LEAK_CHECK_IS_SLOW TRUE)
endif()
function(leave_slow_leak_checks_out)
    get_property(tests DIRECTORY PROPERTY TESTS)
    list(FILTER tests EXCLUDE REGEX "${LEAK_SUITES}")
    if(LEAK_CHECK_IS_SLOW AND tests)
        set_property(TEST ${tests} APPEND PROPERTY ENVIRONMENT ASAN_OPTIONS=detect_leaks=0)
    endif()
endfunction()
