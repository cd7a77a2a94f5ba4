// SPDX-License-Identifier: Apache-2.0
//
// The lanes of an input element in the order of a LOAD: lane k from lane k + 0, 1, 2 or -1 of
// memory, for shift_i 0 to 3, and zero where there is none. Wires in a build without bands.

module vta_lanes
  import vta_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input  logic               clk_i,  // of the assertions
  input  logic [        1:0] shift_i,
  input  logic [InpBits-1:0] element_i,
  output logic [InpBits-1:0] element_o
);

  localparam int unsigned LaneBits = InpBits / Batch;

  if (Bands) begin : g_bands
    for (genvar lane = 0; lane < Batch; lane++) begin : g_lane
      logic [3:0][LaneBits-1:0] sources;
      for (genvar shift = 0; shift < 4; shift++) begin : g_shift
        localparam int Source = lane + (shift == 3 ? -1 : shift);
        if (Source >= 0 && Source < Batch) begin : g_there
          assign sources[shift] = element_i[Source*LaneBits+:LaneBits];
        end else begin : g_none
          assign sources[shift] = '0;
        end
      end
      assign element_o[lane*LaneBits+:LaneBits] = sources[shift_i];
    end

    if (Batch != 2 && Batch != 4) begin : g_check
      $error("vta_lanes: bands are of two or four lanes");
    end
  end else begin : g_wires
    logic unused_shift;
    assign unused_shift = ^shift_i;
    assign element_o = element_i;
  end

  logic unused_clk;
  assign unused_clk = clk_i;

`ifndef SYNTHESIS
  // verilog_format: off
  assert_unmoved : assert property (@(posedge clk_i)
      shift_i == 2'd0 || !Bands -> element_o == element_i)
  else $error("lanes moved that keep their places");
  assert_from_before : assert property (@(posedge clk_i)
      Bands && shift_i == 2'd3 -> element_o[LaneBits-1:0] == '0)
  else $error("the first lane has an input of the lane before it");
  // verilog_format: on
`endif

endmodule
