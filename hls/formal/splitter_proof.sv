// SPDX-License-Identifier: Apache-2.0
//
// vta_burst_splitter: the bursts are the block. In order, without a gap or an overlap, every row is
// covered by bursts whose beats sum to the row's, no burst is longer than MaxBurstBeats or crosses
// a 4 KiB boundary, and none is shorter than it must be. Any address, length, number of rows and
// stride; the induction makes it hold at any time. With Planes, any number of planes of such rows.

module splitter_proof
  import vta_pkg::*;
#(
  parameter int unsigned MaxBurstBeats = 256,
  parameter bit          Planes = 1'b0,
  `include "vta_parameters.svh"
) (
  input logic                    clk_i,
  input logic                    rst_ni,
  input logic                    clear_i,
  input logic                    start_i,
  input address_t                address_i,
  input logic [RowBeatsBits-1:0] row_last_i,
  input logic [            15:0] rows_i,
  input address_t                stride_i,
  input logic [            15:0] planes_i,
  input address_t                plane_stride_i,
  input logic                    next_i
);

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;

  // The contract: a block begins when the last one is done, is aligned and not empty, and its
  // description holds still.
  logic valid_o;
  logic [RowBeatsBits-1:0] row_last_q;
  address_t stride_q, plane_stride_q;
  logic [15:0] plane_rows_q;
  always_ff @(posedge clk_i) if (start_i) {row_last_q, stride_q} <= {row_last_i, stride_i};
  always_ff @(posedge clk_i)
    if (start_i) {plane_rows_q, plane_stride_q} <= {rows_i, plane_stride_i};
  always_comb begin
    if (!started_q) assume (!rst_ni);
    if (start_i) assume (!valid_o && rows_i != '0);
    if (start_i) assume (address_i[LogBusBytes-1:0] == '0 && stride_i[LogBusBytes-1:0] == '0);
    if (start_i) assume (row_last_i != '1);
    if (start_i) assume (planes_i != '0 && plane_stride_i[LogBusBytes-1:0] == '0);
    if (Planes && start_i && rows_i == 16'd1) assume (stride_i == plane_stride_i);
  end

  address_t address_o;
  logic [7:0] last_beat_o;
  logic unused_single;
  vta_burst_splitter #(
    .MaxBurstBeats(MaxBurstBeats),
    .Planes(Planes),
    `include "vta_passed.svh"
  ) dut (
    .clk_i,
    .rst_ni,
    .clear_i,
    .start_i,
    .address_i,
    .row_last_i(start_i ? row_last_i : row_last_q),
    .rows_i(start_i ? rows_i : plane_rows_q),
    .stride_i(start_i ? stride_i : stride_q),
    .planes_i,
    .plane_stride_i(start_i ? plane_stride_i : plane_stride_q),
    .valid_o,
    .address_o,
    .last_beat_o,
    .single_o(unused_single),
    .next_i
  );

  // What is left of the block: planes, rows of the plane, beats of the row, and where they begin.
  logic [15:0] planes_q, rows_q;
  logic [RowBeatsBits-1:0] left_q, beats;
  address_t address_q, row_q, plane_q, next_row, next_plane;
  logic take;
  assign take = valid_o && next_i;
  assign beats = RowBeatsBits'(last_beat_o) + 1'b1;
  assign next_plane = plane_q + plane_stride_q;
  assign next_row = Planes && rows_q == 16'd1 ? next_plane : row_q + stride_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) begin
      rows_q <= '0;
    end else if (start_i) begin
      planes_q <= Planes ? planes_i : 16'd1;
      rows_q <= rows_i;
      left_q <= row_last_i + 1'b1;
      {address_q, row_q, plane_q} <= {address_i, address_i, address_i};
    end else if (take && beats == left_q) begin
      rows_q <= rows_q - 1'b1;
      if (rows_q == 16'd1 && planes_q != 16'd1) begin
        planes_q <= planes_q - 1'b1;
        rows_q <= plane_rows_q;
        plane_q <= next_plane;
      end
      left_q <= row_last_q + 1'b1;
      {address_q, row_q} <= {next_row, next_row};
    end else if (take) begin
      left_q <= left_q - beats;
      address_q <= address_q + (AddrBits'(beats) << LogBusBytes);
    end
  end

  localparam int unsigned ChunkBits = $clog2(MaxBurstBeats);
  logic [ChunkBits-1:0] begins, ends;  // in beats from a multiple of MaxBurstBeats
  assign begins = address_o[LogBusBytes+:ChunkBits];
  assign ends = begins + ChunkBits'(last_beat_o);

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      a_all : assert (valid_o == (rows_q != '0));
      if (valid_o) begin
        a_address : assert (address_o == address_q);
        a_sum : assert (beats <= left_q);
        a_length : assert (32'(beats) <= MaxBurstBeats);
        a_page : assert (32'(address_o[11:0]) + (32'(beats) << LogBusBytes) <= 4096);
        a_whole : assert (beats == left_q || ends == '1);
        // How the splitter's registers stand to this, for the induction.
        i_left : assert ({dut.rest_q, dut.tail_q} + 1'b1
            == (RowBeatsBits + 1)'(left_q) + (RowBeatsBits + 1)'(begins));
        i_rows : assert (dut.rows_left_q == rows_q && row_last_q != '1 && left_q != '0);
        i_row : assert (dut.next_row_q == next_row);
        i_aligned : assert ({address_q[LogBusBytes-1:0], row_q[LogBusBytes-1:0]} == '0);
        assert (stride_q[LogBusBytes-1:0] == '0);
        i_planes : assert (planes_q != '0 && (Planes || planes_q == 16'd1));
        if (Planes) begin
          i_plane : assert (dut.planes_left_q == planes_q && dut.next_plane_q == next_plane);
          i_held : assert (plane_rows_q != '0 && rows_q <= plane_rows_q);
          assert ({plane_q[LogBusBytes-1:0], plane_stride_q[LogBusBytes-1:0]} == '0);
          assert (plane_rows_q != 16'd1 || stride_q == plane_stride_q);
        end
      end
    end
    c_three_rows : cover (started_q && rst_ni && take && rows_q == 16'd1 && row_q != address_q
        && stride_q != '0);
    c_wraps : cover (started_q && rst_ni && take && beats != left_q && 32'(beats) != MaxBurstBeats);
  end

endmodule
