# Every target sets up what it needs first (setup/ensure: silent when nothing is missing).
.PHONY: help demo test quick test-core test-host test-python test-long test-fuzz test-install fuzz bench lint lint-python format site clean
.DEFAULT_GOAL := help

venv := .venv/bin
# one more worker than processors, as many tests wait; what was slow and what was skipped is told
pytest := $(venv)/python -m pytest -n $$(($$(nproc) + 1)) --dist loadfile --no-loadscope-reorder --durations=20 -rs
tidy_presets := host firmware-a53 firmware-r52 firmware-r5 linux-arm64
cpp := $(shell git ls-files '*.hpp' '*.cpp' 2>/dev/null)
# Not part of any build: bindings have their own, the others are compiled by tests.
not_tidied := python/bindings/% icc/tests/compile_fail/% icc/tests/packaging/% python/tests/icc/%
not_tidied += python/tests/traces/%
# 52 channels in one file: a quarter of an hour; their headers are checked where others use them
not_tidied += probes/src/intercore_channels.cpp
# made for one design each, which its build generates
not_tidied += hdl/verification/mass/% hdl/simulation/compiled/%
# tests: compiled with every warning as an error; what users run is what is looked at more closely
not_tidied += %_test.cpp
# channels at a fixed address, which clang-tidy takes for a mistake
not_tidied += icc/examples/pair/%
# compiled by bench/icc_throughput.py, with the peers that are installed
not_tidied += icc/bench/%
# compiled with what `latenz icc generate` writes, by its tests
not_tidied += icc/tests/torture_languages.cpp
# of the build for libFuzzer alone
not_tidied += fuzz/native/libfuzzer.cpp

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

demo: ## set up, measure this machine and an emulated board, write results/demo/report.html
	@rm -rf results/demo
	@./latenz run experiments/quick.toml -o results/demo/run; status=$$?; \
	  case $$status in 0|1|3) ;; *) exit $$status ;; esac; \
	  ./latenz report results/demo/run -o results/demo/report.html

test: test-core test-python test-fuzz ## run every test but the long ones

quick: lint-python test-host ## Python's linters, and every test but boots, proofs and fuzzing
	$(pytest) -m "not boots and not proofs and not fuzzing and not long"

test-host: # C++ tests on this machine
	@setup/ensure test
	cmake --preset host -DCMAKE_CXX_FLAGS=-Werror >/dev/null && cmake --build --preset host
	ctest --preset host -j $$(nproc)

test-core: test-host ## C++ tests on this machine; builds for A53, R5, R52 and 64-bit Arm Linux
	@for preset in firmware-a53 firmware-r5 firmware-r52 linux-arm64; do \
	  cmake --preset $$preset >/dev/null && cmake --build --preset $$preset || exit; done

test-python: ## Python tests, on real tools and a real browser
	@setup/ensure test
	@setup/ensure agent # takes minutes the first time, longer than a test may
	$(pytest) -m "not long"

test-long: ## what takes minutes a test: all designs, repeated boots, planted defects; before a release
	@setup/ensure test
	@setup/ensure agent
	$(pytest) -m long

# the same inputs each time: a change is judged by what it changed, and `make fuzz` looks for new ones
test-fuzz: ## feed every reader of foreign data with damaged input
	@setup/ensure fuzz
	$(venv)/python fuzz/run.py --repeat

test-install: ## install a release into fresh Debian 12 and 13: needs root, takes minutes
	@setup/ensure test
	@setup/ensure release
	$(venv)/python -m pytest -rP packaging/tests

FUZZ_SECONDS ?= 3600
fuzz: ## the same for hours: FUZZ_SECONDS= for each reader (3600)
	@setup/ensure fuzz
	$(venv)/python fuzz/run.py --seconds $(FUZZ_SECONDS)

bench: ## measure Latenz itself, and peers beside it; writes results/bench.json
	@setup/ensure test
	@setup/ensure bench
	$(venv)/python bench/run.py -o results/bench.json

lint-python: # formatter, linter, type checker, and the direction of imports
	@setup/ensure test
	$(venv)/ruff format --check
	$(venv)/ruff check
	$(venv)/lint-imports --no-cache --no-logo
	$(venv)/mypy

lint: lint-python ## formatters, linters and type checkers; changes nothing
	shellcheck latenz agent/build setup/ensure setup/lock setup/release .ci/run icc/proof/check core/proof/check \
	  packaging/debian/latenz packaging/debian/postinst packaging/debian/prerm
	$(MAKE) -C hdl lint
	$(venv)/clang-format --dry-run --Werror $(cpp)
	for preset in $(tidy_presets); do cmake --preset $$preset >/dev/null || exit; done
	setup/merge-compile-commands $(tidy_presets)
	$(venv)/python setup/tidy $(filter-out $(not_tidied),$(filter %.cpp,$(cpp)))

format: ## rewrite all sources in the house style
	@setup/ensure test
	$(venv)/ruff format
	$(venv)/ruff check --fix
	$(venv)/clang-format -i $(cpp)

site: ## the guide as a site to read offline: build/site/index.html
	@setup/ensure test
	$(venv)/python docs/make_site.py

clean: ## remove everything that was built, installed here, or measured
	rm -rf .venv build results
