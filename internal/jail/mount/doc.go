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
