// SPDX-License-Identifier: Apache-2.0
//
// For measuring what tests reach: line and toggle coverage, no assertions (coverage counts them as lines).
-O3
--x-assign fast
--x-initial fast
--noassert
--coverage-line
--coverage-toggle
--top-module vta_top
--prefix Vvta_top
-Wno-fatal
-Werror-USERERROR
-DSYNTHESIS
+incdir+../rtl
-F ../rtl/vta.f
rtl_device.cpp
memory_ports.cpp
