# SPDX-License-Identifier: Apache-2.0
#
# The RTL and a board's parameters of it.

# The files of rtl/vta.f, and the headers that they include.
proc rtl_files {rtl} {
  set list [open [file join $rtl vta.f]]
  set lines [split [read $list] \n]
  close $list
  set files {}
  foreach line $lines {
    set line [string trim $line]
    if {$line ne "" && ![string match "//*" $line]} { lappend files [file join $rtl $line] }
  }
  return [concat $files [lsort [glob -directory $rtl *.svh]]]
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

# The parameters of vta_top for a board, as a dict. Of 64 instructions, queues fit LUT RAM: block RAM is what the pynq set
# runs out of.
proc top_parameters {parameters board} {
  set values {}
  dict for {key value} [log_parameters $parameters] {
    dict set values [join [lmap word [split $key _] { string totitle $word }] {}] $value
  }
  return [dict merge $values [dict create IsaRevision [dict get $board isa] BusBits [dict get $board bus_bits] \
    HazardInterlock 1 Table 1 ReadPorts [dict get $board read_ports] Window 1 Bands [dict exists $board bands] \
    InsnQueueDepth 64]]
}
