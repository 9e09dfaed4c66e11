# Compiling kernels by clang alone, the library's and callers' own: installed with the CMake package, where WARPWAVE_KERNEL_INCLUDE is
# the folder of the headers that a kernel is written with.

# One rounding for each operation that is written, denormals kept, roots and quotients correctly rounded; nothing from outside
# clang: freestanding, no vendor's headers or libraries, whatever is installed here.
set(DEVICE_OPTIONS -O3 -std=c++17 -ffreestanding -nostdlibinc -ffp-contract=off -fno-gpu-flush-denormals-to-zero -Wall -Wextra -Werror
    -I${WARPWAVE_KERNEL_INCLUDE})

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
        elseif(chip MATCHES "^sm_1") # sm_100 since PTX 8.6, sm_120 since 8.7
            set(version 87)
        endif()
        set(${extension} ptx PARENT_SCOPE)
        set(${options} -x cuda --cuda-gpu-arch=${chip} --cuda-device-only -S -nocudainc -nocudalib --cuda-path=/nonexistent
            --cuda-feature=+ptx${version} ${DEVICE_OPTIONS} PARENT_SCOPE)
    endif()
endfunction()

# warpwave_add_kernels(TARGET SOURCE [CHIPS gfx90a sm_75 ...] [FOLDER folder] [OPTIONS ...])
# Compiles the kernels of SOURCE (in the words of kernels/simt/simt.h, or in any other that clang knows) for each chip, without a
# vendor's SDK: FOLDER/NAME.CHIP.hsaco for AMD, FOLDER/NAME.CHIP.ptx for NVIDIA, to be given to ww_module_load(). TARGET builds them; its
# property KERNEL_FILES lists them. The clang is that of the library's kernels (Kernels.cmake), or the first of clang-17 and later that is found.
function(warpwave_add_kernels target source)
    cmake_parse_arguments(PARSE_ARGV 2 own "" "FOLDER" "CHIPS;OPTIONS")
    get_filename_component(source ${source} ABSOLUTE)
    get_filename_component(name ${source} NAME_WE)
    if(NOT own_FOLDER)
        set(own_FOLDER ${CMAKE_CURRENT_BINARY_DIR})
    endif()
    set(amd_clang ${KERNEL_CLANG})
    set(nvidia_clang ${NVIDIA_CLANG})
    if(own_CHIPS AND NOT amd_clang AND NOT nvidia_clang)
        find_program(WARPWAVE_OWN_CLANG NAMES clang-19 clang-20 clang-21 clang-22 clang-18 clang-17 clang amdclang REQUIRED
                     PATHS $ENV{ROCM_PATH}/llvm/bin $ENV{ROCM_HOME}/llvm/bin /opt/rocm/llvm/bin
                     DOC "Compiles kernels for GPUs: 17 or later, with its lld")
        set(amd_clang ${WARPWAVE_OWN_CLANG})
    endif()
    file(MAKE_DIRECTORY ${own_FOLDER})
    set(files "")
    foreach(chip ${own_CHIPS})
        chip_options(${chip} options extension)
        set(clang ${amd_clang})
        if(nvidia_clang AND (chip MATCHES "^sm_" OR NOT clang))
            set(clang ${nvidia_clang})
        endif()
        set(file ${own_FOLDER}/${name}.${chip}.${extension})
        add_custom_command(OUTPUT ${file} COMMAND ${clang} ${options} ${own_OPTIONS} -Xclang -dependency-file -Xclang ${file}.d -Xclang -MT -Xclang ${file} ${source} -o ${file}
                           DEPENDS ${source} DEPFILE ${file}.d COMMENT "Compiling ${name} for ${chip}" VERBATIM)
        list(APPEND files ${file})
    endforeach()
    add_custom_target(${target} ALL DEPENDS ${files})
    set_target_properties(${target} PROPERTIES KERNEL_FILES "${files}")
endfunction()
