// Package durable puts files in place whole or not at all.
//
// Replacing a file is this sequence of system calls, in the directory of the final name:
//
//	open(temporary name, O_CREAT|O_EXCL, 0600)
//	write …
//	fchmod             only where the mode is not 0600
//	fsync(file)        only with Sync
//	close
//	rename(temporary name, final name)
//	fsync(directory)   only with Sync
//
// Whatever kills the writer in between, the final name holds its old content or the new one, and at worst a temporary
// file stays behind, whose name begins with TempPrefix. Without Sync that holds for the death of the process; with Sync
// it holds for the loss of power too, and the new content is on the disk when the call returns.
//
// Windows has no fsync of a directory; there the last step is left to the file system's journal.
package durable
