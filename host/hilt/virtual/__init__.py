"""The virtual board: a process tree that behaves as a board on the network, with the Verilated RTL as its FPGA."""
