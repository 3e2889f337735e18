package inspect

// A FilePath names a file, or a place where there is none yet.
type FilePath struct {
	// Path is absolute and clean, as the program sees it. No component of it was a symbolic link when it was looked at,
	// but the last one may be one that the call does not follow.
	Path string
	Dir  int    // an O_PATH descriptor of the directory that holds it, of the jail's own tree
	Name string // its name in Dir
}
