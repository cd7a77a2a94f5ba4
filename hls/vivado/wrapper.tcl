# SPDX-License-Identifier: Apache-2.0
#
# A Verilog module around vta_top: the top of a packaged IP must not be SystemVerilog (UG1118, "Top-Level HDL
# Requirements"), and a port's width be no name out of a package. Its attributes say which ports are a bus (UG994, "List
# of Supported X_ Attributes"), for that is guessed of whole buses, and ours only read or only write.

# The buses of a board's build. The load stage has a master for each read port, the first of which is `load`.
proc buses {board} {
  set masters {fetch load compute store}
  for {set port 1} {$port < [dict get $board read_ports]} {incr port} { lappend masters weights$port }
  return [concat s_axi [lmap master $masters { string cat m_axi_ $master }]]
}

# The parameters of a bus for its other end. Bursts outstanding: docs/microarchitecture.md.
proc bus_parameters {bus} {
  if {$bus eq "s_axi"} { return "PROTOCOL AXI4LITE" }
  set mode [expr {$bus eq "m_axi_store" ? "WRITE" : "READ"}]
  return "PROTOCOL AXI4, READ_WRITE_MODE ${mode}_ONLY, NUM_${mode}_OUTSTANDING 32, SUPPORTS_NARROW_BURST 0"
}

# The ports of vta_top as a list of direction, width and name. A port that it does not understand is an error.
proc top_ports {rtl bus_bits} {
  set file [open [file join $rtl vta_pkg.sv]]
  set text [read $file]
  close $file
  if {![regexp {localparam int unsigned AddrBits = (\d+);} $text all address_bits]} { error "no AddrBits in vta_pkg.sv" }
  set widths [dict create AddrBits $address_bits BusBits $bus_bits BusBytes [expr {$bus_bits / 8}]]
  set file [open [file join $rtl vta_top.sv]]
  set text [read $file]
  close $file
  set ports {}
  foreach line [split [string range $text 0 [string first "\n);" $text]] \n] {
    if {![regexp {^\s*(input|output)\s} $line]} continue
    set form {^\s*(input|output)\s+logic\s+(?:\[(\w+)(-1)?:0\]\s+)?(\w+),?$}
    if {![regexp $form $line all direction left minus_one name]} { error "vta_top.sv: not understood: $line" }
    if {$left eq ""} { set left 0 }
    if {$minus_one ne ""} { set left [expr {[dict get $widths $left] - 1}] }
    lappend ports $direction [expr {$left + 1}] $name
  }
  return $ports
}

# Writes the module `vta`, vta_top with `parameters`, into `folder` and returns its file.
proc verilog_wrapper {rtl board parameters folder} {
  set declared {}
  set unused {}
  set connected {}
  set buses {}
  foreach {direction width name} [top_ports $rtl [dict get $board bus_bits]] {
    set range [expr {$width == 1 ? "" : "\[[expr {$width - 1}]:0\] "}]
    if {[regexp {^(m_axi_[a-z]+\d?)_[a-z]+$} $name all bus] && $bus ni [buses $board]} {
      if {$direction eq "output"} {
        lappend unused "  wire ${range}unused_$name;\n"
        lappend connected "    .${name}(unused_$name)"
      } else {
        lappend connected "    .${name}($width'd0)"
      }
      continue
    }
    set attributes ""
    if {[regexp {^(s_axi|m_axi_[a-z]+\d?)_([a-z]+)$} $name all bus signal]} {
      append attributes "  (* X_INTERFACE_INFO = \"xilinx.com:interface:aximm:1.0 $bus [string toupper $signal]\" *)\n"
      if {$bus ni $buses} {
        append attributes "  (* X_INTERFACE_PARAMETER = \"XIL_INTERFACENAME $bus, [bus_parameters $bus]\" *)\n"
        lappend buses $bus
      }
    }
    if {$name eq "clk"} {
      append attributes "  (* X_INTERFACE_INFO = \"xilinx.com:signal:clock:1.0 clk CLK\" *)\n" \
        "  (* X_INTERFACE_PARAMETER = \"XIL_INTERFACENAME clk, ASSOCIATED_RESET rst_n, ASSOCIATED_BUSIF" \
        " [join [buses $board] :]\" *)\n"
    } elseif {$name eq "rst_n"} {
      append attributes "  (* X_INTERFACE_INFO = \"xilinx.com:signal:reset:1.0 rst_n RST\" *)\n" \
        "  (* X_INTERFACE_PARAMETER = \"XIL_INTERFACENAME rst_n, POLARITY ACTIVE_LOW\" *)\n"
    }
    lappend declared "$attributes  $direction wire $range$name"
    lappend connected "    .${name}($name)"
  }
  set path [file join $folder vta.v]
  set file [open $path w]
  set values [lmap {name value} $parameters { string cat "    .${name}($value)" }]
  puts $file "module vta (\n[join $declared ,\n]\n);\n[join $unused {}]  vta_top #(\n[join $values ,\n]\n  ) u_top ("
  puts $file "[join $connected ,\n]\n  );\nendmodule"
  close $file
  return $path
}
