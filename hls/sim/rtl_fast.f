// Verilator's flags, the RTL and the harness for the fast profile: no assertions, no trace.
-O3
--x-assign fast
--x-initial fast
--noassert
// Elements of a buffer are copied by memcpy, not word by word.
--expand-limit 8
// In a shared library: its functions may be inlined into each other all the same.
-CFLAGS -fno-semantic-interposition
--top-module vta_top
--prefix Vvta_top
-Wno-fatal
-DSYNTHESIS
-F ../rtl/vta.f
rtl_device.cpp
memory_ports.cpp
