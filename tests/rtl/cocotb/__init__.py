"""The RTL's AXI ports driven by cocotb with the AXI models of cocotbext-axi, which are not ours."""
