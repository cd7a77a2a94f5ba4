// SPDX-License-Identifier: Apache-2.0
//
// The rules of an AXI4-Lite slave's port (AMBA AXI Protocol Specification, IHI 0022). Rules of the
// slave are asserted. Those of the master are asserted in a simulation; in a proof (AssumeMaster)
// they are what the solver may choose from.

module axi4_lite_checker #(
  parameter int unsigned MaxAccesses = 2,  // accepted and not answered, of each kind
  parameter bit AssumeMaster = 1'b0
) (
  input logic        clk_i,
  input logic        rst_ni,
  input logic [15:0] awaddr_i,
  input logic        awvalid_i,
  input logic        awready_i,
  input logic [31:0] wdata_i,
  input logic [ 3:0] wstrb_i,
  input logic        wvalid_i,
  input logic        wready_i,
  input logic [ 1:0] bresp_i,
  input logic        bvalid_i,
  input logic        bready_i,
  input logic [15:0] araddr_i,
  input logic        arvalid_i,
  input logic        arready_i,
  input logic [31:0] rdata_i,
  input logic [ 1:0] rresp_i,
  input logic        rvalid_i,
  input logic        rready_i
);

  logic [7:0] addresses_q, datas_q, reads_q;  // accepted and not answered
  logic write_answered, read_answered;
  assign write_answered = bvalid_i && bready_i;
  assign read_answered = rvalid_i && rready_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      addresses_q <= '0;
      datas_q <= '0;
      reads_q <= '0;
    end else begin
      addresses_q <= addresses_q + 8'(awvalid_i && awready_i) - 8'(write_answered);
      datas_q <= datas_q + 8'(wvalid_i && wready_i) - 8'(write_answered);
      reads_q <= reads_q + 8'(arvalid_i && arready_i) - 8'(read_answered);
    end
  end

  // ---- Slave ------------------------------------------------------------------------------------
  assert_reset : assert property (@(posedge clk_i) disable iff (!rst_ni)
      !$past(rst_ni) -> !bvalid_i && !rvalid_i)
  else $error("BVALID or RVALID is high as the reset ends");
  assert_b_due : assert property (@(posedge clk_i) disable iff (!rst_ni)
      bvalid_i -> addresses_q != '0 && datas_q != '0)
  else $error("a write response before its address and its data");
  assert_b_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni && bvalid_i && !bready_i) -> bvalid_i && $stable(bresp_i))
  else $error("a write response changed before it was accepted");
  assert_r_due : assert property (@(posedge clk_i) disable iff (!rst_ni) rvalid_i -> reads_q != '0)
  else $error("read data that the master did not ask for");
  assert_r_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
      $past(rst_ni && rvalid_i && !rready_i) -> rvalid_i && $stable(rdata_i) && $stable(rresp_i))
  else $error("read data changed before it was accepted");
  assert_responses : assert property (@(posedge clk_i) disable iff (!rst_ni)
      (bvalid_i -> bresp_i != 2'b01) && (rvalid_i -> rresp_i != 2'b01))
  else $error("EXOKAY for a plain access");
  assert_accepted : assert property (@(posedge clk_i) disable iff (!rst_ni)
      32'(addresses_q) <= MaxAccesses && 32'(datas_q) <= MaxAccesses && 32'(reads_q) <= MaxAccesses)
  else $error("the slave accepted more accesses than it can answer");

  // ---- Master -----------------------------------------------------------------------------------
  if (AssumeMaster) begin : g_master
    assume property (@(posedge clk_i) disable iff (!rst_ni) $past(rst_ni && awvalid_i && !awready_i)
          -> awvalid_i && $stable(awaddr_i));
    assume property (@(posedge clk_i) disable iff (!rst_ni) $past(rst_ni && wvalid_i && !wready_i)
          -> wvalid_i && $stable(wdata_i) && $stable(wstrb_i));
    assume property (@(posedge clk_i) disable iff (!rst_ni) $past(rst_ni && arvalid_i && !arready_i)
          -> arvalid_i && $stable(araddr_i));
  end else begin : g_master
    assert_aw_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
        $past(rst_ni && awvalid_i && !awready_i)
          -> awvalid_i && $stable(awaddr_i))
    else $error("a write address changed before it was accepted");
    assert_w_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
        $past(rst_ni && wvalid_i && !wready_i)
          -> wvalid_i && $stable(wdata_i) && $stable(wstrb_i))
    else $error("write data changed before it was accepted");
    assert_ar_stable : assert property (@(posedge clk_i) disable iff (!rst_ni)
        $past(rst_ni && arvalid_i && !arready_i)
          -> arvalid_i && $stable(araddr_i))
    else $error("a read address changed before it was accepted");
  end

  cover_b_waits : cover property (@(posedge clk_i) rst_ni && bvalid_i && !bready_i);
  cover_r_waits : cover property (@(posedge clk_i) rst_ni && rvalid_i && !rready_i);
  cover_data_first : cover property (@(posedge clk_i) rst_ni && datas_q != '0 && addresses_q == '0);

endmodule
