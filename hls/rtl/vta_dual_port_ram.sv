// A memory with two ports: a writes or reads, b reads. Reading the word being written gives its old value.
// a_data_o and b_data_o have the word of the last cycle in which their port read. Contents are zero after configuration
// and kept through every reset.

module vta_dual_port_ram #(
  parameter int unsigned Width = 8,
  parameter int unsigned Depth = 2
) (
  input  logic                     clk_i,
  input  logic                     a_write_i,
  input  logic                     a_read_i,
  input  logic [$clog2(Depth)-1:0] a_index_i,
  input  logic [        Width-1:0] a_data_i,
  output logic [        Width-1:0] a_data_o,
  input  logic                     b_read_i,
  input  logic [$clog2(Depth)-1:0] b_index_i,
  output logic [        Width-1:0] b_data_o
);

  (* ram_style = "block" *) logic [Width-1:0] memory[Depth];
  logic [Width-1:0] a_data_q, b_data_q;

  initial for (int n = 0; n < Depth; n++) memory[n] = '0;

  always_ff @(posedge clk_i) begin
    if (a_read_i) a_data_q <= memory[a_index_i];
    if (b_read_i) b_data_q <= memory[b_index_i];
    if (a_write_i) memory[a_index_i] <= a_data_i;
  end

  assign a_data_o = a_data_q;
  assign b_data_o = b_data_q;

endmodule
