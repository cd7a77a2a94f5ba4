// SPDX-License-Identifier: Apache-2.0
//
// Passes the parameters of vta_parameters.svh to an instance: the end of its parameter list.

.LogInpWidth(LogInpWidth),
.LogWgtWidth(LogWgtWidth),
.LogAccWidth(LogAccWidth),
.LogBatch(LogBatch),
.LogBlock(LogBlock),
.LogUopBuffSize(LogUopBuffSize),
.LogInpBuffSize(LogInpBuffSize),
.LogWgtBuffSize(LogWgtBuffSize),
.LogAccBuffSize(LogAccBuffSize),
.IsaRevision(IsaRevision),
.BusBits(BusBits),
.HazardInterlock(HazardInterlock),
.Table(Table),
.ReadPorts(ReadPorts),
.Window(Window),
.Bands(Bands),
.InsnQueueDepth(InsnQueueDepth)
