// Package stage is what runs inside of a jail before its program does: the init (PID 1) and the exec stage, which becomes the program. The init
// is the recorder's own executable, started again, and the exec stage its child. They talk with the recorder over a control socket each.
//
//	recorder  starts the init, which may be long before the program is known
//	init      makes its mounts private and a fresh /proc, which most often cannot be had, and waits
//	recorder  plans the mounts on the host's tree and hands the plan over
//	init      makes mounts, routes and sockets, hands the sockets out
//	exec      is forked, drops every capability, installs the filter, hands its listener out, tries one notification
//	recorder  is told that all stands, and lets the exec stage become the program
//
// The init ends when the recorder's end of its socket closes, and the kernel ends everything in the PID namespace with it. A program
// on a terminal is a job of the init's session.
//
// Not goals: what the recorder does with what it is handed. On systems other than Linux there is nothing here.
package stage
