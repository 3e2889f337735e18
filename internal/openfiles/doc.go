// Package openfiles knows how many files this process was allowed to open when it started: package syscall raises that, and what is started
// by system calls of our own must have it as it was. So this one imports nothing, and is initialized before syscall.
package openfiles
