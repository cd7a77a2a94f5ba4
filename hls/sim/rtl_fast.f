// SPDX-License-Identifier: Apache-2.0
//
// Verilator's flags, the RTL and the harness for the fast profile: no assertions, no trace.
-O3
--x-assign fast
--x-initial fast
--noassert
// Elements of a buffer are copied by memcpy, not word by word.
--expand-limit 8
// What stands within a branch is evaluated in that branch alone, not as an operand of a conditional expression every cycle.
-fno-dfg
--compiler-include sign_extension.h
--top-module vta_top
--prefix Vvta_top
-Wno-fatal
-Werror-USERERROR
-DSYNTHESIS
split.vlt
+incdir+../rtl
-F ../rtl/vta.f
rtl_device.cpp
memory_ports.cpp
