// SPDX-License-Identifier: Apache-2.0
//
// A checker at every port of the accelerator, for simulations with assertions.

bind vta_top axi4_lite_checker u_check_registers (
  .clk_i(clk),
  .rst_ni(rst_n),
  .awaddr_i(s_axi_awaddr),
  .awvalid_i(s_axi_awvalid),
  .awready_i(s_axi_awready),
  .wdata_i(s_axi_wdata),
  .wstrb_i(s_axi_wstrb),
  .wvalid_i(s_axi_wvalid),
  .wready_i(s_axi_wready),
  .bresp_i(s_axi_bresp),
  .bvalid_i(s_axi_bvalid),
  .bready_i(s_axi_bready),
  .araddr_i(s_axi_araddr),
  .arvalid_i(s_axi_arvalid),
  .arready_i(s_axi_arready),
  .rdata_i(s_axi_rdata),
  .rresp_i(s_axi_rresp),
  .rvalid_i(s_axi_rvalid),
  .rready_i(s_axi_rready)
);

bind vta_top axi4_read_checker #(
  .AddrBits(vta_pkg::AddrBits),
  .DataBits(BusBits),
  .MaxBeats(16)
) u_check_fetch (
  .clk_i(clk),
  .rst_ni(rst_n),
  .araddr_i(m_axi_fetch_araddr),
  .arlen_i(m_axi_fetch_arlen),
  .arsize_i(m_axi_fetch_arsize),
  .arburst_i(m_axi_fetch_arburst),
  .arvalid_i(m_axi_fetch_arvalid),
  .arready_i(m_axi_fetch_arready),
  .rdata_i(m_axi_fetch_rdata),
  .rresp_i(m_axi_fetch_rresp),
  .rlast_i(m_axi_fetch_rlast),
  .rvalid_i(m_axi_fetch_rvalid),
  .rready_i(m_axi_fetch_rready)
);

bind vta_top axi4_read_checker #(
  .AddrBits(vta_pkg::AddrBits),
  .DataBits(BusBits),
  .MaxBeats(256)
) u_check_load (
  .clk_i(clk),
  .rst_ni(rst_n),
  .araddr_i(m_axi_load_araddr),
  .arlen_i(m_axi_load_arlen),
  .arsize_i(m_axi_load_arsize),
  .arburst_i(m_axi_load_arburst),
  .arvalid_i(m_axi_load_arvalid),
  .arready_i(m_axi_load_arready),
  .rdata_i(m_axi_load_rdata),
  .rresp_i(m_axi_load_rresp),
  .rlast_i(m_axi_load_rlast),
  .rvalid_i(m_axi_load_rvalid),
  .rready_i(m_axi_load_rready)
);

bind vta_top axi4_read_checker #(
  .AddrBits(vta_pkg::AddrBits),
  .DataBits(BusBits),
  .MaxBeats(256)
) u_check_weights1 (
  .clk_i(clk),
  .rst_ni(rst_n),
  .araddr_i(m_axi_weights1_araddr),
  .arlen_i(m_axi_weights1_arlen),
  .arsize_i(m_axi_weights1_arsize),
  .arburst_i(m_axi_weights1_arburst),
  .arvalid_i(m_axi_weights1_arvalid),
  .arready_i(m_axi_weights1_arready),
  .rdata_i(m_axi_weights1_rdata),
  .rresp_i(m_axi_weights1_rresp),
  .rlast_i(m_axi_weights1_rlast),
  .rvalid_i(m_axi_weights1_rvalid),
  .rready_i(m_axi_weights1_rready)
);

bind vta_top axi4_read_checker #(
  .AddrBits(vta_pkg::AddrBits),
  .DataBits(BusBits),
  .MaxBeats(256)
) u_check_weights2 (
  .clk_i(clk),
  .rst_ni(rst_n),
  .araddr_i(m_axi_weights2_araddr),
  .arlen_i(m_axi_weights2_arlen),
  .arsize_i(m_axi_weights2_arsize),
  .arburst_i(m_axi_weights2_arburst),
  .arvalid_i(m_axi_weights2_arvalid),
  .arready_i(m_axi_weights2_arready),
  .rdata_i(m_axi_weights2_rdata),
  .rresp_i(m_axi_weights2_rresp),
  .rlast_i(m_axi_weights2_rlast),
  .rvalid_i(m_axi_weights2_rvalid),
  .rready_i(m_axi_weights2_rready)
);

bind vta_top axi4_read_checker #(
  .AddrBits(vta_pkg::AddrBits),
  .DataBits(BusBits),
  .MaxBeats(256)
) u_check_weights3 (
  .clk_i(clk),
  .rst_ni(rst_n),
  .araddr_i(m_axi_weights3_araddr),
  .arlen_i(m_axi_weights3_arlen),
  .arsize_i(m_axi_weights3_arsize),
  .arburst_i(m_axi_weights3_arburst),
  .arvalid_i(m_axi_weights3_arvalid),
  .arready_i(m_axi_weights3_arready),
  .rdata_i(m_axi_weights3_rdata),
  .rresp_i(m_axi_weights3_rresp),
  .rlast_i(m_axi_weights3_rlast),
  .rvalid_i(m_axi_weights3_rvalid),
  .rready_i(m_axi_weights3_rready)
);

bind vta_top axi4_read_checker #(
  .AddrBits(vta_pkg::AddrBits),
  .DataBits(BusBits),
  .MaxBeats(256)
) u_check_compute (
  .clk_i(clk),
  .rst_ni(rst_n),
  .araddr_i(m_axi_compute_araddr),
  .arlen_i(m_axi_compute_arlen),
  .arsize_i(m_axi_compute_arsize),
  .arburst_i(m_axi_compute_arburst),
  .arvalid_i(m_axi_compute_arvalid),
  .arready_i(m_axi_compute_arready),
  .rdata_i(m_axi_compute_rdata),
  .rresp_i(m_axi_compute_rresp),
  .rlast_i(m_axi_compute_rlast),
  .rvalid_i(m_axi_compute_rvalid),
  .rready_i(m_axi_compute_rready)
);

bind vta_top axi4_write_checker #(
  .AddrBits(vta_pkg::AddrBits),
  .DataBits(BusBits)
) u_check_store (
  .clk_i(clk),
  .rst_ni(rst_n),
  .awaddr_i(m_axi_store_awaddr),
  .awlen_i(m_axi_store_awlen),
  .awsize_i(m_axi_store_awsize),
  .awburst_i(m_axi_store_awburst),
  .awvalid_i(m_axi_store_awvalid),
  .awready_i(m_axi_store_awready),
  .wdata_i(m_axi_store_wdata),
  .wstrb_i(m_axi_store_wstrb),
  .wlast_i(m_axi_store_wlast),
  .wvalid_i(m_axi_store_wvalid),
  .wready_i(m_axi_store_wready),
  .bresp_i(m_axi_store_bresp),
  .bvalid_i(m_axi_store_bvalid),
  .bready_i(m_axi_store_bready)
);
