# The last step of the image, run by mmdebstrap with the root of the new system as its argument.
set -eu
root=$1
# Compiles what the worker imports, which otherwise every new card does at its first start. Ends here if it is not whole.
chroot "$root" env -u PYTHONDONTWRITEBYTECODE -u PYTHONPATH HOME=/root python3 -c 'import numpy, pynq'
chroot "$root" useradd --create-home --shell /bin/sh "$HILT_USER"
rm -f "$root"/etc/ssh/ssh_host_*
echo board > "$root/etc/hostname"
printf '127.0.0.1 localhost board\n' > "$root/etc/hosts"
rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/* "$root"/var/log/*.log
: > "$root/etc/machine-id"
cp "$root"/boot/vmlinuz-* "$HILT_IMAGE/vmlinuz"
cp "$root"/boot/initrd.img-* "$HILT_IMAGE/initrd.img"
chmod 644 "$HILT_IMAGE"/*
# Without what is mounted below it.
bare=$(mktemp -d)
mount --bind "$root" "$bare"
mke2fs -q -t ext4 -L board -d "$bare" "$HILT_IMAGE/card.img" "$HILT_CARD_SIZE"
umount "$bare"
rmdir "$bare"
