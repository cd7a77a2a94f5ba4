// Two accelerators of other parameters in one design, each in its bench, whose inputs a check drives.

module two_accelerators;

  // bench_accelerator() of checks.py
  axi_bench #(
    .LogUopBuffSize(11),
    .LogInpBuffSize(13),
    .LogWgtBuffSize(13),
    .LogAccBuffSize(14),
    .IsaRevision(1)
  ) u_first ();

  // second_accelerator() of checks.py
  axi_bench #(
    .LogUopBuffSize(12),
    .LogInpBuffSize(12),
    .LogWgtBuffSize(14),
    .LogAccBuffSize(13),
    .IsaRevision(2),
    .BusBits(128),
    .Table(1'b0),
    .Window(1'b0),
    .InsnQueueDepth(64)
  ) u_second ();

endmodule
