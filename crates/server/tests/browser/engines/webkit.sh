#!/bin/sh
# Starts the driver of WebKitGTK at port $2 in namespaces of its own, on a display of its own; its
# files go to $3. WebKit looks for its processes and data under /usr alone: what was unpacked to $1
# (nothing where it is installed) is laid over the machine's for this process tree.
set -eu
if [ -n "$1" ]; then
  mount -t overlay overlay -o "lowerdir=$1/usr:/usr" /usr
  export LD_LIBRARY_PATH="$1/lib/x86_64-linux-gnu"
  [ ! -d "$1/etc/fonts/conf.d" ] || export FONTCONFIG_PATH="$1/etc/fonts"
fi
# The display leaves a lock in /tmp when it is killed.
cd "$3"
mkdir tmp
mkfifo display
mount --bind tmp /tmp
Xvfb -displayfd 3 -screen 0 1400x1000x24 -nolisten tcp 3>display 2>/dev/null &
read -r number <display
export DISPLAY=":$number" HOME=/tmp GDK_BACKEND=x11 NO_AT_BRIDGE=1 LIBGL_ALWAYS_SOFTWARE=1
# Not in the place of this shell, which as the first process takes leave of those that ended.
WebKitWebDriver --port="$2"
