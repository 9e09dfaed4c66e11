# Kernels: each module of src/kernels/kernels.def is compiled for every chip by clang, without any vendor's SDK, and the results
# are embedded in the library; with tests, the host's compiler makes the emulated form of the same files as well.
set(KERNELS_DEF ${CMAKE_SOURCE_DIR}/src/kernels/kernels.def)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${KERNELS_DEF})
file(STRINGS ${KERNELS_DEF} entries REGEX "^KERNEL_ENTRY\\(")
set(KERNEL_MODULES "")
foreach(entry ${entries})
    string(REGEX REPLACE "^KERNEL_ENTRY\\( *([a-z0-9_]+).*" "\\1" module "${entry}")
    list(APPEND KERNEL_MODULES ${module})
endforeach()
list(REMOVE_DUPLICATES KERNEL_MODULES)

# A module is the file of its name in one of the rooms of src/kernels: SOURCE_OF_module, from src/.
file(GLOB_RECURSE kernel_files CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/src/kernels/*.c)
foreach(file ${kernel_files})
    get_filename_component(module ${file} NAME_WE)
    set(SOURCE_OF_${module} ${file})
endforeach()

# Modules that are written around what few chips have, and the chips they are compiled for; the others have another way
# (src/gpu/search/screen_round.c, src/gpu/search/search.c, src/gpu/tensor/conv.c, src/gpu/tensor/elementwise.c, src/gpu/tensor/rows.c).
set(ONLY_FOR_screen_wgmma "^sm_90a$")
set(ONLY_FOR_quant_gemv_fused "^sm_")
set(ONLY_FOR_quant_wgmma_block32 "^sm_90a$")
set(ONLY_FOR_quant_wgmma_kblock "^sm_90a$")
set(ONLY_FOR_search_stream "^sm_90a$")
set(ONLY_FOR_conv_fast "^sm_([89]|1[0-9])")
set(ONLY_FOR_conv_shared "^sm_([89]|1[0-9])")
set(ONLY_FOR_tensor_table "^sm_([89]|1[0-9])")
set(ONLY_FOR_tensor_pow_atan2_half "^sm_([89]|1[0-9])") # functions of the chip, and pairs of 16 bits
set(ONLY_FOR_tensor_rows_prefetch "^sm_([89]|1[0-9])") # copies in the background
set(ONLY_FOR_tensor_rows_prefetch_4096 "^sm_([89]|1[0-9])")
set(ONLY_FOR_tensor_rows_wave "^sm_([89]|1[0-9])")
function(modules_of chip result)
    set(modules "")
    foreach(module ${KERNEL_MODULES})
        if(NOT DEFINED ONLY_FOR_${module} OR chip MATCHES "${ONLY_FOR_${module}}")
            list(APPEND modules ${module})
        endif()
    endforeach()
    set(${result} ${modules} PARENT_SCOPE)
endfunction()

# ---- the emulator: the kernels as host code ----------------------------------------------------------------------------------
set(KERNEL_SOURCES "")
set(EMULATED_OPTIONS -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=)
if(WARPWAVE_SANITIZE MATCHES "thread")
    # Fibers would confuse it, and each launch runs on one thread then.
    list(APPEND EMULATED_OPTIONS -fno-sanitize=thread -DWARPWAVE_THREAD_SANITIZER)
endif()
if(WARPWAVE_TESTS)
    file(GLOB emulator_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/emulator/*.c ${CMAKE_SOURCE_DIR}/src/emulator/*.S)
    foreach(module ${KERNEL_MODULES})
        list(APPEND emulator_sources ${CMAKE_SOURCE_DIR}/src/${SOURCE_OF_${module}})
    endforeach()
    set_source_files_properties(${emulator_sources} PROPERTIES COMPILE_OPTIONS "${EMULATED_OPTIONS}")
    list(APPEND KERNEL_SOURCES ${emulator_sources})
    add_compile_definitions(WARPWAVE_EMULATOR)
endif()

# ---- the chips ---------------------------------------------------------------------------------------------------------------
# The generic ones serve the other chips of their family (src/gpu/chip.c) where the runtime loads code object version 6, ROCm 6.2 on.
set(WARPWAVE_AMD_CHIPS gfx906 gfx908 gfx90a gfx942 gfx1030 gfx1100 gfx1151 gfx1201 gfx9-generic gfx10-1-generic gfx10-3-generic
    gfx11-generic gfx12-generic CACHE STRING "AMD chips to compile kernels for")
set(WARPWAVE_NVIDIA_CHIPS sm_75 sm_80 sm_90a CACHE STRING "NVIDIA chips to compile kernels for")
set(WARPWAVE_PREBUILT_KERNELS "" CACHE PATH "A folder with NAME.CHIP.hsaco and NAME.CHIP.ptx of another build, used where they are there")
find_program(WARPWAVE_CLANG NAMES clang-19 clang-20 clang-21 clang-22 clang-18 clang-17 clang DOC "The clang that compiles kernels")
find_program(WARPWAVE_READELF NAMES llvm-readelf-19 llvm-readelf-20 llvm-readelf-21 llvm-readelf-22 llvm-readelf-18 llvm-readelf-17
             llvm-readelf DOC "Reads the notes of AMD code objects for the build check")
find_program(WARPWAVE_ZSTD NAMES zstd DOC "Packs what is embedded")
find_program(WARPWAVE_PTXAS NAMES ptxas PATHS /usr/local/cuda/bin DOC "If there: finishes PTX into cubins, and tells the build check the registers")
mark_as_advanced(WARPWAVE_CLANG WARPWAVE_READELF WARPWAVE_ZSTD WARPWAVE_PTXAS)

# One rounding for each operation that is written, denormals kept, roots and quotients correctly rounded; nothing from outside
# clang: freestanding, no vendor's headers or libraries, whatever is installed here.
set(DEVICE_OPTIONS -O3 -std=c++17 -ffreestanding -nostdlibinc -ffp-contract=off -fno-gpu-flush-denormals-to-zero -Wall -Wextra -Werror
    -I${CMAKE_SOURCE_DIR}/src)

# The register coalescer needs most of the time for reductions, which have dozens of accumulators in many branches. These bounds on how
# often it looks at long intervals halve that; the code is a hundredth longer.
set(shorter_coalescing -mllvm -large-interval-size-threshold=20 -mllvm -large-interval-freq-threshold=4)
set(AMD_OPTIONS_tensor_reduce ${shorter_coalescing})
# Likewise products of few columns, twelve formats of them; what -O3 adds is a third of the time and no register less.
set(AMD_OPTIONS_quant_gemv -O2 ${shorter_coalescing})

# How `chip` is compiled and what comes out. PTX 7.4 is the first that has the streaming load, 8.0 the first that knows sm_90a: the
# older the version, the older the driver that takes it.
# Code object version 5 is loaded by ROCm 5.2 to 7. Generic targets need version 6, about which clang-19 warns, so that warnings are
# left to the other chips.
function(chip_options chip options extension)
    if(chip MATCHES "^gfx")
        set(version -mcode-object-version=5)
        if(chip MATCHES "-generic$")
            set(version -mcode-object-version=6 -w)
        endif()
        set(${extension} hsaco PARENT_SCOPE)
        set(${options} -x hip --offload-arch=${chip} --cuda-device-only --no-gpu-bundle-output -nogpuinc -nogpulib -fuse-cuid=none
            -fhip-fp32-correctly-rounded-divide-sqrt ${DEVICE_OPTIONS} ${version} PARENT_SCOPE)
    else()
        set(version 74)
        if(chip MATCHES "^sm_(89|9)")
            set(version 80)
        elseif(chip MATCHES "^sm_1")
            set(version 86)
        endif()
        set(${extension} ptx PARENT_SCOPE)
        set(${options} -x cuda --cuda-gpu-arch=${chip} --cuda-device-only -S -nocudainc -nocudalib --cuda-path=/nonexistent
            --cuda-feature=+ptx${version} ${DEVICE_OPTIONS} PARENT_SCOPE)
    endif()
endfunction()

# Which of the chips this clang can compile for is found out by trying, once for each clang.
set(CLANG_VERSION "")
if(WARPWAVE_CLANG)
    execute_process(COMMAND ${WARPWAVE_CLANG} --version OUTPUT_VARIABLE CLANG_VERSION ERROR_QUIET)
    string(REGEX MATCH "version [0-9.]+" CLANG_VERSION "${CLANG_VERSION}")
endif()
function(chip_can_be_compiled chip result)
    string(MAKE_C_IDENTIFIER "WARPWAVE_TRIED_${WARPWAVE_CLANG}_${CLANG_VERSION}_${chip}" tried)
    if(NOT WARPWAVE_CLANG)
        set(${tried} FALSE)
    elseif(NOT DEFINED ${tried})
        chip_options(${chip} options extension)
        set(trial ${CMAKE_BINARY_DIR}/kernels/trial)
        file(WRITE ${trial}.c "#include \"kernels/simt/simt.h\"\ntypedef struct trial_args { float *to; } trial_args;\n"
             "KERNEL(trial, trial_args, 64) { args.to[thread_index()] = wave_shuffle_f32(1.0f, 0); }\n")
        execute_process(COMMAND ${WARPWAVE_CLANG} ${options} ${trial}.c -o ${trial}.${extension} RESULT_VARIABLE failed
                        OUTPUT_VARIABLE output ERROR_VARIABLE output)
        file(REMOVE ${trial}.c ${trial}.${extension})
        set(${tried} TRUE)
        if(failed)
            set(${tried} FALSE)
            string(REGEX MATCH "[^\n]*error[^\n]*" reason "${output} error: ${failed}")
            message(NOTICE "-- Kernels: ${WARPWAVE_CLANG} cannot compile for ${chip}, which is left out (${reason})")
        endif()
        set(${tried} ${${tried}} CACHE INTERNAL "")
    endif()
    set(${result} ${${tried}} PARENT_SCOPE)
endfunction()

# ---- a code object for each module and chip ------------------------------------------------------------------------------------
set(EMBEDDED_CHIPS "")
set(EMBEDDED_OBJECTS "")
set(EMBEDDED_BYTES "")
set(EMBEDDED_TABLE "")
set(KERNEL_ROWS "")
set(prebuilt_chips "")
set(KERNEL_DIR ${CMAKE_BINARY_DIR}/kernels)
file(MAKE_DIRECTORY ${KERNEL_DIR})

# Compiles one module for one chip into `object`, checks it, and leaves what the check saw beside it.
function(compile_kernels module chip object)
    chip_options(${chip} options extension)
    if(chip MATCHES "^gfx")
        list(APPEND options ${AMD_OPTIONS_${module}})
    endif()
    set(source ${CMAKE_SOURCE_DIR}/src/${SOURCE_OF_${module}})
    add_custom_command(OUTPUT ${object}
        COMMAND ${WARPWAVE_CLANG} ${options} -MD -MF ${object}.d -MT ${object} ${source} -o ${object}
        DEPENDS ${source} DEPFILE ${object}.d
        COMMENT "Compiling ${module} for ${chip}" VERBATIM)
    set(check ${CMAKE_SOURCE_DIR}/scripts/check-kernels)
    add_custom_command(OUTPUT ${object}.txt
        COMMAND ${check} row ${object} ${KERNELS_DEF} ${WARPWAVE_READELF} ${WARPWAVE_PTXAS} > ${object}.txt.new
        COMMAND ${CMAKE_COMMAND} -E rename ${object}.txt.new ${object}.txt
        DEPENDS ${object} ${check} ${CMAKE_SOURCE_DIR}/scripts/kernels-allowed COMMENT "Checking ${module} for ${chip}" VERBATIM)
endfunction()

# Finishes PTX, so that a driver need not: nothing is compiled when a module is loaded.
function(finish_kernels ptx chip cubin)
    get_filename_component(name ${cubin} NAME)
    add_custom_command(OUTPUT ${cubin}
        COMMAND ${WARPWAVE_PTXAS} -arch=${chip} ${ptx} -o ${cubin}.new
        COMMAND ${CMAKE_COMMAND} -E rename ${cubin}.new ${cubin}
        DEPENDS ${ptx} COMMENT "Finishing ${name}" VERBATIM)
endfunction()

# Does this ptxas know the chip? Found out by trying, once for each ptxas.
function(chip_can_be_finished chip result)
    string(MAKE_C_IDENTIFIER "WARPWAVE_FINISHES_${WARPWAVE_PTXAS}_${chip}" tried)
    if(NOT WARPWAVE_PTXAS OR NOT chip MATCHES "^sm_")
        set(${tried} FALSE)
    elseif(NOT DEFINED ${tried})
        set(trial ${CMAKE_BINARY_DIR}/kernels/trial)
        file(WRITE ${trial}.ptx ".version 8.0\n.target ${chip}\n.address_size 64\n")
        execute_process(COMMAND ${WARPWAVE_PTXAS} -arch=${chip} ${trial}.ptx -o ${trial}.cubin RESULT_VARIABLE failed
                        OUTPUT_QUIET ERROR_QUIET)
        file(REMOVE ${trial}.ptx ${trial}.cubin)
        set(${tried} TRUE)
        if(failed)
            set(${tried} FALSE)
        endif()
        set(${tried} ${${tried}} CACHE INTERNAL "")
    endif()
    set(${result} ${${tried}} PARENT_SCOPE)
endfunction()

# Packs a code object for embedding: a fifth of the size. One thread, so that the same object gives the same bytes.
function(pack_kernels object packed)
    get_filename_component(name ${packed} NAME)
    add_custom_command(OUTPUT ${packed}
        COMMAND ${WARPWAVE_ZSTD} -15 --single-thread --check --quiet --stdout ${object} > ${packed}.new
        COMMAND ${CMAKE_COMMAND} -E rename ${packed}.new ${packed}
        DEPENDS ${object} COMMENT "Packing ${name}" VERBATIM)
endfunction()

# One line of the table of src/kernels/embedded.c, and the bytes that it points at.
function(embed_kernels module chip format packed)
    string(MAKE_C_IDENTIFIER "embedded_${module}_${chip}_${format}" symbol)
    string(MAKE_C_IDENTIFIER ${chip} name)
    set(bytes "${symbol}:\n    .incbin \"${packed}\"\n${symbol}_end:\n${symbol}_module:\n    .asciz \"${module}\"\n")
    set(line "    .quad ${symbol}_module, chip_${name}, format_${format}, ${symbol}, ${symbol}_end - ${symbol}\n")
    set(EMBEDDED_OBJECTS ${EMBEDDED_OBJECTS} ${packed} PARENT_SCOPE)
    set(EMBEDDED_BYTES "${EMBEDDED_BYTES}${bytes}" PARENT_SCOPE)
    set(EMBEDDED_TABLE "${EMBEDDED_TABLE}${line}" PARENT_SCOPE)
endfunction()

get_filename_component(prebuilt_dir "${WARPWAVE_PREBUILT_KERNELS}" ABSOLUTE BASE_DIR ${CMAKE_SOURCE_DIR})
foreach(chip ${WARPWAVE_AMD_CHIPS} ${WARPWAVE_NVIDIA_CHIPS})
    if(NOT WARPWAVE_ZSTD)
        break()
    endif()
    chip_options(${chip} options extension)
    modules_of(${chip} modules)
    set(prebuilt FALSE)
    if(WARPWAVE_PREBUILT_KERNELS)
        set(prebuilt TRUE)
        foreach(module ${modules})
            if(NOT EXISTS ${prebuilt_dir}/${module}.${chip}.${extension})
                set(prebuilt FALSE)
            endif()
        endforeach()
    endif()
    if(prebuilt)
        list(APPEND prebuilt_chips ${chip})
    else()
        chip_can_be_compiled(${chip} possible)
        if(NOT possible)
            continue()
        endif()
    endif()
    list(APPEND EMBEDDED_CHIPS ${chip})
    chip_can_be_finished(${chip} finished)
    foreach(module ${modules})
        set(object ${KERNEL_DIR}/${module}.${chip}.${extension})
        set(packed ${object}.zst)
        if(prebuilt)
            set(object ${prebuilt_dir}/${module}.${chip}.${extension})
        endif()
        if(prebuilt AND EXISTS ${object}.zst)
            set(packed ${object}.zst)
        elseif(prebuilt)
            pack_kernels(${object} ${packed})
        else()
            compile_kernels(${module} ${chip} ${object})
            list(APPEND KERNEL_ROWS ${object}.txt)
            pack_kernels(${object} ${packed})
        endif()
        embed_kernels(${module} ${chip} ${extension} ${packed})
        if(finished)
            set(cubin ${KERNEL_DIR}/${module}.${chip}.cubin)
            if(prebuilt AND EXISTS ${prebuilt_dir}/${module}.${chip}.cubin.zst)
                set(cubin ${prebuilt_dir}/${module}.${chip}.cubin)
            else()
                finish_kernels(${object} ${chip} ${cubin})
                pack_kernels(${cubin} ${cubin}.zst)
            endif()
            embed_kernels(${module} ${chip} cubin ${cubin}.zst)
        endif()
    endforeach()
endforeach()

# ---- embedded: an assembler file that takes the objects in and has the tables of src/kernels/embedded.c -------------------------
set(chip_names "format_hsaco:\n    .asciz \"HSACO\"\nformat_ptx:\n    .asciz \"PTX\"\nformat_cubin:\n    .asciz \"cubin\"\n")
set(chip_table "")
foreach(chip ${EMBEDDED_CHIPS})
    string(MAKE_C_IDENTIFIER ${chip} name)
    string(APPEND chip_names "chip_${name}:\n    .asciz \"${chip}\"\n")
    string(APPEND chip_table "    .quad chip_${name}\n")
endforeach()

# The texts as well, for the compiler that an AMD runtime brings: src/gpu/driver/hiprtc.c.
file(GLOB_RECURSE text_paths CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/src/kernels/*.h
     ${CMAKE_SOURCE_DIR}/src/arithmetic/*.h ${CMAKE_SOURCE_DIR}/src/arithmetic/*.def)
list(FILTER text_paths EXCLUDE REGEX "kernels/(simt/(simt_nvidia|simt_emulated|emulated_kernel)|embedded|arguments)\\.h$")
modules_of(gfx modules)
foreach(module ${modules})
    list(APPEND text_paths ${SOURCE_OF_${module}})
endforeach()
set(text_bytes "")
set(text_table "")
foreach(path ${text_paths})
    string(MAKE_C_IDENTIFIER "text_${path}" symbol)
    string(APPEND text_bytes "${symbol}:\n    .incbin \"${CMAKE_SOURCE_DIR}/src/${path}\"\n    .byte 0\n"
           "${symbol}_name:\n    .asciz \"${path}\"\n")
    string(APPEND text_table "    .quad ${symbol}_name, ${symbol}\n")
    list(APPEND EMBEDDED_OBJECTS ${CMAKE_SOURCE_DIR}/src/${path})
endforeach()
file(CONFIGURE OUTPUT ${KERNEL_DIR}/embedded.S CONTENT "    .section .rodata
${EMBEDDED_BYTES}${chip_names}${text_bytes}
    .section .data.rel.ro, \"aw\"
    .balign 8
    .globl embedded_table, embedded_chips, embedded_source_table
    .hidden embedded_table, embedded_chips, embedded_source_table
embedded_table:
${EMBEDDED_TABLE}    .quad 0, 0, 0, 0, 0
embedded_chips:
${chip_table}    .quad 0
embedded_source_table:
${text_table}    .quad 0, 0
    .section .note.GNU-stack, \"\", %progbits
" @ONLY)
set_source_files_properties(${KERNEL_DIR}/embedded.S PROPERTIES OBJECT_DEPENDS "${EMBEDDED_OBJECTS}")
list(APPEND KERNEL_SOURCES ${CMAKE_SOURCE_DIR}/src/kernels/embedded.c ${KERNEL_DIR}/embedded.S)

# ---- what was built for what ---------------------------------------------------------------------------------------------------
if(KERNEL_ROWS)
    add_custom_command(OUTPUT ${KERNEL_DIR}/resources.txt
        COMMAND ${CMAKE_SOURCE_DIR}/scripts/check-kernels table ${KERNEL_DIR}/resources.txt ${KERNEL_ROWS}
        DEPENDS ${KERNEL_ROWS} ${CMAKE_SOURCE_DIR}/scripts/check-kernels VERBATIM)
    add_custom_target(kernel_resources ALL DEPENDS ${KERNEL_DIR}/resources.txt)
endif()
string(REPLACE ";" " " modules_text "${KERNEL_MODULES}")
string(REPLACE ";" " " chips_text "${EMBEDDED_CHIPS}")
if(EMBEDDED_CHIPS AND KERNEL_MODULES)
    message(NOTICE "-- Kernels: ${modules_text}; for ${chips_text}")
    if(prebuilt_chips)
        string(REPLACE ";" " " prebuilt_text "${prebuilt_chips}")
        message(NOTICE "-- Kernels: taken from ${prebuilt_dir}: ${prebuilt_text}")
    endif()
elseif(KERNEL_MODULES)
    message(NOTICE "-- Kernels: none, the library is for CPUs only: no chips were asked for, or no zstd was found, or no clang that "
                   "compiles for GPUs (Debian: zstd clang-19 lld-19 llvm-19) and no prebuilt kernels in WARPWAVE_PREBUILT_KERNELS")
endif()
