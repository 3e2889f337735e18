package mount

// An Overlay shows Lowers merged at Target; what the program writes there goes to Upper. Target need not exist. Upper
// and Work are directories of one parent, on a file system that can hold an upper layer, outside every lower; Work is empty.
// Upper may hold the topmost layer, unless something is mounted below Target or a lower (MountsBelow); it is empty then.
//
// What is mounted below Target on the host, where that is one of Lowers, can be changed as it could be on the host: it is an
// overlay of its own, whose layers lie beside Upper. Where its file system cannot be a layer it is copied, up to 1 GiB; beyond
// that it is read-only, which NotCovered tells. What is no file system of files (proc, say) is read-only.
//
// Where mounts below Lowers cannot be taken away, which takes root, the overlay is split into several: Upper then holds
// the files of the directories above those mounts in full and no whiteouts there, so that only the merged tree, from
// OpenRoot, is whole.
type Overlay struct {
	Target string
	Lowers []string // topmost first
	Upper  string
	Work   string
}

// A File is read-only and exists inside only. Path must lie under /run, which is empty otherwise. Those of Over that
// exist on the host show the same bytes.
type File struct {
	Path string
	Data []byte
	Over []string
}
