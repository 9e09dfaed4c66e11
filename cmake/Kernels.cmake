# Kernels: each module of src/kernels/kernels.def is compiled for every chip by clang, without any vendor's SDK, and the results
# are embedded in the library; with tests, the host's compiler makes the emulated form of the same files as well (testing/CMakeLists.txt).
set(KERNELS_DEF ${CMAKE_SOURCE_DIR}/src/kernels/kernels.def)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${KERNELS_DEF})
file(STRINGS ${KERNELS_DEF} entries REGEX "^KERNEL_ENTRY\\(")
set(KERNEL_MODULES "")
foreach(entry ${entries})
    string(REGEX REPLACE "^KERNEL_ENTRY\\( *([a-z0-9_]+).*" "\\1" module "${entry}")
    list(APPEND KERNEL_MODULES ${module})
endforeach()
list(REMOVE_DUPLICATES KERNEL_MODULES)

# A module is the file of its name in src/kernels/CMakeLists.txt: SOURCE_OF_module, from src/.
foreach(file ${KERNEL_FILES})
    get_filename_component(module ${file} NAME_WE)
    set(SOURCE_OF_${module} kernels/${file})
endforeach()

# Modules that are written around what few chips have, and the chips they are compiled for; the others have another way
# (src/gpu/search/screen_round.c, src/gpu/search/scan.c, src/gpu/tensor/conv.c, src/gpu/tensor/matmul_fast.c, src/gpu/tensor/elementwise.c, src/gpu/tensor/rows.c).
set(ONLY_FOR_screen_wgmma "^sm_90a$") # wgmma and the copy engine; CDNA has screen_mfma for it, with rows in registers
# A single column. NVIDIA's form is written around the copy engine. AMD's codes the column as it goes: no slower by the count
# than the product alone behind a kernel that codes (MI210, 4096 x 14336: q4_0 20.2 us against 20.9, q4_K 20.2 against 21.2), with a
# launch less. Chips of gfx9 without MFMA have a kernel that codes: their form of four waves, executed as gfx90a's instructions and counted
# at an MI210's rates, takes 34.7 us instead of 31.2 (q4_0), 41.8 instead of 38.9 (q8_0), 32.7 instead of 27.9 (q4_K), 58.2 instead of 54.6.
set(ONLY_FOR_quant_gemv_one "^gfx($|908$|90a$|942$|950$|9-4|1)|^sm_90a$")
set(ONLY_FOR_quant_wgmma_block32 "^sm_90a$") # wgmma, an instruction of sm_90a; AMD's matrix units are in quant_tile
set(ONLY_FOR_quant_wgmma_kblock "^sm_90a$")  # likewise
set(ONLY_FOR_search_stream "^sm_90a$") # waves that only feed a ring by the copy engine; on CDNA instructions bind search_tile, 2 in 100 of which copy
# Matrix units that multiply floats: MFMA and WMMA; of f32 only MFMA. "gfx" alone is any of them, for the texts below.
set(ONLY_FOR_matmul_fast "^gfx($|906$|908$|90a$|942$|950$|9-4|1030$|10-3|11|12(0|-))") # gfx906 and gfx10.3 by v_dot2_f32_f16; others are canonical; NVIDIA's have cuBLAS
set(ONLY_FOR_matmul_pack "${ONLY_FOR_matmul_fast}")
set(ONLY_FOR_matmul_fast_bf16 "^gfx($|908$|90a$|942$|950$|9-4|11|12(0|-))") # bf16 without matrix units is f32's fma, as in canonical order
set(ONLY_FOR_conv_im2col "${ONLY_FOR_matmul_fast_bf16}")
set(ONLY_FOR_matmul_fast_f32 "^gfx($|908$|90a$|942$|950$|9-4)") # WMMA has no f32
set(ONLY_FOR_tensor_sort_registers "^gfx($|908$|90a$|942$|950$|9-4)") # f64 as fast as f32, or half as fast; elsewhere a sixteenth or less
set(ONLY_FOR_screen_mfma "^gfx($|908$|90a$|942$|950$|9-4)") # bytes by MFMA, rows in registers
set(ONLY_FOR_conv_fast "^sm_([89]|1[0-9])") # mma.sync; AMD's chips write out what outputs see (conv_im2col) and have matmul_fast multiply it
set(ONLY_FOR_conv_shared "^gfx($|908$|90a$|942$|950$|9-4|11|12(0|-))|^sm_([89]|1[0-9])") # mma.sync, MFMA or WMMA; other chips: canonical
set(ONLY_FOR_conv_shared_f32 "^gfx($|908$|90a$|942$|950$|9-4)|^sm_([89]|1[0-9])") # mma.sync of TF32, MFMA of f32; WMMA has none
# All results of a function of 16 bits are 128 KiB of shared memory, which no AMD chip has: 64. RDNA's computed ones take the memory's time
# (98 to 100% of it, calculated: docs/evidence/amd-performance.md), and so do CDNA's that have a half form (exp, log, gelu: 98 to 100%).
set(ONLY_FOR_tensor_table "^sm_([89]|1[0-9])")
# Bounds by functions of the chip, and pairs of 16 bits. RDNA's pow and atan2 take the memory's time without (100%), CDNA's nearly (81 to 100%): their
# bounds of powers are by polynomials, because no manual tells the errors of AMD's own logarithm and power of two.
set(ONLY_FOR_tensor_pow_atan2_half "^sm_([89]|1[0-9])")
# Copies in the background. AMD's compute units have enough waves to keep rows on their way without (100% of the memory's time for 16-bit rows of
# 4096, calculated), and their copies would go through registers.
set(ONLY_FOR_tensor_rows_prefetch "^sm_([89]|1[0-9])")
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
set(EMULATED_OPTIONS -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=)
if(NOT WARPWAVE_SANITIZE)
    # Half of -O3's compile time; only tests run them. There gcc 12 takes a struct that is filled in a loop for uninitialized.
    list(APPEND EMULATED_OPTIONS -O2 -Wno-unknown-warning-option -Wno-maybe-uninitialized) # clang-tidy does not know the second
endif()
if(WARPWAVE_SANITIZE MATCHES "thread")
    # Fibers would confuse it, and each launch runs on one thread then.
    list(APPEND EMULATED_OPTIONS -fno-sanitize=thread -DWARPWAVE_THREAD_SANITIZER)
endif()

# ---- the chips ---------------------------------------------------------------------------------------------------------------
# scripts/kernels/chips.sh has the list, and asks the drivers of this machine for `auto`. `make` passes its word CHIPS on each time.
set(WARPWAVE_CHIPS "auto" CACHE STRING "GPU chips to compile kernels for: auto (those of this machine), all, none, or names as in scripts/kernels/chips.sh")
set(WARPWAVE_PREBUILT_KERNELS "" CACHE PATH "A folder with NAME.CHIP.hsaco and NAME.CHIP.ptx of another build, used where they are there")
set(WARPWAVE_CLANG "" CACHE STRING "The clang that compiles kernels; the first that can if empty")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/scripts/kernels/chips.sh ${CMAKE_SOURCE_DIR}/scripts/kernels/find-clang.sh)
execute_process(COMMAND ${CMAKE_SOURCE_DIR}/scripts/kernels/chips.sh ${WARPWAVE_CHIPS} OUTPUT_VARIABLE chips ERROR_VARIABLE why RESULT_VARIABLE failed
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_STRIP_TRAILING_WHITESPACE)
if(failed)
    message(FATAL_ERROR "${why}")
elseif(why)
    message(NOTICE "-- ${why}")
endif()
separate_arguments(CHIPS UNIX_COMMAND "${chips}")

# How a chip is compiled for: chip_options(), shared with callers' own kernels.
set(WARPWAVE_KERNEL_INCLUDE ${CMAKE_SOURCE_DIR}/src)
include(${CMAKE_CURRENT_LIST_DIR}/OwnKernels.cmake)

# The register coalescer needs most of the time for reductions, which have dozens of accumulators in many branches. These bounds on how
# often it looks at long intervals halve that; the code is a hundredth longer.
set(shorter_coalescing -mllvm -large-interval-size-threshold=20 -mllvm -large-interval-freq-threshold=4)
set(AMD_OPTIONS_tensor_reduce ${shorter_coalescing})
# Likewise products of few columns, fifteen formats of them; what -O3 adds is a third of the time and no register less.
set(AMD_OPTIONS_quant_gemv -O2 ${shorter_coalescing})
set(AMD_OPTIONS_quant_gemv_one ${AMD_OPTIONS_quant_gemv})

# NVIDIA's chips have a clang of their own, NVIDIA_CLANG, 21 at the latest: with what clang 22 writes for quant_encode_block32, an H200 encodes
# q8_K wrongly (seen on 2026-11-19; clang 19 is right).
set(NVIDIA_CLANG_MAJOR_MAX 21)
function(clang_of chip clang version)
    if(chip MATCHES "^sm_")
        set(${clang} "${NVIDIA_CLANG}" PARENT_SCOPE)
        set(${version} "${NVIDIA_CLANG_VERSION}" PARENT_SCOPE)
    else()
        set(${clang} "${KERNEL_CLANG}" PARENT_SCOPE)
        set(${version} "${KERNEL_CLANG_VERSION}" PARENT_SCOPE)
    endif()
endfunction()

# Which clang: a clang that cannot compile for GPUs is none. All that are installed are looked at anew by each configure, and a
# chip that one could not compile for is tried again, because clang or its linker may have been installed in the meantime.
function(chip_can_be_compiled chip result)
    clang_of(${chip} clang version)
    string(MAKE_C_IDENTIFIER "WARPWAVE_COMPILES_${clang}_${version}_${chip}" tried)
    if(NOT clang)
        set(${tried} FALSE)
    elseif(NOT ${tried})
        chip_options(${chip} options extension)
        set(trial ${CMAKE_BINARY_DIR}/kernels/trial)
        file(WRITE ${trial}.c "#include \"kernels/simt/simt.h\"\ntypedef struct trial_args { float *to; } trial_args;\n"
             "KERNEL(trial, trial_args, 64) { args.to[thread_index()] = wave_shuffle_f32(1.0f, 0); }\n")
        execute_process(COMMAND ${clang} ${options} ${trial}.c -o ${trial}.${extension} RESULT_VARIABLE failed
                        OUTPUT_QUIET ERROR_QUIET)
        file(REMOVE ${trial}.c ${trial}.${extension})
        set(${tried} FALSE)
        if(failed EQUAL 0)
            set(${tried} TRUE CACHE INTERNAL "")
            set(${tried} TRUE)
        endif()
    endif()
    set(${result} ${${tried}} PARENT_SCOPE)
endfunction()

# The first clang that compiles for every wanted chip of a family, or else the one that compiles for most: CLANG and CLANG_VERSION.
function(choose_clang family major_max clang_name)
    set(best_count 0)
    set(best "")
    set(best_version "")
    set(candidates ${WARPWAVE_CLANG})
    if(NOT candidates)
        execute_process(COMMAND ${CMAKE_SOURCE_DIR}/scripts/kernels/find-clang.sh OUTPUT_VARIABLE candidates OUTPUT_STRIP_TRAILING_WHITESPACE)
        string(REPLACE "\n" ";" candidates "${candidates}")
    endif()
    set(wanted ${CHIPS})
    list(FILTER wanted INCLUDE REGEX "${family}")
    list(LENGTH wanted wanted_count)
    foreach(candidate ${candidates})
        if(best_count EQUAL wanted_count)
            break()
        endif()
        find_program(found ${candidate} NO_CACHE NO_CMAKE_SYSTEM_PATH)
        set(${clang_name} "${found}")
        unset(found)
        if(NOT ${clang_name})
            continue()
        endif()
        execute_process(COMMAND ${${clang_name}} --version OUTPUT_VARIABLE said ERROR_QUIET)
        string(REGEX MATCH "[^\n(]*version [0-9.]+" ${clang_name}_VERSION "${said}")
        string(REGEX MATCH "[0-9]+" major "${${clang_name}_VERSION}")
        if(major GREATER major_max)
            continue()
        endif()
        set(count 0)
        foreach(chip ${wanted})
            chip_can_be_compiled(${chip} possible)
            if(possible)
                math(EXPR count "${count} + 1")
            endif()
        endforeach()
        if(count GREATER best_count)
            set(best_count ${count})
            set(best "${${clang_name}}")
            set(best_version "${${clang_name}_VERSION}")
        endif()
    endforeach()
    set(${clang_name} "${best}" PARENT_SCOPE)
    set(${clang_name}_VERSION "${best_version}" PARENT_SCOPE)
endfunction()
choose_clang("^gfx" 999 KERNEL_CLANG)
choose_clang("^sm_" ${NVIDIA_CLANG_MAJOR_MAX} NVIDIA_CLANG)

# ---- a code object for each module and chip ------------------------------------------------------------------------------------
set(EMBEDDED_CHIPS "")
set(EMBEDDED_OBJECTS "")
set(EMBEDDED_BYTES "")
set(EMBEDDED_TABLE "")
set(KERNEL_ROWS "")
set(prebuilt_chips "")
set(KERNEL_DIR ${CMAKE_BINARY_DIR}/kernels)
file(MAKE_DIRECTORY ${KERNEL_DIR})

# tools/check-kernels.c, which checks and packs what clang made; it runs on the machine that builds.
set(CHECK_KERNELS ${KERNEL_DIR}/check-kernels)
set(KERNELS_ALLOWED ${CMAKE_SOURCE_DIR}/scripts/kernels/kernels-allowed)
if(CMAKE_CROSSCOMPILING)
    find_program(WARPWAVE_BUILD_CC NAMES cc gcc clang DOC "Compiles programs that run while building")
    set(compile_check ${WARPWAVE_BUILD_CC} -O2 -o ${CHECK_KERNELS} ${CMAKE_SOURCE_DIR}/tools/check-kernels.c -lzstd)
else()
    set(compile_check ${CMAKE_C_COMPILER} -O2 -Wall -Wextra -I${ZSTD_INCLUDE} -o ${CHECK_KERNELS}
        ${CMAKE_SOURCE_DIR}/tools/check-kernels.c ${ZSTD_LIBRARY})
endif()
add_custom_command(OUTPUT ${CHECK_KERNELS} COMMAND ${compile_check} DEPENDS ${CMAKE_SOURCE_DIR}/tools/check-kernels.c
                   COMMENT "Compiling check-kernels" VERBATIM)
add_custom_target(check_kernels DEPENDS ${CHECK_KERNELS})

# Chips that run the very instructions of another. A generic target is so where LLVM names no restriction for its family; the assembler,
# which knows what the family has in common, refuses anything else. Such modules are compiled once, to assembly, and assembled for both.
set(COMPILED_AS_gfx1030 gfx1030)
set(COMPILED_AS_gfx10-3-generic gfx1030)
set(COMPILED_AS_gfx1201 gfx1201)
set(COMPILED_AS_gfx12-generic gfx1201)
# gfx908 has every instruction of gfx906, and the compiler writes the same code for both but where matrices are multiplied by its own
# instructions, or functions differ: those modules it gets for itself.
set(COMPILED_AS_gfx906 gfx906)
set(COMPILED_AS_gfx908 gfx906)
set(OWN_CODE_gfx908 conv_shared conv_shared_f32 matmul_fast matmul_fast_bf16 matmul_fast_f32 quant_tile_activations quant_gemv quant_gemv_one quant_tile screen_batch screen_lists screen_mfma screen_small_batch tensor_binary tensor_unary)

# The assembly of a module for a chip: once, for whoever asks first.
set_property(GLOBAL PROPERTY KERNEL_ASSEMBLIES "")
function(assembly_of module chip options result)
    set(assembly ${KERNEL_DIR}/${module}.${chip}.s)
    set(${result} ${assembly} PARENT_SCOPE)
    get_property(made GLOBAL PROPERTY KERNEL_ASSEMBLIES)
    if(NOT assembly IN_LIST made)
        set_property(GLOBAL APPEND PROPERTY KERNEL_ASSEMBLIES ${assembly})
        set(source ${CMAKE_SOURCE_DIR}/src/${SOURCE_OF_${module}})
        add_custom_command(OUTPUT ${assembly}
            COMMAND ${KERNEL_CLANG} ${options} -S -Xclang -dependency-file -Xclang ${assembly}.d -Xclang -MT -Xclang ${assembly} ${source} -o ${assembly}
            DEPENDS ${source} DEPFILE ${assembly}.d COMMENT "Compiling ${module} for ${chip}" VERBATIM)
    endif()
endfunction()

# From version 20 on, clang's scheduler moves loads together on RDNA until registers are spilled. Without that, and with its own count of
# pressure, quant_tile takes fewer registers than by clang 19.
set(RDNA_OPTIONS_FROM_20_quant_tile -mllvm -amdgpu-use-amdgpu-trackers=1 -mllvm -misched-cluster=0)

# What a module is compiled with for a chip by a version of clang, besides chip_options().
function(module_options module chip version result)
    set(options "")
    if(chip MATCHES "^gfx")
        list(APPEND options ${AMD_OPTIONS_${module}})
    endif()
    if(chip MATCHES "^gfx1" AND version GREATER_EQUAL 20)
        list(APPEND options ${RDNA_OPTIONS_FROM_20_${module}})
    endif()
    set(${result} ${options} PARENT_SCOPE)
endfunction()

# Every module of every AMD chip with its options, whatever is built here: a part of the hash of its source (scripts/kernels/code_evidence.py).
execute_process(COMMAND ${CMAKE_SOURCE_DIR}/scripts/kernels/chips.sh all OUTPUT_VARIABLE every_chip OUTPUT_STRIP_TRAILING_WHITESPACE)
separate_arguments(every_chip UNIX_COMMAND "${every_chip}")
list(FILTER every_chip INCLUDE REGEX "^gfx")
set(options_text "")
foreach(chip ${every_chip})
    chip_options(${chip} options extension)
    modules_of(${chip} modules)
    foreach(module ${modules})
        module_options(${module} ${chip} 22 more)
        string(JOIN " " line ${chip} ${module} ${options} ${more})
        string(APPEND options_text "${line}\n")
    endforeach()
endforeach()
file(CONFIGURE OUTPUT ${KERNEL_DIR}/modules.txt CONTENT "${options_text}" @ONLY)

# Compiles one module for one chip into `object`, checks and packs it, in one step; OBJECT.txt is what the check saw. Another check
# does not compile anew what passed an earlier one: the build depends on the target, not on its file.
function(compile_kernels module chip object)
    set(compiled_as "")
    if(NOT module IN_LIST OWN_CODE_${chip})
        set(compiled_as ${COMPILED_AS_${chip}})
    endif()
    if(compiled_as)
        chip_options(${compiled_as} options extension)
    else()
        chip_options(${chip} options extension)
    endif()
    clang_of(${chip} clang version)
    string(REGEX MATCH "[0-9]+" clang_major "${version}")
    module_options(${module} ${chip} "${clang_major}" more)
    list(APPEND options ${more})
    set(check ${CHECK_KERNELS} ${object} ${KERNELS_DEF} ${KERNELS_ALLOWED})
    set(outputs ${object} ${object}.zst ${object}.txt)
    if(compiled_as)
        assembly_of(${module} ${compiled_as} "${options}" assembly)
        set(version 5)
        if(chip MATCHES "-generic$")
            set(version 6)
        endif()
        add_custom_command(OUTPUT ${outputs}
            COMMAND sed -e s/amdhsa--${compiled_as}/amdhsa--${chip}/ -e "s/^\t.amdhsa_code_object_version .*/\t.amdhsa_code_object_version ${version}/"
                    ${assembly} > ${object}.s
            COMMAND ${KERNEL_CLANG} -w -target amdgcn-amd-amdhsa -mcpu=${chip} -mcode-object-version=${version} -x assembler ${object}.s -o ${object}
            COMMAND ${CMAKE_COMMAND} -E rm ${object}.s
            COMMAND ${check}
            DEPENDS ${assembly} check_kernels COMMENT "Assembling ${module} for ${chip}" VERBATIM)
    else()
        set(source ${CMAKE_SOURCE_DIR}/src/${SOURCE_OF_${module}})
        add_custom_command(OUTPUT ${outputs}
            COMMAND ${clang} ${options} -Xclang -dependency-file -Xclang ${object}.d -Xclang -MT -Xclang ${object} ${source} -o ${object}
            COMMAND ${check}
            DEPENDS ${source} check_kernels DEPFILE ${object}.d COMMENT "Compiling ${module} for ${chip}" VERBATIM)
    endif()
endfunction()

# Packs a code object of another build.
function(pack_kernels object packed)
    get_filename_component(name ${packed} NAME_WLE)
    add_custom_command(OUTPUT ${packed}
        COMMAND ${CMAKE_COMMAND} -E copy ${object} ${KERNEL_DIR}/${name}
        COMMAND ${CHECK_KERNELS} ${KERNEL_DIR}/${name} ${KERNELS_DEF} ${KERNELS_ALLOWED}
        DEPENDS ${object} check_kernels COMMENT "Packing ${name}" VERBATIM)
endfunction()

# NVIDIA's own assembler, where it is installed, finishes PTX into code that no driver has to compile when it is loaded, and tells
# registers and spills, which PTX does not have.
find_program(WARPWAVE_PTXAS NAMES ptxas PATHS /usr/local/cuda/bin DOC "If there: finishes PTX into cubins, and tells their registers")
mark_as_advanced(WARPWAVE_PTXAS)

# Does this ptxas know the chip? Found out by trying, once for each ptxas.
function(chip_can_be_finished chip result)
    string(MAKE_C_IDENTIFIER "WARPWAVE_FINISHES_${WARPWAVE_PTXAS}_${chip}" tried)
    if(NOT WARPWAVE_PTXAS OR NOT chip MATCHES "^sm_")
        set(${tried} FALSE)
    elseif(NOT DEFINED ${tried})
        set(trial ${KERNEL_DIR}/trial)
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

# Makes `cubin` of PTX, checks its registers and packs it, in one step.
function(finish_kernels chip ptx cubin)
    get_filename_component(name ${cubin} NAME)
    add_custom_command(OUTPUT ${cubin} ${cubin}.zst ${cubin}.ptxas.txt
        COMMAND ${WARPWAVE_PTXAS} -v -arch=${chip} ${ptx} -o ${cubin} > ${cubin}.ptxas 2>&1
        COMMAND ${CHECK_KERNELS} ${ptx} ${KERNELS_DEF} ${KERNELS_ALLOWED} ${cubin}.ptxas ${cubin}
        DEPENDS ${ptx} ${KERNELS_ALLOWED} check_kernels COMMENT "Finishing ${name}" VERBATIM)
endfunction()

# The Python wheel has a limit. There kernels are packed harder, and against those of a chip with almost the same code, where there is one.
set(PACKED_AGAINST_gfx908 gfx906)
set(PACKED_AGAINST_gfx942 gfx90a)
set(PACKED_AGAINST_gfx950 gfx90a)
set(PACKED_AGAINST_gfx9-4-generic gfx90a)
set(PACKED_AGAINST_gfx1250 gfx1201)
set(PACKED_AGAINST_gfx1151 gfx1100)
set(PACKED_AGAINST_gfx9-generic gfx906)
set(PACKED_AGAINST_gfx10-1-generic gfx1030)
set(PACKED_AGAINST_gfx10-3-generic gfx1030)
set(PACKED_AGAINST_gfx11-generic gfx1100)
set(PACKED_AGAINST_gfx12-generic gfx1201)
set(PACKED_AGAINST_sm_80 sm_75)
set(PACKED_AGAINST_sm_90a sm_75)
if(WARPWAVE_WHEEL)
    set(PACK_KERNELS ${KERNEL_DIR}/pack-kernels)
    add_custom_command(OUTPUT ${PACK_KERNELS}
        COMMAND ${CMAKE_C_COMPILER} -O2 -Wall -Wextra -I${ZSTD_INCLUDE} -o ${PACK_KERNELS} ${CMAKE_SOURCE_DIR}/tools/pack-kernels.c ${ZSTD_LIBRARY}
        DEPENDS ${CMAKE_SOURCE_DIR}/tools/pack-kernels.c COMMENT "Compiling pack-kernels" VERBATIM)
endif()

# One line of the table of src/kernels/embedded.c, and the bytes that it points at: OBJECT.zst, or for a wheel what is made of OBJECT.
function(embed_kernels module chip format object)
    string(MAKE_C_IDENTIFIER "embedded_${module}_${chip}_${format}" symbol)
    string(MAKE_C_IDENTIFIER ${chip} name)
    set(packed ${object}.zst)
    set(base "0, 0")
    if(WARPWAVE_WHEEL)
        set(packed ${KERNEL_DIR}/${module}.${chip}.${format}.wheel.zst)
        set(against ${PACKED_AGAINST_${chip}})
        set(base_object "")
        if(against)
            set(base_object ${OBJECT_OF_${module}.${against}.${format}})
        endif()
        if(base_object)
            string(MAKE_C_IDENTIFIER "embedded_${module}_${against}_${format}" base_symbol)
            set(base "${base_symbol}, ${base_symbol}_end - ${base_symbol}")
        endif()
        add_custom_command(OUTPUT ${packed} COMMAND ${PACK_KERNELS} ${packed} ${object} ${base_object}
                           DEPENDS ${PACK_KERNELS} ${object} ${base_object} COMMENT "Packing ${module} for ${chip}" VERBATIM)
        set(OBJECT_OF_${module}.${chip}.${format} ${object} PARENT_SCOPE)
    endif()
    set(bytes "${symbol}:\n    .incbin \"${packed}\"\n${symbol}_end:\n${symbol}_module:\n    .asciz \"${module}\"\n")
    set(line "    .quad ${symbol}_module, chip_${name}, format_${format}, ${symbol}, ${symbol}_end - ${symbol}, ${base}\n")
    set(EMBEDDED_OBJECTS ${EMBEDDED_OBJECTS} ${packed} PARENT_SCOPE)
    set(EMBEDDED_BYTES "${EMBEDDED_BYTES}${bytes}" PARENT_SCOPE)
    set(EMBEDDED_TABLE "${EMBEDDED_TABLE}${line}" PARENT_SCOPE)
endfunction()

get_filename_component(prebuilt_dir "${WARPWAVE_PREBUILT_KERNELS}" ABSOLUTE BASE_DIR ${CMAKE_SOURCE_DIR})
set(left_out "")
foreach(chip ${CHIPS})
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
            list(APPEND left_out ${chip})
            continue()
        endif()
    endif()
    list(APPEND EMBEDDED_CHIPS ${chip})
    chip_can_be_finished(${chip} finished)
    foreach(module ${modules})
        set(object ${module}.${chip}.${extension})
        if(prebuilt AND EXISTS ${prebuilt_dir}/${object}.zst)
            set(object ${prebuilt_dir}/${object})
        elseif(prebuilt)
            pack_kernels(${prebuilt_dir}/${object} ${KERNEL_DIR}/${object}.zst)
            set(object ${KERNEL_DIR}/${object})
        else()
            set(object ${KERNEL_DIR}/${object})
            compile_kernels(${module} ${chip} ${object})
            if(NOT finished)
                list(APPEND KERNEL_ROWS ${object}.txt)
            endif()
        endif()
        embed_kernels(${module} ${chip} ${extension} ${object})
        set(cubin ${KERNEL_DIR}/${module}.${chip}.cubin)
        if(prebuilt AND EXISTS ${prebuilt_dir}/${module}.${chip}.cubin.zst)
            embed_kernels(${module} ${chip} cubin ${prebuilt_dir}/${module}.${chip}.cubin)
        elseif(finished AND NOT prebuilt)
            finish_kernels(${chip} ${object} ${cubin})
            list(APPEND KERNEL_ROWS ${cubin}.ptxas.txt)
            embed_kernels(${module} ${chip} cubin ${cubin})
        endif()
    endforeach()
endforeach()

# ---- what is said of it ----------------------------------------------------------------------------------------------------------
# One line. Where there are no kernels it says why and what to type, and the library says the same (src/kernels/embedded.h).
string(REPLACE ";" " " chips_text "${EMBEDDED_CHIPS}")
string(REPLACE ";" " " left_out_text "${left_out}")
list(LENGTH KERNEL_MODULES module_count)
set(KERNEL_ABSENCE "")
set(KERNEL_COMPILER "")
if(left_out)
    execute_process(COMMAND ${CMAKE_SOURCE_DIR}/scripts/setup.sh --line kernels OUTPUT_VARIABLE line OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
if(EMBEDDED_CHIPS)
    set(line_said "${module_count} modules for ${chips_text}")
    if(left_out)
        string(APPEND line_said "; not for ${left_out_text}: no clang here compiles for them; to have them: ${line}")
    elseif(prebuilt_chips STREQUAL EMBEDDED_CHIPS)
        string(APPEND line_said ", taken from ${prebuilt_dir}")
    endif()
    # Which compiler: for `warpwave version`, and in a file for builds that take these kernels.
    if(NOT prebuilt_chips STREQUAL EMBEDDED_CHIPS)
        set(KERNEL_COMPILER "")
        if(KERNEL_CLANG)
            set(KERNEL_COMPILER "${KERNEL_CLANG_VERSION} (${KERNEL_CLANG})")
        endif()
        if(NVIDIA_CLANG AND NOT NVIDIA_CLANG STREQUAL KERNEL_CLANG)
            string(APPEND KERNEL_COMPILER "${NVIDIA_CLANG_VERSION} (${NVIDIA_CLANG})")
            string(REPLACE ")Debian" "), Debian" KERNEL_COMPILER "${KERNEL_COMPILER}")
        endif()
        string(APPEND line_said ", by ${KERNEL_COMPILER}")
    elseif(EXISTS ${prebuilt_dir}/compiler.txt)
        file(READ ${prebuilt_dir}/compiler.txt KERNEL_COMPILER)
    else()
        set(KERNEL_COMPILER "a clang that another build chose")
    endif()
    file(WRITE ${KERNEL_DIR}/compiler.txt "${KERNEL_COMPILER}")
elseif(left_out)
    set(KERNEL_ABSENCE "no clang that compiles for ${left_out_text} was found when it was built; to have them: ${line} && make build")
elseif("${WARPWAVE_CHIPS}" STREQUAL "none")
    set(KERNEL_ABSENCE "it was built with CHIPS=none; for every GPU: make build CHIPS=all")
else()
    set(KERNEL_ABSENCE "no GPU was found when it was built; for every GPU: make build CHIPS=all")
endif()
if(KERNEL_ABSENCE)
    set(line_said "none, this library is for CPUs: ${KERNEL_ABSENCE}")
endif()
message(NOTICE "-- GPU kernels: ${line_said}")
string(REPLACE "\\" "\\\\" KERNEL_ABSENCE "${KERNEL_ABSENCE}")
string(REPLACE "\"" "\\\"" KERNEL_ABSENCE "${KERNEL_ABSENCE}")

# ---- embedded: an assembler file that takes the objects in and has the tables of src/kernels/embedded.c -------------------------
set(chip_names "format_hsaco:\n    .asciz \"HSACO\"\nformat_ptx:\n    .asciz \"PTX\"\nformat_cubin:\n    .asciz \"cubin\"\n")
set(chip_table "")
foreach(chip ${EMBEDDED_CHIPS})
    string(MAKE_C_IDENTIFIER ${chip} name)
    string(APPEND chip_names "chip_${name}:\n    .asciz \"${chip}\"\n")
    string(APPEND chip_table "    .quad chip_${name}\n")
endforeach()

# The texts as well, for the compiler that an AMD runtime brings: src/gpu/driver/hiprtc.c.
set(text_paths "")
foreach(file ${KERNEL_HEADERS})
    list(APPEND text_paths kernels/${file})
endforeach()
foreach(file ${ARITHMETIC_HEADERS})
    list(APPEND text_paths arithmetic/${file})
endforeach()
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
file(CONFIGURE OUTPUT ${KERNEL_DIR}/embedded.S CONTENT "#include \"base/system/elf_notes.h\"
    .section .rodata
embedded_absence_text:
    .asciz \"${KERNEL_ABSENCE}\"
    .size embedded_absence_text, . - embedded_absence_text
${EMBEDDED_BYTES}${chip_names}${text_bytes}
    .section .data.rel.ro, \"aw\"
    .balign 8
    .globl embedded_table, embedded_chips, embedded_source_table, embedded_absence_text
#ifndef WARPWAVE_KERNELS_SHARED
    .hidden embedded_table, embedded_chips, embedded_source_table, embedded_absence_text
#endif
    .type embedded_table, %object
    .type embedded_chips, %object
    .type embedded_source_table, %object
    .type embedded_absence_text, %object
embedded_table:
${EMBEDDED_TABLE}    .quad 0, 0, 0, 0, 0, 0, 0
    .size embedded_table, . - embedded_table
embedded_chips:
${chip_table}    .quad 0
    .size embedded_chips, . - embedded_chips
embedded_source_table:
${text_table}    .quad 0, 0
    .size embedded_source_table, . - embedded_source_table
" @ONLY)
set_source_files_properties(${KERNEL_DIR}/embedded.S PROPERTIES OBJECT_DEPENDS "${EMBEDDED_OBJECTS}")
set(EMBEDDED_KERNELS ${KERNEL_DIR}/embedded.S)

# ---- what was built for what ---------------------------------------------------------------------------------------------------
if(KERNEL_ROWS)
    set(table ${CMAKE_SOURCE_DIR}/scripts/kernels/kernel-resources.sh)
    add_custom_command(OUTPUT ${KERNEL_DIR}/resources.txt COMMAND ${table} ${KERNEL_DIR}/resources.txt ${KERNEL_ROWS}
                       DEPENDS ${KERNEL_ROWS} ${table} VERBATIM)
    if(WARPWAVE_TESTS)
        add_custom_target(kernel_resources ALL DEPENDS ${KERNEL_DIR}/resources.txt)
    endif()
    # The same as a page of the build folder.
    add_custom_target(kernel_resources_page COMMAND ${table} --markdown ${CMAKE_BINARY_DIR}/docs/resources.md ${KERNEL_ROWS}
                      DEPENDS ${KERNEL_ROWS} VERBATIM)
endif()
