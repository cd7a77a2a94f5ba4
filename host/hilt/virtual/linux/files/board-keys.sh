#!/bin/sh
# Take this board's keys and board model from QEMU: one image serves every board.
set -e
modprobe qemu_fw_cfg || true
given=/sys/firmware/qemu_fw_cfg/by_name/opt/board
mkdir -p /run/board
umask 077
cat $given/host_key/raw > /run/board/host_key
umask 022
cat $given/authorized_keys/raw > /run/board/authorized_keys
cat $given/board_model/raw > /run/board/board_model.json
