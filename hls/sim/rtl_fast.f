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
// Almost all of it is straight code, run once a cycle and as large as an instruction cache: what makes it longer costs.
-CFLAGS -fno-tree-slp-vectorize -CFLAGS -fno-tree-pre -CFLAGS -mtune=generic
-CFLAGS -fno-gcse -CFLAGS -fno-code-hoisting
// The whole library is optimised at once, and nothing of it is replaced when it is loaded: a fifth faster, built faster.
-CFLAGS -flto=auto -CFLAGS -fno-semantic-interposition -CFLAGS -fno-plt
-LDFLAGS -flto=auto
--top-module vta_top
--prefix Vvta_top
-Wno-fatal
-DSYNTHESIS
-F ../rtl/vta.f
rtl_device.cpp
memory_ports.cpp
