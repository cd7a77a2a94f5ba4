# The block design: a processing system, VTA, and what joins them.
#
# The processing system's DDR, pins and peripherals are set by the board's boot loader, not by the bitstream, so only what
# faces the PL is configured here: one clock, one register port, one memory port.

proc create_design {board} {
  create_bd_design vta_system
  set vta [create_bd_cell -type ip -vlnv hilt:hilt:vta:1.0 vta]
  set reset [create_bd_cell -type ip -vlnv xilinx.com:ip:proc_sys_reset:5.0 reset]
  set memory [create_bd_cell -type ip -vlnv xilinx.com:ip:smartconnect:1.0 memory]
  set_property -dict {CONFIG.NUM_SI 4 CONFIG.NUM_MI 1} $memory
  set registers [create_bd_cell -type ip -vlnv xilinx.com:ip:smartconnect:1.0 registers]
  set_property -dict {CONFIG.NUM_SI 1 CONFIG.NUM_MI 1} $registers

  lassign [create_ps_[dict get $board ps] $board] clock reset_n control memory_port memory_clock control_clock
  connect_bd_net [get_bd_pins $clock] [get_bd_pins vta/clk] [get_bd_pins reset/slowest_sync_clk] \
    [get_bd_pins memory/aclk] [get_bd_pins registers/aclk] [get_bd_pins $memory_clock] [get_bd_pins $control_clock]
  connect_bd_net [get_bd_pins $reset_n] [get_bd_pins reset/ext_reset_in]
  connect_bd_net [get_bd_pins reset/peripheral_aresetn] [get_bd_pins vta/rst_n] \
    [get_bd_pins memory/aresetn] [get_bd_pins registers/aresetn]

  connect_bd_intf_net [get_bd_intf_pins $control] [get_bd_intf_pins registers/S00_AXI]
  connect_bd_intf_net [get_bd_intf_pins registers/M00_AXI] [get_bd_intf_pins vta/s_axi]
  foreach {number master} {0 fetch 1 load 2 compute 3 store} {
    connect_bd_intf_net [get_bd_intf_pins vta/m_axi_$master] [get_bd_intf_pins memory/S0${number}_AXI]
  }
  connect_bd_intf_net [get_bd_intf_pins memory/M00_AXI] [get_bd_intf_pins $memory_port]

  assign_bd_address -offset [dict get $board register_base] -range 64K -target_address_space \
    [get_bd_addr_spaces ps/Data] [get_bd_addr_segs vta/s_axi/reg0] -force
  assign_bd_address  ;# all that is left: memory, to the four masters
  validate_bd_design
  save_bd_design
}

# Each returns: clock, reset, register port, memory port, and the clocks of those two ports.
proc create_ps_processing_system7 {board} {
  set ps [create_bd_cell -type ip -vlnv xilinx.com:ip:processing_system7:5.5 ps]
  set_property -dict [list \
    CONFIG.PCW_FPGA0_PERIPHERAL_FREQMHZ [dict get $board clock_mhz] \
    CONFIG.PCW_USE_M_AXI_GP0 1 \
    CONFIG.PCW_USE_S_AXI_HP0 1 \
    CONFIG.PCW_S_AXI_HP0_DATA_WIDTH [dict get $board bus_bits]] $ps
  # Its pads are buffers in the netlist, which lead to ports as in any Zynq-7000 design; the boot loader sets them up.
  foreach pads {DDR FIXED_IO} { make_bd_intf_pins_external -name $pads [get_bd_intf_pins ps/$pads] }
  return {ps/FCLK_CLK0 ps/FCLK_RESET0_N ps/M_AXI_GP0 ps/S_AXI_HP0 ps/S_AXI_HP0_ACLK ps/M_AXI_GP0_ACLK}
}

proc create_ps_zynq_ultra_ps_e {board} {
  set ps [create_bd_cell -type ip -vlnv xilinx.com:ip:zynq_ultra_ps_e ps]
  set_property -dict [list \
    CONFIG.PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ [dict get $board clock_mhz] \
    CONFIG.PSU__USE__M_AXI_GP0 1 \
    CONFIG.PSU__USE__M_AXI_GP1 0 \
    CONFIG.PSU__USE__M_AXI_GP2 0 \
    CONFIG.PSU__USE__S_AXI_GP2 1 \
    CONFIG.PSU__SAXIGP2__DATA_WIDTH [dict get $board bus_bits]] $ps
  return {ps/pl_clk0 ps/pl_resetn0 ps/M_AXI_HPM0_FPD ps/S_AXI_HP0_FPD ps/saxihp0_fpd_aclk ps/maxihpm0_fpd_aclk}
}
