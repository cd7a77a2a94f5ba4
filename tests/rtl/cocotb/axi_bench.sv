// The accelerator as the AXI models see it: with the IDs that they insist on, its channels watched by axi_rules.sv.
//
// Two inputs make the load and store masters misbehave, to show that the rules see it: tamper_araddr turns an address
// bit over every cycle (of a page, or the model itself would refuse), tamper_wstrb takes one strobe away.

module axi_bench
  import vta_pkg::*;
#(
  `include "vta_parameters.svh"
) (
  input  logic                clk,
  input  logic                rst_n,
  input  logic                tamper_araddr,
  input  logic                tamper_wstrb,
  output logic                fault,
  output logic [4:0]          broken_fetch,
  output logic [4:0]          broken_load,
  output logic [4:0]          broken_compute,
  output logic [4:0]          broken_store,
  output logic [2:0]          broken_store_data,
  // AXI4-Lite slave.
  input  logic [15:0]         s_axi_awaddr,
  input  logic                s_axi_awvalid,
  output logic                s_axi_awready,
  input  logic [31:0]         s_axi_wdata,
  input  logic [3:0]          s_axi_wstrb,
  input  logic                s_axi_wvalid,
  output logic                s_axi_wready,
  output logic [1:0]          s_axi_bresp,
  output logic                s_axi_bvalid,
  input  logic                s_axi_bready,
  input  logic [15:0]         s_axi_araddr,
  input  logic                s_axi_arvalid,
  output logic                s_axi_arready,
  output logic [31:0]         s_axi_rdata,
  output logic [1:0]          s_axi_rresp,
  output logic                s_axi_rvalid,
  input  logic                s_axi_rready,
  // AXI4 read master: fetch.
  output logic [0:0]          m_axi_fetch_arid,
  output logic [AddrBits-1:0] m_axi_fetch_araddr,
  output logic [7:0]          m_axi_fetch_arlen,
  output logic [2:0]          m_axi_fetch_arsize,
  output logic [1:0]          m_axi_fetch_arburst,
  output logic [3:0]          m_axi_fetch_arcache,
  output logic [2:0]          m_axi_fetch_arprot,
  output logic                m_axi_fetch_arvalid,
  input  logic                m_axi_fetch_arready,
  input  logic [0:0]          m_axi_fetch_rid,
  input  logic [BusBits-1:0]  m_axi_fetch_rdata,
  input  logic [1:0]          m_axi_fetch_rresp,
  input  logic                m_axi_fetch_rlast,
  input  logic                m_axi_fetch_rvalid,
  output logic                m_axi_fetch_rready,
  // AXI4 read master: load.
  output logic [0:0]          m_axi_load_arid,
  output logic [AddrBits-1:0] m_axi_load_araddr,
  output logic [7:0]          m_axi_load_arlen,
  output logic [2:0]          m_axi_load_arsize,
  output logic [1:0]          m_axi_load_arburst,
  output logic [3:0]          m_axi_load_arcache,
  output logic [2:0]          m_axi_load_arprot,
  output logic                m_axi_load_arvalid,
  input  logic                m_axi_load_arready,
  input  logic [0:0]          m_axi_load_rid,
  input  logic [BusBits-1:0]  m_axi_load_rdata,
  input  logic [1:0]          m_axi_load_rresp,
  input  logic                m_axi_load_rlast,
  input  logic                m_axi_load_rvalid,
  output logic                m_axi_load_rready,
  // AXI4 read master: compute.
  output logic [0:0]          m_axi_compute_arid,
  output logic [AddrBits-1:0] m_axi_compute_araddr,
  output logic [7:0]          m_axi_compute_arlen,
  output logic [2:0]          m_axi_compute_arsize,
  output logic [1:0]          m_axi_compute_arburst,
  output logic [3:0]          m_axi_compute_arcache,
  output logic [2:0]          m_axi_compute_arprot,
  output logic                m_axi_compute_arvalid,
  input  logic                m_axi_compute_arready,
  input  logic [0:0]          m_axi_compute_rid,
  input  logic [BusBits-1:0]  m_axi_compute_rdata,
  input  logic [1:0]          m_axi_compute_rresp,
  input  logic                m_axi_compute_rlast,
  input  logic                m_axi_compute_rvalid,
  output logic                m_axi_compute_rready,
  // AXI4 write master: store.
  output logic [0:0]          m_axi_store_awid,
  output logic [AddrBits-1:0] m_axi_store_awaddr,
  output logic [7:0]          m_axi_store_awlen,
  output logic [2:0]          m_axi_store_awsize,
  output logic [1:0]          m_axi_store_awburst,
  output logic [3:0]          m_axi_store_awcache,
  output logic [2:0]          m_axi_store_awprot,
  output logic                m_axi_store_awvalid,
  input  logic                m_axi_store_awready,
  output logic [BusBits-1:0]  m_axi_store_wdata,
  output logic [BusBytes-1:0] m_axi_store_wstrb,
  output logic                m_axi_store_wlast,
  output logic                m_axi_store_wvalid,
  input  logic                m_axi_store_wready,
  input  logic [0:0]          m_axi_store_bid,
  input  logic [1:0]          m_axi_store_bresp,
  input  logic                m_axi_store_bvalid,
  output logic                m_axi_store_bready
);

  assign m_axi_fetch_arid = '0;
  assign m_axi_load_arid = '0;
  assign m_axi_compute_arid = '0;
  assign m_axi_store_awid = '0;

  logic phase_q;
  always_ff @(posedge clk) phase_q <= rst_n && !phase_q;
  logic [AddrBits-1:0] load_araddr;
  logic [BusBytes-1:0] store_wstrb;
  assign m_axi_load_araddr = load_araddr ^ (AddrBits'(tamper_araddr && phase_q) << 12);
  assign m_axi_store_wstrb = store_wstrb & ~BusBytes'(tamper_wstrb);

  vta_top #(
    `include "vta_passed.svh"
  ) u_vta (
    .m_axi_load_araddr(load_araddr),
    .m_axi_store_wstrb(store_wstrb),
    // A build of one read port has nothing here.
    .m_axi_weights1_araddr(),
    .m_axi_weights1_arlen(),
    .m_axi_weights1_arsize(),
    .m_axi_weights1_arburst(),
    .m_axi_weights1_arcache(),
    .m_axi_weights1_arprot(),
    .m_axi_weights1_arvalid(),
    .m_axi_weights1_arready(1'b0),
    .m_axi_weights1_rdata('0),
    .m_axi_weights1_rresp('0),
    .m_axi_weights1_rlast(1'b0),
    .m_axi_weights1_rvalid(1'b0),
    .m_axi_weights1_rready(),
    .m_axi_weights2_araddr(),
    .m_axi_weights2_arlen(),
    .m_axi_weights2_arsize(),
    .m_axi_weights2_arburst(),
    .m_axi_weights2_arcache(),
    .m_axi_weights2_arprot(),
    .m_axi_weights2_arvalid(),
    .m_axi_weights2_arready(1'b0),
    .m_axi_weights2_rdata('0),
    .m_axi_weights2_rresp('0),
    .m_axi_weights2_rlast(1'b0),
    .m_axi_weights2_rvalid(1'b0),
    .m_axi_weights2_rready(),
    .m_axi_weights3_araddr(),
    .m_axi_weights3_arlen(),
    .m_axi_weights3_arsize(),
    .m_axi_weights3_arburst(),
    .m_axi_weights3_arcache(),
    .m_axi_weights3_arprot(),
    .m_axi_weights3_arvalid(),
    .m_axi_weights3_arready(1'b0),
    .m_axi_weights3_rdata('0),
    .m_axi_weights3_rresp('0),
    .m_axi_weights3_rlast(1'b0),
    .m_axi_weights3_rvalid(1'b0),
    .m_axi_weights3_rready(),
    .running(),
    .finished(),
    .*
  );

  axi_address_rules #(
    .AddrBits(AddrBits),
    .LogBusBytes(LogBusBytes)
  ) u_fetch_rules (
    .clk,
    .rst_n,
    .valid(m_axi_fetch_arvalid),
    .ready(m_axi_fetch_arready),
    .address(m_axi_fetch_araddr),
    .length(m_axi_fetch_arlen),
    .size(m_axi_fetch_arsize),
    .burst(m_axi_fetch_arburst),
    .cache(m_axi_fetch_arcache),
    .prot(m_axi_fetch_arprot),
    .broken(broken_fetch)
  );

  axi_address_rules #(
    .AddrBits(AddrBits),
    .LogBusBytes(LogBusBytes)
  ) u_load_rules (
    .clk,
    .rst_n,
    .valid(m_axi_load_arvalid),
    .ready(m_axi_load_arready),
    .address(m_axi_load_araddr),
    .length(m_axi_load_arlen),
    .size(m_axi_load_arsize),
    .burst(m_axi_load_arburst),
    .cache(m_axi_load_arcache),
    .prot(m_axi_load_arprot),
    .broken(broken_load)
  );

  axi_address_rules #(
    .AddrBits(AddrBits),
    .LogBusBytes(LogBusBytes)
  ) u_compute_rules (
    .clk,
    .rst_n,
    .valid(m_axi_compute_arvalid),
    .ready(m_axi_compute_arready),
    .address(m_axi_compute_araddr),
    .length(m_axi_compute_arlen),
    .size(m_axi_compute_arsize),
    .burst(m_axi_compute_arburst),
    .cache(m_axi_compute_arcache),
    .prot(m_axi_compute_arprot),
    .broken(broken_compute)
  );

  axi_address_rules #(
    .AddrBits(AddrBits),
    .LogBusBytes(LogBusBytes)
  ) u_store_rules (
    .clk,
    .rst_n,
    .valid(m_axi_store_awvalid),
    .ready(m_axi_store_awready),
    .address(m_axi_store_awaddr),
    .length(m_axi_store_awlen),
    .size(m_axi_store_awsize),
    .burst(m_axi_store_awburst),
    .cache(m_axi_store_awcache),
    .prot(m_axi_store_awprot),
    .broken(broken_store)
  );

  axi_write_data_rules #(
    .BusBits(BusBits)
  ) u_store_data_rules (
    .clk,
    .rst_n,
    .draining(u_vta.drain),
    .valid(m_axi_store_wvalid),
    .ready(m_axi_store_wready),
    .last(m_axi_store_wlast),
    .data(m_axi_store_wdata),
    .strobes(m_axi_store_wstrb),
    .broken(broken_store_data)
  );

endmodule
