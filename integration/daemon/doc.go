// Package daemon tries tapedeck serve with clients that share no code with it: Python with the websockets package, Node with ws, and
// sockets written byte by byte. They hold the daemon to the behaviours that its protocol promises, read the files of runs, and
// come with what strangers come with: wrong tokens, names that are none, foreign origins, frames that no library sends.
//
// Its tests have the build tag daemon. They build the command, and need the websockets of /usr/bin/python3 (Debian's
// python3-websockets; TAPEDECK_PYTHON names another interpreter) and Node 20 or newer with ws where TAPEDECK_WS says (its
// node_modules; npm/package-lock.json names the version). Without TAPEDECK_WS they install ws into a temporary folder. Each
// case of python/*.py and node/*.mjs is one line of its output, and one subtest.
package daemon
