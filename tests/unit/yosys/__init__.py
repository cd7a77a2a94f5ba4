"""Tests of hls/yosys."""
