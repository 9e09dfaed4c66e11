# The front door. `make demo` and `make test` each do all their own set-up on a fresh Debian; the rest assumes nothing either.
# The work is CMake's: this file only names what people want to do.
.PHONY: help build demo test test-release test-asan test-tsan test-gpu bench-gpu soak test-codeobjects parity resources bench ulp lint format docs fuzz install clean

BUILD ?= build
JOBS ?= $(shell nproc)
SECONDS ?= 300
PREFIX ?= /usr/local
DESTDIR ?=
configure = cmake -S . -G Ninja --log-level=NOTICE
# Device code has no sanitizers: those builds take it from the plain one where that has it.
same_kernels = -DWARPWAVE_PREBUILT_KERNELS=$(abspath $(BUILD))/kernels
# A first `make demo` or `make build` leaves the tests out, so that it needs no test packages; `make test` switches them on.
without_tests = $(if $(wildcard $(BUILD)/CMakeCache.txt),,-DWARPWAVE_TESTS=OFF)

help:
	@echo "make demo     search handwritten digits, on the best device here"
	@echo "make test     every test: release, address and undefined sanitizers, thread sanitizer"
	@echo "make test-gpu the suites on a real GPU, a minute of stress, compute-sanitizer; fails where there is no GPU"
	@echo "make bench-gpu   figures of the GPUs here; both write $(BUILD)/gpu-report.txt, which you can send; DEVICES=rocm:0 chooses"
	@echo "make soak     grow, search, shrink and move on the stand-in for ROCm for SECONDS (now $(SECONDS)), memory watched"
	@echo "make test-codeobjects   AMD's machine code executed without an AMD GPU, against the CPU; needs TINYGRAD_PATH"
	@echo "make parity   docs/evidence/parity.md: what every backend here answers, compared to the bit; DEVICES=cuda:0 adds a real GPU"
	@echo "make resources   docs/evidence/resources.md: registers, shared memory and occupancy of every kernel on every chip"
	@echo "make build    $(BUILD)/warpwave and the libraries"
	@echo "make bench    measure, beside the peers, into bench/RESULTS.md"
	@echo "make ulp      docs/evidence/accuracy.md: the error of every element function, f32 over all its inputs; takes half an hour"
	@echo "make lint     formatting, static analysis, layering, exported symbols;   make format  mends the first"
	@echo "make fuzz     each reader's fuzzer for a minute;   make docs  the API reference"
	@echo "make install  into PREFIX (now $(PREFIX)), under DESTDIR if that is set"
	@echo "make clean    removes the build folders"

build:
	@scripts/setup build
	$(configure) -B $(BUILD) $(without_tests)
	cmake --build $(BUILD) -j $(JOBS)

demo: build
	$(BUILD)/warpwave demo

test:
	@scripts/setup build test
	@$(MAKE) --no-print-directory test-release
	@$(MAKE) --no-print-directory test-asan
	@$(MAKE) --no-print-directory test-tsan
	@scripts/test-summary $(BUILD) $(BUILD)-asan $(BUILD)-tsan

test-release:
	$(configure) -B $(BUILD) -DWARPWAVE_TESTS=ON
	cmake --build $(BUILD) -j $(JOBS)
	ctest --test-dir $(BUILD) --output-on-failure --no-tests=error -j $(JOBS)

# The emulated kernels run there once, on the emulator, not again on the stand-in for ROCm; AMD's compiler is not ours to check.
not_under_asan = ^rocm_(runtime|kernels_.*)$$

test-asan:
	$(configure) -B $(BUILD)-asan -DWARPWAVE_SANITIZE=address,undefined $(same_kernels)
	cmake --build $(BUILD)-asan -j $(JOBS)
	ctest --test-dir $(BUILD)-asan --output-on-failure --no-tests=error -j $(JOBS) -E '$(not_under_asan)'

test-tsan:
	$(configure) -B $(BUILD)-tsan -DWARPWAVE_SANITIZE=thread $(same_kernels)
	cmake --build $(BUILD)-tsan -j $(JOBS) --target threads_tests
	ctest --test-dir $(BUILD)-tsan --output-on-failure --no-tests=error -L threads

test-gpu:
	@scripts/setup build test
	$(configure) -B $(BUILD) -DWARPWAVE_TESTS=ON
	cmake --build $(BUILD) -j $(JOBS)
	scripts/gpu-report $(BUILD) tests scripts/test-gpu $(BUILD) $(DEVICES)

bench-gpu:
	@scripts/setup build test
	$(configure) -B $(BUILD) -DWARPWAVE_TESTS=ON
	cmake --build $(BUILD) -j $(JOBS)
	scripts/gpu-report $(BUILD) figures scripts/bench-gpu $(BUILD) $(DEVICES)

soak:
	@scripts/setup build test
	$(configure) -B $(BUILD) -DWARPWAVE_TESTS=ON
	cmake --build $(BUILD) -j $(JOBS)
	WARPWAVE_SOAK_SECONDS=$(SECONDS) $(BUILD)/tests/test_soak_rocm

test-codeobjects:
	@scripts/setup build test codeobjects
	$(configure) -B $(BUILD) -DWARPWAVE_TESTS=ON
	cmake --build $(BUILD) -j $(JOBS) --target codeobjects_library standin_hip6 standin_rocblas
	tests/codeobjects/run $(BUILD) $(CHIPS)

comma := ,
empty :=
space := $(empty) $(empty)
parity:
	@scripts/setup build test
	$(configure) -B $(BUILD) -DWARPWAVE_TESTS=ON
	cmake --build $(BUILD) -j $(JOBS)
	WARPWAVE_TEST_DEVICES=$(subst $(space),$(comma),$(DEVICES)) WARPWAVE_PARITY_FILE=docs/evidence/parity.md $(BUILD)/tests/test_cross_backend

resources:
	@scripts/setup build
	$(configure) -B $(BUILD) $(without_tests)
	cmake --build $(BUILD) -j $(JOBS)
	scripts/check-kernels table --markdown docs/evidence/resources.md $(BUILD)/kernels/*.hsaco.txt $(BUILD)/kernels/*.ptx.txt

bench:
	@scripts/setup build bench
	$(configure) -B $(BUILD) $(without_tests) -DWARPWAVE_BENCH=ON
	cmake --build $(BUILD) -j $(JOBS)
	bench/run $(BUILD)

ulp:
	@scripts/setup build
	$(configure) -B $(BUILD) $(without_tests) -DWARPWAVE_BENCH=ON
	cmake --build $(BUILD) -j $(JOBS) --target ulp
	$(BUILD)/ulp --output docs/evidence/accuracy.md

lint:
	@scripts/setup build test lint
	$(configure) -B $(BUILD) -DWARPWAVE_TESTS=ON
	cmake --build $(BUILD) -j $(JOBS)
	LINT_STATES=$(LINT_STATES) scripts/lint $(BUILD)

format:
	@scripts/setup lint
	git ls-files '*.c' '*.h' | xargs clang-format-19 -i

docs:
	@scripts/setup docs
	scripts/api-reference > docs/reference/api.md

fuzz:
	@scripts/setup build fuzz
	tests/fuzz/run

# The prefix is told at configure time, too, because the command has the place of its demo data compiled in.
install:
	@scripts/setup build
	$(configure) -B $(BUILD) $(without_tests) -DCMAKE_INSTALL_PREFIX=$(PREFIX)
	cmake --build $(BUILD) -j $(JOBS)
	DESTDIR=$(DESTDIR) cmake --install $(BUILD)

clean:
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-fuzz
