# SPDX-License-Identifier: Apache-2.0
#
# Packages the RTL as an IP, so that a block design can hold it. Its top is the module of wrapper.tcl.

proc package_vta {board sources folder} {
  create_project -force vta_ip [file join $folder project] -part [dict get $board part]
  add_files -norecurse $sources
  set_property file_type SystemVerilog [get_files *.sv]
  set_property file_type {Verilog Header} [get_files *.svh]
  set_property top vta [current_fileset]
  update_compile_order -fileset sources_1
  ipx::package_project -root_dir [file join $folder ip] -vendor hilt -library hilt -taxonomy /hilt -import_files -force
  set core [ipx::current_core]
  set_property name vta $core
  set_property display_name "VTA (hilt)" $core
  set_property version 1.0 $core
  foreach bus [buses $board] {
    ipx::associate_bus_interfaces -busif $bus -clock clk $core
  }
  ipx::create_xgui_files $core
  ipx::update_checksums $core
  ipx::check_integrity $core
  ipx::save_core $core
  close_project
}
