// Package mount makes the file system that the program in a jail sees.
//
// The recorder resolves on the host's tree what is wished for (NewPlan); the init, in a mount namespace of its own, builds a World by
// that plan: everything read-only and without devices, fresh /proc, /run and /dev, then what the program may change, as the host's
// directories or as overlays, files that exist inside only, and what covers what must not be seen. Mounts that came from the host are locked
// by the kernel: what is covered stays so.
//
// What cannot be given is told in words (World.NotCovered); what cannot be made is a *step.Error.
//
// Not goals: what namespaces there are, who runs in them, and whether overlays are wanted. On systems other than Linux there are only the
// types of what is wished for.
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
	Path   string
	Data   []byte
	Over   []string
	Behind int // a descriptor of the recorder: Data stands behind what can be read there; 0 for nothing
}
