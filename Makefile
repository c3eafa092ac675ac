# A thin wrapper over CMake: every target is a few commands that can be typed by hand.
# `make help` lists the targets, CMakePresets.json the presets.

PRESET ?= release
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local
DECK ?= input/124m_short.in
RANKS ?=
DEPS ?= yes
CMAKE_ARGS ?=
CTEST_ARGS ?=
STEPS_ARGS ?=
FUZZ_S ?= 3600
FUZZ_TARGETS ?=

BUILD := build/$(PRESET)
GENERATOR := $(if $(shell command -v ninja),Ninja,Unix Makefiles)

# What BUNDLE.tar.xz unpacks to on another machine; its programs must not want this machine's processor.
BUNDLE ?= build/gptbench-bundle

.PHONY: build deps deps-test configure run sweep-demo test bench bench-ratios validate fuzz format lint bundle install clean help
.DEFAULT_GOAL := build

build: configure  ## build gptbench and gptpost (the default)
	@cmake --build $(BUILD) --parallel $(JOBS) --target programs

# A build folder keeps the generator that it was made with.
configure:
	@cmake --preset $(PRESET) $(if $(wildcard $(BUILD)/CMakeCache.txt),,-G "$(GENERATOR)") $(CMAKE_ARGS)

deps:  ## install the packages that building and running need (Debian, Ubuntu)
	@if [ "$(DEPS)" != no ]; then sh cmake/deps.sh run; fi

deps-test:
	@if [ "$(DEPS)" != no ]; then sh cmake/deps.sh test; fi

run: deps  ## deps, build, run DECK on as many ranks as fit (or RANKS), write its report
	@$(MAKE) --no-print-directory build
	@sh cmake/run.sh $(BUILD) '$(DECK)' $(RANKS)

sweep-demo: deps  ## run the sweeps of input/demo, print tables, draw pictures (minutes)
	@$(MAKE) --no-print-directory build
	@sh cmake/sweep_demo.sh $(BUILD)

# Four tests more at a time than processors: at first as many run that mostly wait (cmake/GptbenchTest.cmake).
TEST_JOBS = $(shell expr $(JOBS) + 4)

# CTest has the last word: nothing is printed after it.
test: deps-test  ## deps for tests, build everything, run every test
	@$(MAKE) --no-print-directory configure
	@cmake --build $(BUILD) --parallel $(JOBS)
	@cmake --build $(BUILD) --target test_prerequisites
	@ctest --test-dir $(BUILD) --output-on-failure --no-tests=error --parallel $(TEST_JOBS) $(CTEST_ARGS)

# An hour and more; STEPS_ARGS='--only t1024-mb4-fp32' and others: see test/bench/steps.sh.
bench: deps configure  ## kernels, steps and PyTorch beside what the machine can do; doc/performance.md
	@cmake --build $(BUILD) --parallel $(JOBS) --target programs benchmarks
	@cmake --build $(BUILD) --target bench
	@sh test/bench/steps.sh $(BUILD) $(if $(RANKS),--ranks $(RANKS)) --doc doc/performance.md $(STEPS_ARGS)

bench-ratios: deps configure  ## two ranks beside two independent ones: dp, tp, pp (an hour)
	@cmake --build $(BUILD) --parallel $(JOBS) --target programs
	@sh test/bench/ratios.sh $(BUILD)

validate: configure  ## project published rows that were not fitted; doc/projection.md (minutes)
	@cmake --build $(BUILD) --parallel $(JOBS) --target validate
	@$(BUILD)/test/project/validate test/reference

fuzz: configure  ## libFuzzer on every parser (or FUZZ_TARGETS), FUZZ_S seconds each
	@cmake --build $(BUILD) --parallel $(JOBS) --target parser_fuzzer_program
	@FUZZ_TARGETS='$(FUZZ_TARGETS)' sh test/fuzz/run.sh $(BUILD) $(FUZZ_S)

format:  ## format the sources in place
	@sh cmake/format.sh

lint: configure  ## formatting, includes, shell scripts, clang-tidy
	@sh cmake/lint.sh $(BUILD)

bundle:  ## BUNDLE.tar.xz: programs with all libraries but CUDA's, for another machine
	@$(MAKE) --no-print-directory configure PRESET=portable
	@cmake --build build/portable --parallel $(JOBS) --target programs
	@if cmake --build build/portable --target help | grep -q test_gpu; then \
	   cmake --build build/portable --parallel $(JOBS) --target test_gpu test_gpu_kernels test_gpu_equivalence bench_cuda_kernels; fi
	@sh cmake/bundle.sh build/portable $(BUNDLE)

install: build  ## install programs, decks and documentation under PREFIX
	@cmake --install $(BUILD) --prefix $(PREFIX)

clean:  ## remove every build folder and the links to the programs
	@rm -rf build gptbench gptpost

help:  ## print this list
	@echo "make TARGET [VARIABLE=value ...]"
	@sed -n 's/^\([a-z-]*\):.*##  *\(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-10s %s\n", $$1, $$2}'
	@echo "variables: PRESET=release|portable|debug|asan|tsan|aarch64 JOBS DECK RANKS PREFIX CMAKE_ARGS CTEST_ARGS STEPS_ARGS FUZZ_S FUZZ_TARGETS"
	@echo "           DEPS=no when the libraries come from modules or Spack, not from packages"
