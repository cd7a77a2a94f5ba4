# SPDX-License-Identifier: Apache-2.0
#
# The verdict on an implemented design: clock, routing, timing, methodology, design rules, clock crossings. Each check returns a list of one-line
# problems, and writes its report into `folder`.

# The clock that the block design really gets must be the one that was asked for: a phase-locked loop cannot make every
# frequency, and timing is analysed at what it makes. Raises an error.
proc check_clock {pin clock_mhz} {
  set actual [get_property CONFIG.FREQ_HZ [get_bd_pins $pin]]
  set wanted [expr {$clock_mhz * 1000000.0}]
  if {abs($actual - $wanted) > 0.001 * $wanted} {
    error "clock $pin is [format %.3f [expr {$actual / 1e6}]] MHz, but $clock_mhz MHz was asked for:\
      set clock_mhz in boards.tcl and the manifest to a frequency that the PLL has"
  }
}

# The slack of the worst path in ns; empty where there is no path.
proc worst_slack {kind} {
  set paths [get_timing_paths -quiet -$kind]
  if {![llength $paths]} { return "" }
  return [get_property SLACK [lindex $paths 0]]
}

proc timing_problems {folder clock_mhz} {
  report_timing_summary -file [file join $folder timing.txt]
  report_pulse_width -file [file join $folder pulse_width.txt]
  set problems {}
  foreach kind {setup hold} {
    set slack [worst_slack $kind]
    if {$slack eq ""} {
      lappend problems "$kind timing has no path: nothing is constrained; see $folder/timing.txt"
    } elseif {$slack < 0} {
      lappend problems "$kind timing is missed by [expr {-$slack}] ns at $clock_mhz MHz: see $folder/timing.txt"
    }
  }
  set pulse [get_property STATS.TPWS [get_runs impl_1]]
  if {$pulse eq ""} {
    lappend problems "the run has no figure of pulse width: see $folder/pulse_width.txt"
  } elseif {$pulse < 0} {
    lappend problems "pulse width is missed by [expr {-$pulse}] ns in all: see $folder/pulse_width.txt"
  }
  return $problems
}

proc route_problems {folder} {
  set text [report_route_status -return_string]
  write_report [file join $folder route_status.txt] $text
  set problems {}
  foreach kind {"unrouted nets" "nets with routing errors"} {
    if {[regexp "# of $kind\[. \]*: *(\[0-9\]+)" $text all count] && $count > 0} {
      lappend problems "$count $kind: see $folder/route_status.txt"
    }
  }
  return $problems
}

# check_timing lists "1. checking no_clock (0)" and so on: a path without a clock or a constraint is not analysed.
proc constraint_problems {folder} {
  set text [check_timing -return_string]
  write_report [file join $folder check_timing.txt] $text
  set problems {}
  foreach kind {no_clock constant_clock unconstrained_internal_endpoints multiple_clock loops latch_loops} {
    if {[regexp "checking $kind \\((\[0-9\]+)\\)" $text all count] && $count > 0} {
      lappend problems "check_timing: $kind has $count: see $folder/check_timing.txt"
    }
  }
  return $problems
}

# Violations of methodology, design rules and clock crossings, of which errors and critical warnings are problems. VTA has
# one clock: whatever report_cdc finds critical came with the interconnect.
proc rule_problems {folder} {
  report_methodology -file [file join $folder methodology.txt]
  report_drc -file [file join $folder drc.txt]
  report_cdc -details -file [file join $folder cdc.txt]
  set problems {}
  foreach {rules violations} {
    methodology get_methodology_violations drc get_drc_violations cdc get_cdc_violations
  } {
    foreach severity {Error "Critical Warning" Critical} {
      set count [llength [$violations -quiet -filter "SEVERITY == \"$severity\""]]
      if {$count > 0} { lappend problems "$rules: $count of severity $severity: see $folder/$rules.txt" }
    }
  }
  return $problems
}

proc write_report {path text} {
  set file [open $path w]
  puts -nonewline $file $text
  close $file
}

proc design_problems {folder clock_mhz} {
  report_utilization -hierarchical -file [file join $folder utilization.txt]
  return [concat [route_problems $folder] [timing_problems $folder $clock_mhz] \
    [constraint_problems $folder] [rule_problems $folder]]
}
