# SPDX-License-Identifier: Apache-2.0
#
# The RTL with a board's parameters: the files of rtl/vta.f, and vta_pkg.sv with the macros written at its head. Macros
# set on a project do not travel with a packaged IP, and only the package reads them.

proc rtl_files {rtl} {
  set list [open [file join $rtl vta.f]]
  set lines [split [read $list] \n]
  close $list
  set files {}
  foreach line $lines {
    set line [string trim $line]
    if {$line ne "" && ![string match "//*" $line]} { lappend files [file join $rtl $line] }
  }
  return $files
}

# LOG_* keys of a TVM parameter file, as a dict.
proc log_parameters {path} {
  set file [open $path]
  set text [read $file]
  close $file
  set parameters {}
  foreach {all key value} [regexp -all -inline {"(LOG_[A-Z_]+)"\s*:\s*(\d+)} $text] { dict set parameters $key $value }
  foreach key {LOG_INP_WIDTH LOG_WGT_WIDTH LOG_ACC_WIDTH LOG_BATCH LOG_BLOCK
               LOG_UOP_BUFF_SIZE LOG_INP_BUFF_SIZE LOG_WGT_BUFF_SIZE LOG_ACC_BUFF_SIZE} {
    if {![dict exists $parameters $key]} { error "$path has no $key: give a VTA parameter file" }
  }
  return $parameters
}

# Writes the configured package into `folder` and returns all source files.
proc configured_sources {rtl parameters board folder} {
  file mkdir $folder
  set package [file join $folder vta_pkg.sv]
  set macros [dict map {key value} [log_parameters $parameters] { format "`define VTA_%s %s" $key $value }]
  set lines [dict values $macros]
  lappend lines "`define VTA_ISA_REVISION [dict get $board isa]"
  lappend lines "`define VTA_BUS_WIDTH [dict get $board bus_bits]"
  lappend lines "`define VTA_HAZARD_INTERLOCK 1"
  lappend lines "`define VTA_TABLE 1"
  lappend lines "`define VTA_READ_PORTS [dict get $board read_ports]"
  lappend lines "`define VTA_WINDOW 1"
  lappend lines "`define VTA_BANDS [dict exists $board bands]"
  # 64 instructions a queue keep the queues in LUT RAM, where block RAM is what the pynq set runs out of.
  lappend lines "`define VTA_INSN_QUEUE_DEPTH 64"
  set in [open [file join $rtl vta_pkg.sv]]
  set out [open $package w]
  puts $out [join $lines \n]
  puts -nonewline $out [read $in]
  close $out
  close $in
  set sources {}
  foreach path [rtl_files $rtl] {
    lappend sources [expr {[file tail $path] eq "vta_pkg.sv" ? $package : $path}]
  }
  return $sources
}
