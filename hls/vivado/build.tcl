# SPDX-License-Identifier: Apache-2.0
#
# From rtl/ to a bitstream:
#
#   vivado -mode batch -source hls/vivado/build.tcl -tclargs BOARD FOLDER [PARAMETERS.json]
#
# BOARD is one of boards.tcl. FOLDER is made and receives BITSTREAM.bit, BITSTREAM.hwh and reports. The accelerator is
# synthesised alone first (out_of_context.tcl): its timing is there half an hour before the bitstream. Implementation
# strategies are tried in turn until one meets the timing, each with its reports in FOLDER/STRATEGY; a build that fails
# a check of verdict.tcl is an error and leaves no bitstream there.

set here [file dirname [file normalize [info script]]]
foreach part {boards sources wrapper out_of_context package design verdict} { source [file join $here $part.tcl] }

# In the order of their promise for a design whose worst paths are control logic. All end with physical optimisation
# after routing.
set strategies {Performance_ExplorePostRoutePhysOpt Performance_NetDelay_high Performance_ExtraTimingOpt}

# Implements the design; returns its problems.
proc implement {strategy folder clock_mhz} {
  set_property strategy $strategy [get_runs impl_1]
  set_property STEPS.POST_ROUTE_PHYS_OPT_DESIGN.IS_ENABLED true [get_runs impl_1]
  launch_runs impl_1 -to_step write_bitstream -jobs 4
  wait_on_run impl_1
  if {[get_property PROGRESS [get_runs impl_1]] ne "100%"} { error "implementation failed: see $folder/system" }
  open_run impl_1
  set reports [file join $folder $strategy]
  file mkdir $reports
  return [design_problems $reports $clock_mhz]
}

proc build {here boards arguments} {
  if {[llength $arguments] < 2 || [llength $arguments] > 3} {
    error "usage: build.tcl BOARD FOLDER \[PARAMETERS.json\]; boards: [dict keys $boards]"
  }
  lassign $arguments name folder parameters
  if {![dict exists $boards $name]} { error "no board $name; boards: [dict keys $boards]" }
  set board [dict get $boards $name]
  if {$parameters eq ""} {
    set parameters [file join $here .. .. bitstreams parameters [dict get $board parameters].json]
  }
  if {![file isfile $parameters]} { error "no parameter file $parameters" }
  set folder [file normalize $folder]
  file mkdir $folder
  set bitstream [dict get $board bitstream]
  file delete [file join $folder $bitstream.bit] [file join $folder $bitstream.hwh]  ;# from an earlier build
  set clock_mhz [dict get $board clock_mhz]

  set rtl [file normalize [file join $here .. rtl]]
  set wrapper [verilog_wrapper $rtl $board [top_parameters $parameters $board] $folder]
  set sources [concat [rtl_files $rtl] [list $wrapper]]
  synthesise_alone $board $sources $rtl $folder
  package_vta $board $sources $folder

  create_project -force vta_system [file join $folder system] -part [dict get $board part]
  set_property ip_repo_paths [list [file join $folder ip]] [current_project]
  update_ip_catalog
  create_design $board
  set design [get_files vta_system.bd]
  add_files -norecurse [make_wrapper -files $design -top]
  set_property top vta_system_wrapper [current_fileset]
  generate_target all $design
  foreach strategy $::strategies {
    set problems [implement $strategy $folder $clock_mhz]
    if {![llength $problems]} break
    puts "$strategy: [join $problems {; }]"
    close_design
    reset_run impl_1
  }
  if {[llength $problems]} { error "[join $problems {; }]; reports of all strategies: $folder" }

  set run [get_property DIRECTORY [get_runs impl_1]]
  # Both files are found before one is copied. -directory: FOLDER is a path, not a pattern.
  set handoffs [file join $folder system vta_system.gen sources_1 bd vta_system hw_handoff]
  set handoff [lindex [glob -directory $handoffs *.hwh] 0]
  file copy -force [file join $run vta_system_wrapper.bit] [file join $folder $bitstream.bit]
  file copy -force $handoff [file join $folder $bitstream.hwh]
  puts "$folder/$bitstream.bit: made with $strategy; keep it with: hilt bitstream add $folder/$bitstream.bit --like $bitstream"
}

build $here $boards $argv
