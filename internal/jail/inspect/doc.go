// Package inspect reads what a call of another process means: its memory, its descriptors, and what its paths name in the tree of
// directories that it sees.
//
// What was read holds only if the process still waits in its call afterwards, and the process can change it again: it is evidence. Nothing
// is opened but with O_PATH, nothing outside of the process's own tree, and no lookup waits for what stands there.
//
// Not goals: which calls there are, and what becomes of them. On systems other than Linux there is only the type of what is found.
package inspect

// A FilePath names a file, or a place where there is none yet.
type FilePath struct {
	// Path is absolute and clean, as the program sees it. No component of it was a symbolic link when it was looked at,
	// but the last one may be one that the call does not follow.
	Path string
	Dir  int    // an O_PATH descriptor of the directory that holds it, of the jail's own tree
	Name string // its name in Dir
}
