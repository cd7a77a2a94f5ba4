// AXI4's rules for a master's channels, watched every cycle: a rule that was ever broken leaves its bit set.
// From the AXI4 specification (Arm IHI 0022): the handshake, bursts, write strobes; and, stricter than it, this
// accelerator's own rule: incrementing bursts of whole beats.

module axi_address_rules #(
  parameter int unsigned AddrBits = 48,
  parameter int unsigned LogBusBytes = 3
) (
  input  logic                clk,
  input  logic                rst_n,
  input  logic                valid,
  input  logic                ready,
  input  logic [AddrBits-1:0] address,
  input  logic [7:0]          length,
  input  logic [2:0]          size,
  input  logic [1:0]          burst,
  input  logic [3:0]          cache,
  input  logic [2:0]          prot,
  output logic [4:0]          broken
);
  localparam logic [3:0] NormalNonCacheable = 4'b0011;  // bufferable, modifiable: memory that the driver flushes
  localparam logic [2:0] DataSecure = 3'b000;           // as the PL's masters are to a Zynq's memory ports
  logic waiting_q;
  logic [AddrBits+19:0] payload, payload_q;
  logic [15:0] end_in_page;
  assign payload = {address, length, size, burst, cache, prot};
  assign end_in_page = 16'(address[11:0]) + ((16'(length) + 16'd1) << size);

  always_ff @(posedge clk) begin
    payload_q <= payload;
    waiting_q <= rst_n && valid && !ready;
    if (!rst_n) begin
      broken <= '0;
    end else begin
      if (waiting_q && !valid) broken[0] <= 1'b1;
      if (waiting_q && payload != payload_q) broken[1] <= 1'b1;
      if (valid && end_in_page > 16'd4096) broken[2] <= 1'b1;
      if (valid && {size, burst} != {3'(LogBusBytes), 2'b01} || valid && address[LogBusBytes-1:0] != '0) begin
        broken[3] <= 1'b1;
      end
      if (valid && {cache, prot} != {NormalNonCacheable, DataSecure}) broken[4] <= 1'b1;
    end
  end
endmodule

module axi_write_data_rules #(
  parameter int unsigned BusBits = 64
) (
  input  logic                 clk,
  input  logic                 rst_n,
  input  logic                 draining,  // beats of bursts that were begun, of a program that has ended
  input  logic                 valid,
  input  logic                 ready,
  input  logic                 last,
  input  logic [BusBits-1:0]   data,
  input  logic [BusBits/8-1:0] strobes,
  output logic [2:0]           broken
);
  logic waiting_q, drained_q;
  logic [BusBits+BusBits/8:0] payload, payload_q;
  assign payload = {last, strobes, data};

  always_ff @(posedge clk) begin
    payload_q <= payload;
    waiting_q <= rst_n && valid && !ready;
    if (!rst_n) begin
      broken <= '0;
      drained_q <= 1'b0;
    end else begin
      drained_q <= draining;
      if (waiting_q && !valid) broken[0] <= 1'b1;
      if (waiting_q && payload != payload_q) broken[1] <= 1'b1;
      if (valid && strobes != '1 && !(strobes == '0 && (draining || drained_q || waiting_q))) broken[2] <= 1'b1;
    end
  end
endmodule
