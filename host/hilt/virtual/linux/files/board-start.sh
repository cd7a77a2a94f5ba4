#!/bin/sh
# Take the keys and the board model from the disk that QEMU gives, and bring the network up; without udev.
set -e
mkdir -p /run/board
for serial in /sys/block/*/serial; do
    if [ "$(cat "$serial")" = given ]; then
        tar -xf "/dev/$(basename "$(dirname "$serial")")" -C /run/board
    fi
done
ip address add 10.0.2.15/24 dev eth0
ip link set eth0 up
