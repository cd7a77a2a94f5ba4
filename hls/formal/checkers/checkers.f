// SPDX-License-Identifier: Apache-2.0
//
// The rules of AXI4 and AXI4-Lite, bound to every port of vta_top.
axi4_lite_checker.sv
axi4_read_checker.sv
axi4_write_checker.sv
bind.sv
