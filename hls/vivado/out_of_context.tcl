# SPDX-License-Identifier: Apache-2.0
#
# Synthesis of the accelerator alone, for its board's clock: shows early whether Vivado takes the RTL, and what it needs.
# Writes FOLDER/out_of_context/{timing,utilization}.txt. Timing is before placement, so a slack above 0 promises little, and
# one below -20 % of the period ends the build.

proc synthesise_alone {board sources rtl folder} {
  set reports [file join $folder out_of_context]
  file mkdir $reports
  set period [expr {1000.0 / [dict get $board clock_mhz]}]
  create_project -in_memory -part [dict get $board part]
  foreach source $sources {
    switch [file extension $source] {
      .sv { read_verilog -sv [list $source] }
      .v { read_verilog [list $source] }
    }
  }
  set constraints [file join $reports clock.xdc]
  write_report $constraints "create_clock -name clk -period [format %.3f $period] \[get_ports clk\]\n"
  read_xdc -mode out_of_context [list $constraints]
  synth_design -top vta -part [dict get $board part] -mode out_of_context -include_dirs [list $rtl]
  report_timing_summary -file [file join $reports timing.txt]
  report_utilization -hierarchical -file [file join $reports utilization.txt]
  set slack [worst_slack setup]
  close_project
  if {$slack eq ""} { error "synthesis of the accelerator alone has no timed path: see $reports/timing.txt" }
  puts "accelerator alone, before placement: slack [format %.3f $slack] ns of [format %.3f $period]: see $reports"
  if {$slack < -0.2 * $period} {
    error "the accelerator alone misses [dict get $board clock_mhz] MHz by [expr {-$slack}] ns before placement:\
      choose a lower clock_mhz in boards.tcl; see $reports/timing.txt"
  }
}
