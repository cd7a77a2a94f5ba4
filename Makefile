# Everything is built below build/: environments, Verilated models, state of demo and tests. `make clean` removes it.
PYTHON ?= python3
BUILD := $(CURDIR)/build
HOST := $(BUILD)/host-env
BOARD := $(BUILD)/board-env
export HILT_CACHE := $(BUILD)/cache
export HILT_BOARD_PYTHON := $(BOARD)/bin/python
export PIP_DISABLE_PIP_VERSION_CHECK := 1
PIP_INSTALL := -m pip install -qq

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint bench fault nightly coverage resources pictures clean

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(HOST)/.ready $(BOARD)/.ready  ## make both environments

# Stamps, so that an interrupted installation is begun again.
$(HOST)/.ready: pyproject.toml
	$(PYTHON) -m venv $(HOST)
	$(HOST)/bin/python $(PIP_INSTALL) --upgrade 'pip>=25.1'
	$(HOST)/bin/python $(PIP_INSTALL) --editable . --group test --group lint
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

test: setup lint  ## lint, types and all tests
	$(HOST)/bin/pytest --numprocesses 2 --dist loadfile

lint: setup
	$(HOST)/bin/ruff check .
	$(HOST)/bin/mypy

bench: setup  ## print the figures of the README
	$(HOST)/bin/python -m tests.bench

fault: setup  ## 1,000 faults on struck boards, 200 engines killed, a million frames: prints what became of them (20 to 40 minutes)
	$(HOST)/bin/python -m tests.fault
	$(HOST)/bin/python -m tests.fuzz

nightly: setup  ## a million random instructions, RTL against golden, for each of seven builds (half an hour)
	$(HOST)/bin/python -m tests.rtl.nightly

coverage: setup  ## line and toggle coverage of the RTL by its tests (minutes)
	$(HOST)/bin/python -m tests.rtl.coverage

resources: setup  ## what the RTL takes of each board's FPGA, by Yosys (minutes)
	$(HOST)/bin/python $(PIP_INSTALL) --group synthesis
	$(HOST)/bin/python hls/yosys/resources.py

pictures: setup  ## the documents' screenshots, and an example report in build/pictures (a minute)
	mkdir -p $(BUILD)/pictures
	$(HOST)/bin/python docs/pictures/make.py $(BUILD)/pictures
	cp $(BUILD)/pictures/tui-*.svg docs/pictures/

clean:
	rm -rf $(BUILD)
