# Which tests are for whom. `make test` asks whether everything works on this machine, in ten minutes with the compilation: it runs what has no
# label. What has the label check is run by .ci/run as well, before a change lands; what has the label long, every night (`make check-all`,
# `ctest -L long`). A test without a label takes at most 10 seconds of one core, but for SLOW_TESTS.

# Tests for .ci/run, as NAME: why.
set(CHECK_TESTS
    "install_clang: it configures the build ten times; install_chips and install_setup are quick"
    "install_packages: it makes packages; install is quick"
    "ranks_openmpi_bits_16: 16 ranks on few cores; ranks_openmpi_bits_4 is quick"
    "ranks_openmpi_bits_64: 64 ranks on few cores"
    "ranks_openmpi_faults: it waits for ranks that are killed or stopped; ranks_openmpi_timeout is quick"
    "ranks_openmpi_killed: it waits for ranks that are killed"
    "ranks_openmpi_mpi_faults: it waits a tenth of a second for each call of MPI that fails"
    "gpu_cuda_numbers: it fetches a header"
    "rocm_runtimes: it fetches and unpacks AMD's runtimes, of 300 MB the first time; rocm_runtime tests the one that is installed"
    "memcheck: valgrind over the command; the sanitizers see the same code"
    "faults_ivf: two emulated devices fail at ever more calls; faults_device and faults_memory are quick"
    "kernels_gates: adversarial rows on emulated devices; kernels_search is quick"
    "kernels_screen: every data set on emulated devices; kernels_search is quick"
    "model_driver_faults: three drivers whose calls fail; gpu_collection_faults and quant_driver_faults are quick"
    "sqlite_python_apsw: it fetches a package; sqlite_python_sqlite3 is quick")

# Long tests, as NAME: why.
set(LIMITS "the suite once more with few blocks a launch; limits_tensor_index, limits_tensor_random and limits_collection are quick")
set(SAME_KERNELS "as the suite without rocm_, which runs with waves of 32 and of 64; the stand-in executes the same code")
set(LONG_TESTS
    "attention_long: 131,072 positions"
    "model_long: a context of 131,072 tokens"
    "rocm_attention_long: as attention_long"
    "rocm_model_long: as model_long"
    "rocm_kernels_gates: ${SAME_KERNELS}"
    "rocm_kernels_screen: ${SAME_KERNELS}"
    "rocm_kernels_search: ${SAME_KERNELS}"
    "rocm_grammar_model: grammars are the host's work; grammar_model is quick"
    "rocm_ivf: as ivf, whose devices are emulated, too"
    "rocm_ivf_query: as ivf_query, whose devices are emulated, too"
    "rocm_ivf_writes: as ivf_writes, whose devices are emulated, too"
    "rocm_model_bits: as model_bits, whose devices are emulated, too"
    "rocm_ivf_exact: as ivf_exact, whose devices are emulated, too"
    "rocm_quant_product: as quant_product, whose devices are emulated, too; rocm_quant_tile and rocm_quant_fused are quick"
    "rocm_ivf_proof: the host computes the proofs; ivf_proof is quick"
    "rocm_faults_ivf: as faults_ivf, whose devices are emulated, too"
    "rocm_faults_map: as faults_map, whose devices are emulated, too"
    "limits_tensor_matmul: ${LIMITS}"
    "limits_tensor_reduce: ${LIMITS}"
    "limits_tensor_rows: ${LIMITS}"
    "limits_tensor_sort: ${LIMITS}"
    "ranks_mpich_faults: ranks are killed while they work; ranks_openmpi_faults is quick"
    "ranks_mpich_mpi_faults: it waits for calls of MPI that fail; ranks_openmpi_mpi_faults is quick"
    "ranks_openmpi_memory: every allocation fails in turn; ranks_mpich_memory is quick"
    "rocm_ci_steps: it fetches rocBLAS with its headers, 250 MB"
    "rocm_gpu_planes: as gpu_planes, whose devices are emulated, too")

# Under the address sanitizer these are long, too: the largest suites that compare numbers, and the suites on the stand-in for ROCm, which executes the
# code that the emulator executes. What stays quick on the stand-in are the suites that copy, allocate and make the driver fail. The thread sanitizer has
# the suites of threads.
set(LONG_UNDER_ADDRESS
    "^(attention|certificate|gpu_planes|grammar_model|ivf_exact|ivf_proof|ivf_query|kernels_search|model_bits|model_driver_faults|model_transformers)$"
    "^(cpu_lead|cpu_matmul|cross_backend|float_environment|gpu_search_choice|headers|high_plane|kernels_search|math|math_half|screen|screen_bound)$"
    "^(ivf_life|quant_product|quant_tile|range|record|row_types|tensor_functions|tensor_reduce|tensor_rows)$"
    "^rocm_(attention|certificate|collection_|float|faults_device|gguf|group_search|ivf_|map|model_|quant_|range|record|row_types|screen|store_|tensor_|threads_)")
string(JOIN "|" LONG_UNDER_ADDRESS ${LONG_UNDER_ADDRESS})

# Tests whose form for .ci/run, NAME_check, has WARPWAVE_TEST_CHECK=1 in its environment (test_is_short() in support/devices.h), as NAME: why.
set(MORE_FAULTS "calls and allocations fail in turn, ever fewer; the short form goes twice as far each time")
set(BOTH_WAVES_LATER "waves of 32 and of 64; the short form has 32")
set(CHECK_FORMS
    "python: type hints, frames, other libraries' interfaces and processes, too; the short form has what needs NumPy alone"
    "rust: the documentation's examples, what must not compile, pkg-config, layouts and valgrind, too; the short form has the crates' own tests"
    "kernels_search: ${BOTH_WAVES_LATER}"
    "gpu_planes: ${BOTH_WAVES_LATER}"
    "gpu_search_choice: ${BOTH_WAVES_LATER}"
    "command_parity: two emulated devices, ten seconds each, too; the short form has the CPU's instruction sets"
    "certificate: every second pair of rows and metrics for each instruction set, and the emulator; the short form has every sixth"
    "faults_command: ${MORE_FAULTS}"
    "faults_device: ${MORE_FAULTS}"
    "faults_map: ${MORE_FAULTS}"
    "faults_memory: ${MORE_FAULTS}"
    "faults_model_command: ${MORE_FAULTS}"
    "faults_planes: ${MORE_FAULTS}"
    "faults_rocm: ${MORE_FAULTS}"
    "gguf: ${MORE_FAULTS}"
    "gpu_collection_faults: ${MORE_FAULTS}"
    "group_faults: ${MORE_FAULTS}"
    "group_lists: ${MORE_FAULTS}"
    "model_faults: ${MORE_FAULTS}"
    "quant_driver_faults: ${MORE_FAULTS}"
    "store_memory: ${MORE_FAULTS}"
    "store_vfs: ${MORE_FAULTS}"
    "sqlite_faults: ${MORE_FAULTS}"
    "store_maps: ${MORE_FAULTS}"
    "store_merge: ${MORE_FAULTS}"
    "tensor_faults: ${MORE_FAULTS}")

# Suites that `make test` runs on the CPU only, and .ci/run on the emulator, as emulated_NAME or NAME_check: there each takes more than three
# seconds, and kernels are no matter of the machine.
set(EMULATED_LATER "^(attention|certificate|grammar_model|ivf.*|map|model_bits|model_reference|model_session|model_transformers)$"
    "^(quant_(fused|product|split|tile)|range|record|row_types|screen|tensor_(attention|conv|matmul|reduce|resample|sort))$")
string(JOIN "|" EMULATED_LATER ${EMULATED_LATER})

# Tests with a long form, as NAME: why. NAME tries a sample; NAME_long has WARPWAVE_TEST_LONG=1 in its environment and tries everything.
set(EVERY_FAULT "every call or allocation fails in turn; the short form fails each of the first four and then ever fewer")
set(LONG_FORMS
    "rocm_runtime: AMD's compiler needs eight minutes for all kernels; the short form compiles three of them for each chip"
    "python: every device, type checks by mypy, 100,000 calls that must not grow, the source distribution, the linker of `make wheel`; the short form leaves these out"
    "rust: 100,000 handles are made and dropped under valgrind, 10,000 of grammars and files, 1,000 of stores and models; calls are timed beside C; the crate builds the library itself; the features meet the published crates; the short form makes 300 handles"
    "gpu_cuda_numbers: it fetches the package with cuBLAS's header, half a gigabyte; the short form fetches the driver's header only"
    "kernels_search: three orders of the emulator's waves; the short form has one"
    "server_follow: kills of the server for a minute, and a place in the log that is not reached in time; the short form kills for four seconds"
    "server_cluster: kills of nodes and of the database for a minute; the short form kills each once"
    "cross_backend: every case with every metric; the short form takes the metrics by turns"
    "model_bits: every decoder on emulated devices; the short form has two more than llama there"
    "map: whole layouts and cancelled ones on emulated devices, too; the short form makes these on the CPU only"
    "ivf: every type of rows with every metric on emulated devices; the short form takes one metric for each type"
    "ivf_query: as ivf"
    "ivf_writes: as ivf"
    "ivf_proof: more than 100,000 queries with proofs; the short form has 12,000"
    "ivf_exact: more than 100,000 exact queries by lists; the short form has some hundreds"
    "gpu_collection_faults: every call of the driver fails in three ways; the short form takes them by turns"
    "faults_command: ${EVERY_FAULT}"
    "faults_device: ${EVERY_FAULT}"
    "faults_ivf: ${EVERY_FAULT}"
    "faults_map: ${EVERY_FAULT}"
    "faults_memory: ${EVERY_FAULT}"
    "faults_rocm: ${EVERY_FAULT}"
    "group_faults: ${EVERY_FAULT}"
    "group_lists: every metric on every group, and every fault; the short form takes one metric for groups with emulated devices"
    "model_driver_faults: every call of the driver fails in turn; the short form leaves most of those out that open a model, and some on the stand-ins"
    "quant_driver_faults: ${EVERY_FAULT}"
    "rocm_faults_device: ${EVERY_FAULT}"
    "rocm_faults_memory: ${EVERY_FAULT}"
    "rocm_tensor_faults: ${EVERY_FAULT}"
    "sqlite_faults: of the allocations of SQLite that fail in turn eight times as many"
    "tensor_faults: ${EVERY_FAULT}")

# Quick tests that take more than 10 seconds, as NAME: why. They start first, so that none is left over at the end.
set(SLOW_TESTS
    "python: it installs packages, and has 400 tests"
    "rust: it compiles the crates and their tests"
    "rocm_numbers_packages: the first time it fetches packages of 350 MB; later it takes a second"
    "ranks_openmpi_commands: it starts about 20 runs of up to 3 ranks"
    "kernels_search: every kernel of search on an emulated device"
    "screen: every type of rows with every metric"
    "faults_device: every call of a device fails in turn"
    "sqlite_faults: every allocation fails in turn")

# What else looks at kernels, some of it alone: it has the label kernels.
set(KERNEL_TESTS embedded gpu_errors model_driver_faults model_launches own_kernel rocm_code rocm_device rocm_fast rocm_life rocm_runtime
    faults_rocm_tensor)

function(test_is_long test)
    set_property(TEST ${test} APPEND PROPERTY LABELS long)
    set_tests_properties(${test} PROPERTIES COST 100) # they start first, so that none is left over at the end
endfunction()

function(test_is_for_check test)
    set_property(TEST ${test} APPEND PROPERTY LABELS check)
    set_tests_properties(${test} PROPERTIES COST 60)
endfunction()

# is_listed(TEST RESULT NAME: why ...)
function(is_listed test result)
    set(found ${ARGN})
    list(FILTER found INCLUDE REGEX "^${test}: ")
    set(${result} ${found} PARENT_SCOPE)
endfunction()

# Adds the form NAME_LENGTH of a test, with its properties, and VARIABLE=1 in its environment.
function(add_test_form test length variable)
    add_test(NAME ${test}_${length} COMMAND ${ARGN})
    foreach(property ENVIRONMENT SKIP_RETURN_CODE RESOURCE_LOCK)
        get_test_property(${test} ${property} value)
        if(value)
            set_tests_properties(${test}_${length} PROPERTIES ${property} "${value}")
        endif()
    endforeach()
    set_property(TEST ${test}_${length} APPEND PROPERTY ENVIRONMENT ${variable}=1)
endfunction()

# test_length(TEST COMMAND ...): labels the test if it is not for `make test`, has it start early if it is slow, and adds its other forms. Its
# other properties must be set.
function(test_length test)
    is_listed(${test} slow ${SLOW_TESTS})
    if(slow)
        set_tests_properties(${test} PROPERTIES COST 50)
    endif()
    is_listed(${test} check ${CHECK_TESTS})
    is_listed(${test} long ${LONG_TESTS})
    if(long OR (WARPWAVE_SANITIZE MATCHES "address" AND test MATCHES "${LONG_UNDER_ADDRESS}" AND NOT test MATCHES "^rocm_tensor_faults"))
        test_is_long(${test})
    elseif(check)
        test_is_for_check(${test})
        set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT WARPWAVE_TEST_CHECK=1)
    endif()
    is_listed(${test} form ${CHECK_FORMS})
    if(form AND NOT WARPWAVE_SANITIZE)
        add_test_form(${test} check WARPWAVE_TEST_CHECK ${ARGN})
        test_is_for_check(${test}_check)
    endif()
    is_listed(${test} form ${LONG_FORMS})
    if(form)
        add_test_form(${test} long WARPWAVE_TEST_LONG ${ARGN})
        test_is_long(${test}_long)
    endif()
endfunction()
