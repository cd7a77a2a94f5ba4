# SPDX-License-Identifier: Apache-2.0
#
# Each board as Vivado needs it. Parameter files are those of bitstreams/parameters; part, clock, bus and register base
# are those of bitstreams/manifest.toml (a test compares the two).
#
# ps: processing system. memory_ports: its HP ports for VTA's memory masters: 1 shared, or 4, one for each of four.
# read_ports: those that weights and inputs are read over; 2 and 4 need as many memory ports, of which the load stage's first
# master has the first (design.tcl). Each port has the bus's bandwidth on the side of the PL, and takes a SmartConnect.

set boards [dict create \
  pynq-z2 {
    bitstream hilt-pynq-z2 part xc7z020clg400-1 parameters pynq isa 0
    ps processing_system7 clock_mhz 100 bus_bits 64 memory_ports 1 read_ports 1 register_base 0x43C00000
  } \
  ultra96 {
    bitstream hilt-ultra96 part xczu3eg-sbva484-1-e parameters ultra96 isa 0
    ps zynq_ultra_ps_e clock_mhz 300 bus_bits 128 memory_ports 1 read_ports 1 register_base 0xA0000000
  } \
  zcu104 {
    bitstream hilt-zcu104 part xczu7ev-ffvc1156-2-e parameters zcu104 isa 0
    ps zynq_ultra_ps_e clock_mhz 300 bus_bits 128 memory_ports 1 read_ports 1 register_base 0xA0000000
  } \
  zcu102 {
    bitstream hilt-zcu102 part xczu9eg-ffvb1156-2-e parameters zcu102 isa 2
    ps zynq_ultra_ps_e clock_mhz 300 bus_bits 128 memory_ports 1 read_ports 1 register_base 0xA0000000
  } \
  pynq-z2-143 {
    bitstream hilt-pynq-z2-143 part xc7z020clg400-1 parameters pynq isa 0
    ps processing_system7 clock_mhz 142.857143 bus_bits 64 memory_ports 1 read_ports 1 register_base 0x43C00000
  } \
  ultra96-2x16 {
    bitstream hilt-ultra96-2x16 part xczu3eg-sbva484-1-e parameters batch2 isa 0
    ps zynq_ultra_ps_e clock_mhz 300 bus_bits 128 memory_ports 1 read_ports 1 register_base 0xA0000000
  } \
  zcu104-1x32 {
    bitstream hilt-zcu104-1x32 part xczu7ev-ffvc1156-2-e parameters block32 isa 0
    ps zynq_ultra_ps_e clock_mhz 300 bus_bits 128 memory_ports 1 read_ports 1 register_base 0xA0000000
  } \
  zcu104-2x32 {
    bitstream hilt-zcu104-2x32 part xczu7ev-ffvc1156-2-e parameters batch2_block32 isa 0 bands 1
    ps zynq_ultra_ps_e clock_mhz 300 bus_bits 128 memory_ports 1 read_ports 1 register_base 0xA0000000
  } \
  zcu102-1x32 {
    bitstream hilt-zcu102-1x32 part xczu9eg-ffvb1156-2-e parameters block32 isa 0
    ps zynq_ultra_ps_e clock_mhz 300 bus_bits 128 memory_ports 1 read_ports 1 register_base 0xA0000000
  } \
  zcu104-1x32-2p {
    bitstream hilt-zcu104-1x32-2p part xczu7ev-ffvc1156-2-e parameters block32 isa 0
    ps zynq_ultra_ps_e clock_mhz 300 bus_bits 128 memory_ports 2 read_ports 2 register_base 0xA0000000
  } \
  zcu104-2x32-2p {
    bitstream hilt-zcu104-2x32-2p part xczu7ev-ffvc1156-2-e parameters batch2_block32 isa 0 bands 1
    ps zynq_ultra_ps_e clock_mhz 300 bus_bits 128 memory_ports 2 read_ports 2 register_base 0xA0000000
  } \
  zcu104-2x32-4p {
    bitstream hilt-zcu104-2x32-4p part xczu7ev-ffvc1156-2-e parameters batch2_block32 isa 0 bands 1
    ps zynq_ultra_ps_e clock_mhz 300 bus_bits 128 memory_ports 4 read_ports 4 register_base 0xA0000000
  } \
  zcu102-1x32-2p {
    bitstream hilt-zcu102-1x32-2p part xczu9eg-ffvb1156-2-e parameters block32 isa 0
    ps zynq_ultra_ps_e clock_mhz 300 bus_bits 128 memory_ports 2 read_ports 2 register_base 0xA0000000
  } \
]
