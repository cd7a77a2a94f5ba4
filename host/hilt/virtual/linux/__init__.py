"""A virtual board that is a computer: Debian on another processor, emulated by QEMU, with an SD card and OpenSSH."""
