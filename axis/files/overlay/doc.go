// Package overlay is a tree of files for a program under test: what it writes stands in memory, over a directory that is only read.
//
// A tree begins empty, as a directory is (Options.Dir), or as a tape says that one was (Options.Tape). From there on it is the
// program's own: nothing is written to the directory before WriteBack, and nothing outside it is ever read.
//
//	fs.FS, ReadFileFS, ReadDirFS, StatFS, ReadLinkFS     reading, as package io/fs has it
//	WriteFile, Mkdir, MkdirAll, Remove, Rename, Symlink  writing, as package os has it; WriteFile makes the directories above
//	OpenFile                                             a File that reads and writes anywhere
//	Diff                                                 what changed, as a patch that git apply takes
//	WriteBack                                            what changed, into the directory
//	Copy                                                 the tree as it is, into a real directory; again, where that was one
//	Apply                                                what something else changed, as its doing
//
// Names are those of io/fs: relative, with "/", nothing but UTF-8, no "." or ".." in them; Clean makes one of what people write.
// Letter case counts, whatever the directory's own file system makes of it. A symbolic link is followed within the tree, at most 40
// of them; one that is absolute or leads out of the tree is refused, and so is what is no file, directory or link: it is looked at
// and never opened, is missing from lists, and a read of it is an error that says what stands there.
//
// What a program sees is the same on every machine: a file's permissions are 0644 or 0755, a directory's 0755, and every time is
// Options.Now's. Lists are sorted by bytes.
//
// Errors are *fs.PathError, whose Err wraps an errno (syscall.ENOENT, ENOTDIR, EISDIR, ENOTEMPTY, EEXIST, ELOOP, EACCES, ENOSPC,
// EFBIG, ENAMETOOLONG, EINVAL), so that errors.Is with those of io/fs works too.
//
// On a tape, with Record: a read is a file_read with its content, a list a dir_list with its names, a look or a read of what is not
// there a file_stat, what is written a file_write, what is removed a file_delete with what stood there. A link that is passed is a
// file_read of mode 120000 before that. A File is one file_read at its first read and
// one file_write at its end, or when somebody else comes to what it changed. Every input of the
// program is there, also what it has written itself, so that a Taped tree answers the same program from the tape alone: what the
// program writes stands in memory as ever, what it did not write is what the tape says, path by path in the order of the tape, the
// last answer for ever. A path of which the tape says nothing is an *UnknownError that names the nearest.
//
// Any number of goroutines may use a tree; each call is whole. Records of calls that run side by side stand in any order.
//
// Not goals: owners, access lists, hard links, times, locks; a directory that others change meanwhile is read as it is then.
package overlay
