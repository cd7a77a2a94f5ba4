# SPDX-License-Identifier: Apache-2.0
#
# The block design: a processing system, VTA, and the interconnect between them.
#
# The processing system's DDR, pins and peripherals are set by the board's boot loader, not by the bitstream. Only the
# side of the PL is configured here: one clock, one register port, and the memory ports that masters share as boards.tcl
# says.

# The masters of each memory port.
proc masters_of_ports {board} {
  set ports [dict get $board memory_ports]
  set read_ports [dict get $board read_ports]
  if {$ports == 1 && $read_ports == 1} { return {{fetch load compute store}} }
  if {$ports == 4 && $read_ports == 1} { return {fetch load compute store} }
  if {$ports == 2 && $read_ports == 2} { return {load {fetch compute weights1 store}} }
  if {$ports == 4 && $read_ports == 4} { return {load {fetch weights1} {compute weights2} {weights3 store}} }
  error "memory_ports is $ports and read_ports $read_ports: they must be 1 and 1, 4 and 1, 2 and 2, or 4 and 4"
}

proc create_design {board} {
  create_bd_design vta_system
  set vta [create_bd_cell -type ip -vlnv hilt:hilt:vta:1.0 vta]
  set reset [create_bd_cell -type ip -vlnv xilinx.com:ip:proc_sys_reset:5.0 reset]
  set ports [masters_of_ports $board]
  set memories {}
  foreach masters $ports {
    set memory [create_bd_cell -type ip -vlnv xilinx.com:ip:smartconnect:1.0 memory[llength $memories]]
    set_property -dict [list CONFIG.NUM_SI [llength $masters] CONFIG.NUM_MI 1] $memory
    lappend memories $memory
  }
  set registers [create_bd_cell -type ip -vlnv xilinx.com:ip:smartconnect:1.0 registers]
  set_property -dict {CONFIG.NUM_SI 1 CONFIG.NUM_MI 1} $registers

  lassign [create_ps_[dict get $board ps] $board] clock reset_n control memory_ports memory_clocks control_clock
  connect_bd_net [get_bd_pins $clock] [get_bd_pins vta/clk] [get_bd_pins reset/slowest_sync_clk] \
    [get_bd_pins registers/aclk] [get_bd_pins $control_clock] \
    {*}[lmap memory $memories { get_bd_pins $memory/aclk }] {*}[lmap pin $memory_clocks { get_bd_pins $pin }]
  connect_bd_net [get_bd_pins $reset_n] [get_bd_pins reset/ext_reset_in]
  connect_bd_net [get_bd_pins reset/peripheral_aresetn] [get_bd_pins vta/rst_n] \
    [get_bd_pins registers/aresetn] {*}[lmap memory $memories { get_bd_pins $memory/aresetn }]

  connect_bd_intf_net [get_bd_intf_pins $control] [get_bd_intf_pins registers/S00_AXI]
  connect_bd_intf_net [get_bd_intf_pins registers/M00_AXI] [get_bd_intf_pins vta/s_axi]
  foreach memory $memories masters $ports {
    set number 0
    foreach master $masters {
      connect_bd_intf_net [get_bd_intf_pins vta/m_axi_$master] [get_bd_intf_pins $memory/S0${number}_AXI]
      incr number
    }
  }
  foreach memory $memories port $memory_ports {
    connect_bd_intf_net [get_bd_intf_pins $memory/M00_AXI] [get_bd_intf_pins $port]
  }

  assign_bd_address -offset [dict get $board register_base] -range 64K -target_address_space \
    [get_bd_addr_spaces ps/Data] [get_bd_addr_segs vta/s_axi/reg0] -force
  assign_bd_address  ;# all that is left: memory, to the masters
  validate_bd_design
  check_clock $clock [dict get $board clock_mhz]
  save_bd_design
}

# Each returns: clock, reset, register port, memory ports, the memory ports' clocks and the register port's clock.
proc create_ps_processing_system7 {board} {
  set ps [create_bd_cell -type ip -vlnv xilinx.com:ip:processing_system7:5.5 ps]
  set properties [list CONFIG.PCW_FPGA0_PERIPHERAL_FREQMHZ [dict get $board clock_mhz] CONFIG.PCW_USE_M_AXI_GP0 1]
  set ports {}
  set clocks {}
  for {set port 0} {$port < [dict get $board memory_ports]} {incr port} {
    lappend properties CONFIG.PCW_USE_S_AXI_HP$port 1 CONFIG.PCW_S_AXI_HP${port}_DATA_WIDTH [dict get $board bus_bits]
    lappend ports ps/S_AXI_HP$port
    lappend clocks ps/S_AXI_HP${port}_ACLK
  }
  set_property -dict $properties $ps
  # Its pads are buffers in the netlist, which lead to ports as in any Zynq-7000 design; the boot loader sets them up.
  foreach pads {DDR FIXED_IO} { make_bd_intf_pins_external -name $pads [get_bd_intf_pins ps/$pads] }
  return [list ps/FCLK_CLK0 ps/FCLK_RESET0_N ps/M_AXI_GP0 $ports $clocks ps/M_AXI_GP0_ACLK]
}

proc create_ps_zynq_ultra_ps_e {board} {
  set ps [create_bd_cell -type ip -vlnv xilinx.com:ip:zynq_ultra_ps_e ps]
  set properties [list \
    CONFIG.PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ [dict get $board clock_mhz] \
    CONFIG.PSU__USE__M_AXI_GP0 1 CONFIG.PSU__USE__M_AXI_GP1 0 CONFIG.PSU__USE__M_AXI_GP2 0]
  set ports {}
  set clocks {}
  for {set port 0} {$port < [dict get $board memory_ports]} {incr port} {
    set name [expr {$port + 2}]  ;# HP0 is S_AXI_GP2
    lappend properties CONFIG.PSU__USE__S_AXI_GP$name 1 CONFIG.PSU__SAXIGP${name}__DATA_WIDTH [dict get $board bus_bits]
    lappend ports ps/S_AXI_HP${port}_FPD
    lappend clocks ps/saxihp${port}_fpd_aclk
  }
  set_property -dict $properties $ps
  return [list ps/pl_clk0 ps/pl_resetn0 ps/M_AXI_HPM0_FPD $ports $clocks ps/maxihpm0_fpd_aclk]
}
