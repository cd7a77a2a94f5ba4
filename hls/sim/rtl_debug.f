// SPDX-License-Identifier: Apache-2.0
//
// For finding faults in the RTL: assertions, the rules of AXI at every port, random initial values.
-O2
--x-assign unique
--x-initial unique
--assert
-CFLAGS -DVTA_ASSERTIONS=1
--top-module vta_top
--prefix Vvta_top
-Wno-fatal
-Werror-USERERROR
+incdir+../rtl
-F ../rtl/vta.f
-F ../formal/checkers/checkers.f
rtl_device.cpp
memory_ports.cpp
