package overlay

import (
	"io/fs"
	"path"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/axis/files"
)

// maxLinks is how many symbolic links one path may pass.
const maxLinks = 40

// dirLook is any directory.
var dirLook = look{mode: files.Dir | 0o755}

// A place is what a path leads to.
type place struct {
	look
	path  string // without links
	up    *node  // what the run made of it; nil where it did not
	below bool   // the lower layer is seen at the path
	over  bool   // it is seen in the directory that holds the path
	links []link // that were passed
	// Of a path that cannot be reached because a directory is missing: the whole of it, "" where a link leads to what is missing.
	missing string
	linked  bool // the last name is a link's
}

// A link is a symbolic link that was passed.
type link struct{ path, target string }

// A step is a directory on the way: what the run made of it, and whether the lower layer is seen in it.
type step struct {
	path  string
	up    *node
	below bool
}

func (s *step) place() place {
	return place{look: dirLook, path: s.path, up: s.up, below: s.below}
}

// bar makes p a place that is not let through, and returns why.
func (p *place) bar(why *reason) error {
	p.look = look{barred: why}
	return why
}

// A walker goes along a path, name by name. It is used under tree.mu.
type walker struct {
	t      *tree
	cur    step
	ups    []step // the directories above cur
	room   [8]step
	links  []link
	name   string // the path
	rest   string // what is left of it
	own    int    // how much of rest, at its end, is no link's target
	plain  bool   // rest is the end of name: no link was passed
	follow bool   // a link in the last place is passed
}

// walk goes to name. A link in the last place is passed where follow is set. What is not there is no error in the last place, and
// errNone before; the place is then what there is to say of it. Errors are a *reason, or of a tape. It is called under mu.
func (t *tree) walk(name string, a ask, follow bool) (place, error) {
	top := step{".", t.top, t.low != nil}
	if name == "." {
		return t.lookTop(&top, a)
	}
	w := walker{t: t, cur: top, name: name, rest: name, own: len(name), plain: true, follow: follow}
	w.ups = w.room[:0]
	for {
		at, done, err := w.next(a)
		if done || err != nil {
			at.links = w.links
			return at, err
		}
	}
}

// lookTop asks for the tree itself: a tape answers that by turns too.
func (t *tree) lookTop(top *step, a ask) (place, error) {
	at := top.place()
	if t.low == nil || a != askRead && a != askOpen && a != askStat && a != askList {
		return at, nil
	}
	l, err := t.low.look(".", a)
	at.from = l.from
	return at, err
}

// next goes on by one name.
func (w *walker) next(a ask) (at place, done bool, err error) {
	part, more, further := strings.Cut(w.rest, "/")
	if part == "" || part == "." || part == ".." { // of a link's target
		return w.aside(part, more, further)
	}
	wanted := a
	if further {
		wanted = askWalk
	}
	at, err = w.t.kid(&w.cur, part, w.full(part, more, further), wanted)
	switch {
	case err != nil:
		return at, true, err
	case at.mode.IsLink() && (w.follow || further):
		err = w.pass(&at, more, further)
		return at, false, err
	case !further:
		at.linked = len(w.rest) > w.own
		return at, true, nil
	case !at.mode.IsDir():
		return at, true, w.lost(&at, more, a)
	}
	w.ups = append(w.ups, w.cur)
	w.cur, w.rest = step{at.path, at.up, at.below}, more
	return at, false, nil
}

// full is the path of the next name: a part of the one that was asked for, while that holds no link.
func (w *walker) full(part, more string, further bool) string {
	switch {
	case !w.plain:
		return join(w.cur.path, part)
	case further:
		return w.name[:len(w.name)-len(more)-1]
	}
	return w.name
}

// aside goes on by what is no name.
func (w *walker) aside(part, more string, further bool) (place, bool, error) {
	if part == ".." {
		if len(w.ups) == 0 {
			at := w.cur.place()
			at.path = w.links[len(w.links)-1].path
			return at, true, at.bar(errLinkAway)
		}
		w.cur, w.ups = w.ups[len(w.ups)-1], w.ups[:len(w.ups)-1]
	}
	w.rest = more
	return w.cur.place(), !further, nil
}

// pass goes on behind a link.
func (w *walker) pass(at *place, more string, further bool) error {
	w.links = append(w.links, link{at.path, at.target})
	switch {
	case at.target == "": // of a tape
		return &UnknownError{Op: "read", Path: at.path, Why: "the tape says that " + at.path + " is a link, not where it leads"}
	case len(w.links) > maxLinks:
		return at.bar(errManyLinks)
	case strings.HasPrefix(at.target, "/"):
		return at.bar(errLinkAway)
	}
	w.plain = false
	w.own = min(w.own, len(more))
	if w.rest = at.target; further {
		w.rest += "/" + more
	}
	return nil
}

// kid looks at a name in a directory.
func (t *tree) kid(s *step, name, full string, a ask) (place, error) {
	p := place{path: full, below: s.below, over: s.below}
	if s.up != nil {
		p.up = s.up.kids[name]
	}
	switch {
	case p.up != nil:
		if p.up.pending != nil && t.rec != nil {
			t.flush(p.up.pending)
		}
		p.look = p.up.seen()
		p.below = s.below && p.mode.IsDir() && !p.up.opaque
	case s.below:
		l, err := t.low.look(full, a)
		if p.look = l; err != nil {
			return p, err
		}
		if l.barred != nil {
			return p, l.barred
		}
	}
	return p, nil
}

// lost is the error of a path that goes on with more below at, which is no directory. Where nothing stands there a reader is told so of
// the whole path, a writer of the directory that it lacks.
func (w *walker) lost(at *place, more string, a ask) error {
	if at.mode != 0 {
		return &reason{errno: syscall.ENOTDIR, text: at.path + " is no directory"}
	}
	whole := path.Clean(at.path + "/" + more)
	if len(w.rest) <= w.own {
		at.missing = whole
	}
	if a != askChange && a != askMake {
		at.path = whole
	}
	return errNone
}

// Limits on names, in bytes: those of Linux.
const (
	maxPathLen = 4096
	maxNameLen = 255
)

// shownPath is how much of a path stands in an error, in bytes.
const shownPath = 200

// A reason says in words why something failed, and which errno that is.
type reason struct {
	errno syscall.Errno
	text  string
	own   bool // it follows from what was asked for, and from the links that were passed; else it says what stands there
}

func (r *reason) Error() string { return r.text }

// Unwrap gives errors.Is the errno, and with it the errors of io/fs.
func (r *reason) Unwrap() error { return r.errno }

var (
	errAbsolute  = &reason{errno: syscall.EINVAL, text: "the path is absolute: give one relative to the tree", own: true}
	errOut       = &reason{errno: syscall.EINVAL, text: "the path leads out of the tree", own: true}
	errNUL       = &reason{errno: syscall.EINVAL, text: "the path holds a NUL", own: true}
	errNotUTF8   = &reason{errno: syscall.EINVAL, text: "the path is not UTF-8", own: true}
	errUnclean   = &reason{errno: syscall.EINVAL, text: "the path is not clean: want names with one slash between, none of them . or ..", own: true}
	errLongName  = &reason{errno: syscall.ENAMETOOLONG, text: "a name in the path is longer than 255 bytes", own: true}
	errLongPath  = &reason{errno: syscall.ENAMETOOLONG, text: "the path is longer than 4096 bytes", own: true}
	errTop       = &reason{errno: syscall.EINVAL, text: "it is the tree itself", own: true}
	errIntoSelf  = &reason{errno: syscall.EINVAL, text: "a directory cannot move into itself", own: true}
	errTarget    = &reason{errno: syscall.EINVAL, text: "the target is not UTF-8 of 1 to 4096 bytes without a NUL", own: true}
	errClosed    = &reason{errno: syscall.EBADF, text: "the file is closed", own: true}
	errNotOpened = &reason{errno: syscall.EBADF, text: "the file was not opened for that", own: true}
	errNegative  = &reason{errno: syscall.EINVAL, text: "the offset is negative", own: true}

	errNone       = &reason{errno: syscall.ENOENT, text: "no such file or directory"}
	errThere      = &reason{errno: syscall.EEXIST, text: "something stands there already"}
	errIsDir      = &reason{errno: syscall.EISDIR, text: "it is a directory"}
	errNoDir      = &reason{errno: syscall.ENOTDIR, text: "it is no directory"}
	errNotEmpty   = &reason{errno: syscall.ENOTEMPTY, text: "the directory is not empty"}
	errNoLink     = &reason{errno: syscall.EINVAL, text: "it is no symbolic link"}
	errWasRefused = &reason{errno: syscall.EACCES, text: "the tape says that what stands there was refused"}
	errManyLinks  = &reason{errno: syscall.ELOOP, text: "too many symbolic links on the way: more than 40", own: true}
	errLinkAway   = &reason{errno: syscall.EACCES, text: "a symbolic link on the way leads out of the tree", own: true}
)

// Clean returns name as the functions of this package take it: "./a//b/" is "a/b", "" is ".". The error, a *fs.PathError, is of a
// path that is absolute or leads out of the tree, and of what no name can be.
func Clean(name string) (string, error) {
	if strings.HasPrefix(name, "/") {
		return "", failure("clean", name, errAbsolute)
	}
	clean := path.Clean(name)
	return clean, check("clean", clean)
}

// check refuses what is no name of this package.
func check(op, name string) error {
	if why := checkName(name); why != nil {
		return failure(op, name, why)
	}
	return nil
}

func checkName(name string) *reason {
	switch {
	case len(name) > maxPathLen:
		return errLongPath
	case strings.IndexByte(name, 0) >= 0:
		return errNUL
	case !utf8.ValidString(name):
		return errNotUTF8
	case strings.HasPrefix(name, "/"):
		return errAbsolute
	case name == ".." || strings.HasPrefix(name, "../"):
		return errOut
	case !fs.ValidPath(name):
		return errUnclean
	}
	return checkLength(name)
}

func checkLength(name string) *reason {
	if len(name) <= maxNameLen {
		return nil
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > maxNameLen {
			return errLongName
		}
	}
	return nil
}

// failure is the error of an operation on a path.
func failure(op, name string, err error) error {
	if len(name) > shownPath {
		name = strings.ToValidUTF8(name[:shownPath], "") + "…"
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// join appends a name to a directory, "." being the tree itself.
func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}
