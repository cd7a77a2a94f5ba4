# Vivado's commands as recorders: each call is a line of a log, name and arguments apart by tabs; a command not named here is an error.
# Arguments: log, script, then the script's own arguments.

set recorded [open [lindex $argv 0] w]
fconfigure $recorded -buffering line

proc record {name arguments} { puts $::recorded [join [list $name {*}$arguments] \t] }

# Commands whose answer the script does not use, or uses as a name only.
foreach name {
  create_project close_project add_files set_property update_compile_order update_ip_catalog
  ipx::package_project ipx::associate_bus_interfaces ipx::create_xgui_files ipx::update_checksums ipx::check_integrity
  ipx::save_core create_bd_design connect_bd_net connect_bd_intf_net assign_bd_address validate_bd_design save_bd_design
  make_bd_intf_pins_external
  generate_target launch_runs wait_on_run open_run close_design reset_run report_utilization report_timing_summary
  report_pulse_width report_methodology get_methodology_violations
} {
  if {[string match ipx::* $name]} { namespace eval ipx {} }
  proc $name {args} "record $name \$args; return {}"
}
foreach name {
  current_fileset current_project get_filesets get_files get_runs get_timing_paths get_bd_pins get_bd_intf_pins
  get_bd_addr_spaces get_bd_addr_segs
} {
  proc $name {args} "record $name \$args; return \[lindex \$args end\]"
}
proc ipx::current_core {} { return vta_core }

proc create_bd_cell {args} {
  record create_bd_cell $args
  return [lindex $args end]
}

proc make_wrapper {args} {
  record make_wrapper $args
  return vta_system_wrapper.v
}

# The run's folder, with the files of implementation.
proc get_property {name object} {
  record get_property [list $name $object]
  set folder [lindex $::argv 1]
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
  record report_route_status $args
  return "# of nets with routing errors.......... :           $::env(STAND_IN_ROUTING_ERRORS) :\n"
}

proc check_timing {args} {
  record check_timing $args
  return "1. checking no_clock (0)\n2. checking unconstrained_internal_endpoints ($::env(STAND_IN_UNCONSTRAINED))\n"
}

set script [lindex $argv 1]
set argv [lrange $argv 2 end]
info script $script
source $script
