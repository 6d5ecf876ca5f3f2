#!/bin/sh
# Runs a command in the folder with another Debian, as root and in a mount namespace of its own, so that nothing stays mounted behind it:
#   unshare --mount --pid --fork --kill-child sh enter.sh FOLDER WORKSPACE COMMAND ...
# The workspace lies there where it lies here, because test programs know the absolute paths they were built with.
set -e
folder=$1
workspace=$2
shift 2
mount -t proc proc "$folder/proc"
# Wine takes the processor's name and its caches from there.
mount -t sysfs -o ro sysfs "$folder/sys"
mount -t tmpfs tmpfs "$folder/tmp"
mkdir -p "$folder$workspace"
mount --bind "$workspace" "$folder$workspace"
# A temporary folder of this system does not exist there.
unset TMPDIR LD_LIBRARY_PATH LD_PRELOAD
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
# Not as the first process of its namespace, whom an X server does not tell that it has started.
exec chroot "$folder" /bin/sh -c 'cd "$0" && "$@"; exit $?' "$workspace" "$@"
