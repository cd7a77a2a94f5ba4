// SPDX-License-Identifier: Apache-2.0
//
// What the accelerator is told and what it tells: the registers, whether a program runs, has
// finished or has faulted, the stages' start, stop and reset, and the counters.
//
// A fault stops every stage; a soft reset empties queues and stages, waits until the masters have
// nothing outstanding, and leaves memory and buffers as they are. Stages stand in the order of
// their register pages: 0 fetch, 1 load, 2 compute, 3 store.

module vta_control
  import vta_pkg::*;
  import vta_registers_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  // The state that the registers show too: a program runs or is about to, has finished, has
  // faulted.
  output logic                     running_o,
  output logic                     finished_o,
  output logic                     fault_o,
  // AXI4-Lite slave.
  input  logic [             15:0] awaddr_i,
  input  logic                     awvalid_i,
  output logic                     awready_o,
  input  logic [             31:0] wdata_i,
  input  logic [              3:0] wstrb_i,
  input  logic                     wvalid_i,
  output logic                     wready_o,
  output logic [              1:0] bresp_o,
  output logic                     bvalid_o,
  input  logic                     bready_i,
  input  logic [             15:0] araddr_i,
  input  logic                     arvalid_i,
  output logic                     arready_o,
  output logic [             31:0] rdata_o,
  output logic [              1:0] rresp_o,
  output logic                     rvalid_o,
  input  logic                     rready_i,
  // To the stages. Reset and the order to drain are registers: both go to every stage.
  output logic                     stage_rst_no,
  output logic                     stop_o,           // drain_o of the next cycle
  output logic                     drain_o,
  output logic                     start_fetch_o,    // level
  output logic [Stages-1:1]        enable_o,         // started, and nothing stops it
  output logic                     compute_repeat_o,  // it goes on to the next instruction by itself
  output logic [             31:0] insn_count_o,
  output logic [             31:0] insn_addr_o,
  output logic [             31:0] inp_addr_o,
  output logic [             31:0] wgt_addr_o,
  output logic [             31:0] uop_addr_o,
  output logic [             31:0] bias_addr_o,
  output logic [             31:0] out_addr_o,
  // From the stages.
  input  logic                     fetch_begins_i,   // a program
  input  logic                     fetch_done_i,     // with it
  input  logic                     finish_i,         // FINISH was executed
  input  logic                     idle_i[Stages],   // nothing is outstanding
  input  logic                     fault_i[Stages],
  input  fault_e                   fault_code_i[Stages],
  input  address_t                 fault_address_i[Stages],
  input  logic [              2:0] gemm_issue_i,     // micro-ops of GEMMs
  input  logic                     fetch_blocked_i,  // an instruction waits for room in its queue
  input  logic                     busy_i[Stages],
  input  logic                     stalled_i[Stages],
  input  logic                     beat_i[Stages],
  input  logic [BeatBytesBits-1:0] beat_bytes_i[Stages],
  input  logic                     retire_i[Stages]
);

  // ---- Registers --------------------------------------------------------------------------------
  logic [Stages-1:0] start;
  logic [Stages-1:1] start_next;
  logic soft_reset;

  logic ended[Stages];  // an instruction ended; fetch: its program has
  assign ended[0] = fetch_done_i;
  for (genvar s = 1; s < Stages; s++) begin : g_ended
    assign ended[s] = retire_i[s];
  end
  logic [Stages-1:0][63:0] busy_count, starved_count, stalled_count, bytes_count, instruction_count;
  logic [63:0] cycles_q, gemms_q;
  fault_e fault_code_q;
  address_t fault_address_q;
  logic finished_q, running_q, resetting_q;
  logic fault_q;  // as the code says

  vta_axil_regs #(
    `include "vta_passed.svh"
  ) u_regs (
    .clk_i,
    .rst_ni,
    .awaddr_i,
    .awvalid_i,
    .awready_o,
    .wdata_i,
    .wstrb_i,
    .wvalid_i,
    .wready_o,
    .bresp_o,
    .bvalid_o,
    .bready_i,
    .araddr_i,
    .arvalid_i,
    .arready_o,
    .rdata_o,
    .rresp_o,
    .rvalid_o,
    .rready_i,
    .start_o(start),
    .start_next_o(start_next),
    .compute_repeat_o,
    .retire_i(ended),
    .soft_reset_o(soft_reset),
    .resetting_i(resetting_q),
    .insn_count_o,
    .insn_addr_o,
    .inp_addr_o,
    .wgt_addr_o,
    .uop_addr_o,
    .bias_addr_o,
    .out_addr_o,
    .finished_i(finished_q),
    .fault_code_i(fault_code_q),
    .fault_address_i(fault_address_q),
    .cycles_i(cycles_q),
    .gemms_i(gemms_q),
    .busy_i(busy_count),
    .starved_i(starved_count),
    .stalled_i(stalled_count),
    .bytes_i(bytes_count),
    .instructions_i(instruction_count)
  );

  // ---- Run, fault, soft reset -------------------------------------------------------------------
  logic stop;
  logic [Stages-1:1] enable_q;  // as one register: started and not stopped
  logic stage_rst_nq = 1'b0;  // before the first edge, too
  logic drain_q, resetting, ends, faults;

  // Faults are registered: a fault stops the stages two cycles after the one that shows it. What is
  // known of it means something in the cycle of its flag alone, and its address is kept a cycle
  // after its code.
  logic stage_fault_q[Stages];
  logic any_fault, any_fault_d, any_fault_q;  // of any; all stages wait for the register
  logic [Stages-1:0] raised_q;  // whether a program runs or not: chooses the address
  fault_e stage_fault_code_q[Stages];
  address_t stage_fault_address_q[Stages];
  assign any_fault = stage_fault_q[0] || stage_fault_q[1] || stage_fault_q[2] || stage_fault_q[3];
  always_comb begin
    any_fault_d = 1'b0;
    for (int s = 0; s < Stages; s++) any_fault_d |= fault_i[s];
  end
  always_ff @(posedge clk_i) begin
    any_fault_q <= stage_rst_nq && running_q && any_fault_d;
    for (int s = 0; s < Stages; s++) begin
      stage_fault_q[s] <= stage_rst_nq && running_q && fault_i[s];
      raised_q[s] <= fault_i[s];
      stage_fault_code_q[s] <= fault_code_i[s];
      stage_fault_address_q[s] <= fault_address_i[s];
    end
  end

  always_comb begin
    resetting = 1'b0;
    if (rst_ni) begin
      resetting = soft_reset || (resetting_q && !(idle_i[0] && idle_i[1] && idle_i[2] && idle_i[3]));
    end
  end
  // A fault in the cycle in which a program begins anew is its end.
  assign ends = (any_fault || finish_i) && !drain_q && !finished_q;
  assign faults = ends && any_fault;
  // For a cycle more than resetting, which waits for the masters.
  assign stop = (rst_ni && (soft_reset || resetting_q))
      || (stage_rst_nq && (fault_q || (any_fault_q && !finished_q)));

  // Counts follow by a cycle.
  logic clear_counts, clear_counts_q, counting_q;
  logic [2:0] gemm_issue_q;
  assign clear_counts = !stage_rst_nq || fetch_begins_i;
  always_ff @(posedge clk_i) begin
    clear_counts_q <= clear_counts;
    counting_q <= running_q;
    gemm_issue_q <= gemm_issue_i;
    if (counting_q) begin
      cycles_q <= cycles_q + 1'b1;
      gemms_q <= gemms_q + 64'(gemm_issue_q);
    end
    if (clear_counts_q) begin
      cycles_q <= '0;
      gemms_q <= '0;
    end
  end

  // Of faults in one cycle that of the stage nearest to fetch is kept.
  logic fault_begins_q;
  address_t first_fault_address_q;
  always_ff @(posedge clk_i) begin
    fault_begins_q <= faults;
    for (int s = Stages - 1; s >= 0; s--)
    if (raised_q[s]) first_fault_address_q <= stage_fault_address_q[s];
    if (fault_begins_q) fault_address_q <= first_fault_address_q;
    if (!stage_rst_nq) fault_address_q <= '0;
  end

  always_ff @(posedge clk_i) begin
    if (ends) begin
      for (int s = Stages - 1; s >= 0; s--)
      if (stage_fault_q[s]) fault_code_q <= stage_fault_code_q[s];
      running_q <= 1'b0;
      finished_q <= !any_fault;
      fault_q <= any_fault;
    end
    if (fetch_begins_i && !faults) begin
      running_q <= 1'b1;
      finished_q <= 1'b0;
    end
    if (!stage_rst_nq) begin
      running_q <= 1'b0;
      finished_q <= 1'b0;
      fault_q <= 1'b0;
      fault_code_q <= FaultNone;
    end

    resetting_q <= resetting;
    stage_rst_nq <= rst_ni && !resetting;
    drain_q <= stop;
    enable_q <= stop || !rst_ni ? '0 : start_next;
  end

  assign running_o = running_q || start[0];
  assign finished_o = finished_q;
  assign fault_o = fault_q;
  assign stage_rst_no = stage_rst_nq;
  assign stop_o = stop;
  assign drain_o = drain_q;
  assign enable_o = enable_q;
  assign start_fetch_o = start[0];

  // ---- Counters of the stages -------------------------------------------------------------------
  // Of a stage other than fetch that has nothing in execution: it waits for an instruction or a
  // token.
  for (genvar s = 0; s < Stages; s++) begin : g_counters
    vta_counters #(
      `include "vta_passed.svh"
    ) u_counters (
      .clk_i,
      .clear_i(clear_counts),
      .count_i(running_q),
      .busy_i(busy_i[s]),
      .starved_i(s == 0 ? fetch_blocked_i : !busy_i[s]),
      .stalled_i(stalled_i[s]),
      .beat_i(beat_i[s]),
      .beat_bytes_i(beat_bytes_i[s]),
      .retire_i(retire_i[s]),
      .busy_o(busy_count[s]),
      .starved_o(starved_count[s]),
      .stalled_o(stalled_count[s]),
      .bytes_o(bytes_count[s]),
      .instructions_o(instruction_count[s])
    );
  end

`ifndef SYNTHESIS
  // verilog_format: off
  logic all_idle, two_faults, retired;
  assign retired = retire_i[1] || retire_i[2] || retire_i[3];
  assign all_idle = idle_i[0] && idle_i[1] && idle_i[2] && idle_i[3];
  assign two_faults = stage_fault_q[1] && stage_fault_q[2];

  assert_state : assert property (@(posedge clk_i) disable iff (!rst_ni)
      !(running_q && finished_q) && !(finished_q && fault_q) && !(running_q && fault_q))
  else $error("a program runs, is finished, has faulted: two of these at once");
  assert_fault_kept : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni && stage_rst_nq && fault_q) && stage_rst_nq -> $stable(fault_code_q)
          && ($past(fault_begins_q) || $stable(fault_address_q)))
  else $error("the first fault was not kept");
  assert_fault_flag : assert property (@(posedge clk_i) disable iff (!rst_ni)
      stage_rst_nq -> fault_q == (fault_code_q != FaultNone)
          && (!drain_q || fault_q || $past(resetting_q)))
  else $error("the flag of a fault differs from its code, or stages drain without one");
  assert_any_fault : assert property (@(posedge clk_i) disable iff (!rst_ni)
      any_fault_q == any_fault)
  else $error("the flag of any fault differs from the stages'");
  assert_drain : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni && stage_rst_nq && fault_q) -> drain_q)
  else $error("the stages go on after a fault");
  assert_reset_ends : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni && resetting_q) && !resetting_q -> $past(all_idle))
  else $error("a soft reset ended while a master had something outstanding");
  assert_no_retire : assert property (@(posedge clk_i) disable iff (!rst_ni)
      drain_q && $past(rst_ni && drain_q) -> !retired)
  else $error("an instruction ended after a fault");
  assert_enable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      enable_q == (drain_q ? '0 : start[Stages-1:1]))
  else $error("a stage is enabled that is not started, or the other way round");
  cover_finish : cover property (@(posedge clk_i) rst_ni && finished_q);
  cover_reset_of_run : cover property (@(posedge clk_i) rst_ni && soft_reset && running_q);
  cover_faults : cover property (@(posedge clk_i) rst_ni && two_faults);
  // verilog_format: on
`endif

endmodule
