# Vivado's commands as recorders: each call is a line of a log, name and arguments apart by tabs; a command not named here is an error.
# Arguments: log, script, then the script's own arguments.

set recorded [open [lindex $argv 0] w]
fconfigure $recorded -buffering line

proc record {name arguments} { puts $::recorded [join [list $name {*}$arguments] \t] }

# Options of each command (UG835), and properties that scripts set (UG835, UG912, UG994; CONFIG.* of the IPs' guides). An
# unknown one is an error, as it is in Vivado.
set options {
  create_project {-force -part -in_memory} close_project {} add_files {-norecurse} set_property {-dict}
  update_compile_order {-fileset} update_ip_catalog {} create_bd_design {} connect_bd_net {} connect_bd_intf_net {}
  assign_bd_address {-offset -range -target_address_space -force} validate_bd_design {} save_bd_design {}
  make_bd_intf_pins_external {-name} generate_target {} launch_runs {-to_step -jobs} wait_on_run {} open_run {}
  close_design {} reset_run {} report_utilization {-hierarchical -file} report_timing_summary {-file}
  report_pulse_width {-file} report_methodology {-file} report_drc {-file} report_cdc {-details -file}
  get_methodology_violations {-quiet -filter} get_drc_violations {-quiet -filter} get_cdc_violations {-quiet -filter}
  read_verilog {-sv} read_xdc {-mode} synth_design {-top -part -mode -include_dirs}
  ipx::package_project {-root_dir -vendor -library -taxonomy -import_files -force}
  ipx::associate_bus_interfaces {-busif -clock} ipx::create_xgui_files {} ipx::update_checksums {}
  ipx::check_integrity {} ipx::save_core {}
  current_fileset {} current_project {} get_filesets {} get_files {} get_runs {} get_bd_pins {} get_bd_intf_pins {}
  get_bd_addr_spaces {} get_bd_addr_segs {} get_timing_paths {-quiet -setup -hold}
  create_bd_cell {-type -vlnv} make_wrapper {-files -top} report_route_status {-return_string} check_timing {-return_string}
}
set properties {
  file_type top name display_name version ip_repo_paths strategy STEPS.POST_ROUTE_PHYS_OPT_DESIGN.IS_ENABLED
  CONFIG.NUM_SI CONFIG.NUM_MI CONFIG.PCW_FPGA0_PERIPHERAL_FREQMHZ CONFIG.PCW_USE_M_AXI_GP0
  CONFIG.PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ CONFIG.PSU__USE__M_AXI_GP0 CONFIG.PSU__USE__M_AXI_GP1
  CONFIG.PSU__USE__M_AXI_GP2
}
set numbered_properties {
  CONFIG.PCW_USE_S_AXI_HP[0-3] CONFIG.PCW_S_AXI_HP[0-3]_DATA_WIDTH CONFIG.PSU__USE__S_AXI_GP[2-5]
  CONFIG.PSU__SAXIGP[2-5]__DATA_WIDTH
}

proc check_options {name arguments} {
  foreach argument $arguments {
    # A number may begin with a minus; everything else that does is an option.
    if {[regexp {^-[a-z_]+$} $argument] && $argument ni [dict get $::options $name]} {
      error "$name has no option $argument"
    }
  }
}

proc check_property {name} {
  if {$name in $::properties} return
  foreach pattern $::numbered_properties { if {[string match $pattern $name]} return }
  error "no property $name"
}

# Commands whose answer the script does not use, or uses as a name only.
foreach name {
  create_project close_project add_files update_compile_order update_ip_catalog
  ipx::package_project ipx::associate_bus_interfaces ipx::create_xgui_files ipx::update_checksums ipx::check_integrity
  ipx::save_core create_bd_design connect_bd_net connect_bd_intf_net assign_bd_address validate_bd_design save_bd_design
  make_bd_intf_pins_external
  generate_target launch_runs wait_on_run open_run close_design reset_run report_utilization report_timing_summary
  report_pulse_width report_methodology report_drc report_cdc get_methodology_violations get_drc_violations
  read_verilog read_xdc synth_design
} {
  if {[string match ipx::* $name]} { namespace eval ipx {} }
  proc $name {args} "check_options $name \$args; record $name \$args; return {}"
}
foreach name {
  current_fileset current_project get_filesets get_files get_runs get_bd_pins get_bd_intf_pins
  get_bd_addr_spaces get_bd_addr_segs
} {
  proc $name {args} "check_options $name \$args; record $name \$args; return \[lindex \$args end\]"
}

proc set_property {args} {
  record set_property $args
  if {[lindex $args 0] eq "-dict"} {
    foreach {name value} [lindex $args 1] { check_property $name }
  } else {
    check_property [lindex $args 0]
  }
}

# STAND_IN_CRITICAL: how many crossings are critical.
proc get_cdc_violations {args} {
  check_options get_cdc_violations $args
  record get_cdc_violations $args
  if {[lindex $args end] ne "SEVERITY == \"Critical\""} { return {} }
  return [lrepeat [expr {$::env(STAND_IN_CRITICAL) + 0}] crossing]
}

# The kind is the path's name; none where its slack is "none".
proc get_timing_paths {args} {
  check_options get_timing_paths $args
  record get_timing_paths $args
  set kind [lindex $args end]
  if {[dict get $::env(STAND_IN_SLACK) $kind] eq "none"} { return {} }
  return $kind
}
proc ipx::current_core {} { return vta_core }

proc create_bd_cell {args} {
  check_options create_bd_cell $args
  record create_bd_cell $args
  return [lindex $args end]
}

proc make_wrapper {args} {
  check_options make_wrapper $args
  record make_wrapper $args
  return vta_system_wrapper.v
}

# The run's folder, with the files of implementation.
proc get_property {name object} {
  record get_property [list $name $object]
  set folder [file normalize [lindex $::argv 1]]
  switch $name {
    PROGRESS { return 100% }
    SLACK { return [dict get $::env(STAND_IN_SLACK) $object] }
    STATS.TPWS { return $::env(STAND_IN_PULSE) }
    CONFIG.FREQ_HZ { return $::env(STAND_IN_CLOCK) }
    DIRECTORY {
      set run [file join $folder system vta_system.runs impl_1]
      set handoff [file join $folder system vta_system.gen sources_1 bd vta_system hw_handoff]
      file mkdir $run $handoff
      close [open [file join $run vta_system_wrapper.bit] w]
      close [open [file join $handoff vta_system.hwh] w]
      return $run
    }
    default { error "no property $name" }
  }
}

proc report_route_status {args} {
  check_options report_route_status $args
  record report_route_status $args
  return "# of nets with routing errors.......... :           $::env(STAND_IN_ROUTING_ERRORS) :\n"
}

proc check_timing {args} {
  check_options check_timing $args
  record check_timing $args
  return "1. checking no_clock (0)\n2. checking unconstrained_internal_endpoints ($::env(STAND_IN_UNCONSTRAINED))\n"
}

set script [lindex $argv 1]
set argv [lrange $argv 2 end]
info script $script
source $script
