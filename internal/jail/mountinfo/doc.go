// Package mountinfo reads which mounts a process sees (proc_pid_mountinfo(5)), and which of them its paths can reach.
//
// Not goals: mounting, and systems other than Linux.
package mountinfo
