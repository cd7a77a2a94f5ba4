// SPDX-License-Identifier: Apache-2.0
//
// For looking at the RTL: every signal as an FST waveform (GTKWave, Surfer), written only when vta_trace asks for it.
-O3
--x-assign fast
--x-initial fast
--noassert
--trace-fst
--trace-structs
--top-module vta_top
--prefix Vvta_top
-Wno-fatal
-Werror-USERERROR
+incdir+../rtl
-F ../rtl/vta.f
rtl_device.cpp
memory_ports.cpp
