// SPDX-License-Identifier: Apache-2.0
//
// The accelerator's sources by level: a file uses only what stands in levels above its own.
// Level 0: what everything shares.
vta_registers_pkg.sv
vta_pkg.sv
// Level 1: primitives.
vta_alu.sv
vta_burst_splitter.sv
vta_chain.sv
vta_counters.sv
vta_dual_port_ram.sv
vta_fifo.sv
vta_first_use.sv
vta_fold.sv
vta_gemm.sv
vta_inp_pads.sv
vta_inp_turns.sv
vta_lanes.sv
vta_nest.sv
vta_ram.sv
vta_sequencer.sv
vta_table.sv
vta_token_queue.sv
vta_window.sv
// Level 2: made of primitives.
vta_acc_bank.sv
vta_axil_regs.sv
vta_block_loader.sv
vta_dma_read.sv
vta_dma_write.sv
vta_operands.sv
vta_out_buffer.sv
vta_pairs.sv
vta_uop_buffer.sv
// Level 3: micro-ops' turns; registers and counters; what the load stage has for each port.
vta_control.sv
vta_issue.sv
vta_load_part.sv
// Level 4: GEMM and ALU.
vta_execute.sv
// Level 5: stages, which never instantiate one another.
vta_compute.sv
vta_fetch.sv
vta_load.sv
vta_store.sv
// Level 6: the accelerator.
vta_top.sv
