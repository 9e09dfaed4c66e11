# The front door. `make demo` and `make test` each do all their own set-up on a fresh Debian; the rest assumes nothing either.
# The work is CMake's: this file only names what people want to do.
.PHONY: help setup build demo test test-asan test-tsan bench lint format docs fuzz install clean

BUILD ?= build
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
configure = cmake -S . -G Ninja --log-level=NOTICE

help:
	@echo "make demo     search handwritten digits, on the best device here"
	@echo "make test     every test: release, address and undefined sanitizers, thread sanitizer"
	@echo "make build    build/warpwave and the libraries"
	@echo "make bench    measure, beside the peers, into bench/RESULTS.md"
	@echo "make lint     formatting, static analysis, layering, exported symbols;   make format  mends the first"
	@echo "make fuzz     each reader's fuzzer for a minute;   make docs  the API reference"
	@echo "make install  into PREFIX (now $(PREFIX))"

setup:
	@scripts/setup build

build: setup
	$(configure) -B $(BUILD)
	cmake --build $(BUILD) -j $(JOBS)

demo: build
	$(BUILD)/warpwave demo

test: setup-test
	$(configure) -B $(BUILD) -DWARPWAVE_TESTS=ON
	cmake --build $(BUILD) -j $(JOBS)
	ctest --test-dir $(BUILD) --output-on-failure
	$(MAKE) --no-print-directory test-asan test-tsan

setup-test:
	@scripts/setup build test

test-asan:
	$(configure) -B $(BUILD)-asan -DWARPWAVE_SANITIZE=address,undefined
	cmake --build $(BUILD)-asan -j $(JOBS)
	ctest --test-dir $(BUILD)-asan --output-on-failure

test-tsan:
	$(configure) -B $(BUILD)-tsan -DWARPWAVE_SANITIZE=thread
	cmake --build $(BUILD)-tsan -j $(JOBS)
	ctest --test-dir $(BUILD)-tsan --output-on-failure -L threads

bench:
	@scripts/setup build bench
	$(configure) -B $(BUILD) -DWARPWAVE_BENCH=ON
	cmake --build $(BUILD) -j $(JOBS)
	bench/run $(BUILD)

lint:
	@scripts/setup build test lint
	$(configure) -B $(BUILD)
	scripts/lint $(BUILD)

format:
	@scripts/setup lint
	git ls-files '*.c' '*.h' | xargs clang-format-19 -i

docs:
	@scripts/setup docs
	scripts/api-reference > docs/api.md

fuzz:
	@scripts/setup build fuzz
	tests/fuzz/run

install: build
	cmake --install $(BUILD) --prefix $(PREFIX)

clean:
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-fuzz
