package files

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// A Tree is a snapshot of a directory, or, where it is partial, of the paths in it that a run touched.
type Tree struct {
	Root       string       // the absolute path that it was taken from
	MTime      int64        // when that was last written, as Entry.MTime; 0 for not known
	Entries    []Entry      // in ascending order of Path, byte by byte; the root itself is not listed
	NotCovered []NotCovered // in ascending order of Path

	// Partial says that the tree speaks of its entries, of Absent and of nothing else: what it does not name is as it is.
	Partial bool
	// Absent holds paths at which nothing stood, and so nothing below: the topmost only, in ascending order. The directory
	// that holds one is an entry, or the root. It is of partial trees, and of whole ones that were joined with one (With).
	Absent []string
	// Moved holds directories that the run renamed, in ascending order: an overlay renames none that lie in a lower layer, so
	// that BuildLayer must hold them whole. All that the run found below is among the entries.
	Moved []string
}

// An Entry is one directory, regular file, symbolic link or FIFO.
type Entry struct {
	Path   string     // relative to the root, with /; its true bytes, UTF-8 or not
	Mode   Mode       // type and permissions
	Size   int64      // length of the stored bytes; of regular files only
	Digest cas.Digest // of the stored bytes; of regular files only
	Target string     // of symbolic links only
	Secret string     // keyed digest of the true bytes where the stored ones are scrubbed; "" for none
	// Attrs are the extended attributes user.* of a file or directory: a JSON object in the order of their names, of values in
	// base64, and null for one that holds a secret. "" for none.
	Attrs string
	// MTime is when it was last written, in ns since the epoch; 0 for not known. It is no part of what compares: a build tool
	// that finds its outputs newer than its inputs where the run did not would do something else.
	MTime int64
}

// A NotCovered is a path that the snapshot left out, and with it everything below.
type NotCovered struct {
	Path   string
	Reason Reason
}

// A Reason says why a path is not covered.
type Reason string

// The reasons.
const (
	Ignored    Reason = "ignored"    // a rule of .gitignore or .git/info/exclude
	TooLarge   Reason = "too_large"  // a file over SnapOptions.MaxFileSize
	Special    Reason = "special"    // a socket or device
	Unreadable Reason = "unreadable" // no permission, or an error of the file system
	Excluded   Reason = "excluded"   // recordings, and SnapOptions.Exclude
	SecretName Reason = "secret"     // a secret stands in the name, or in the target of a link; Path is scrubbed
	TooMany    Reason = "too_many"   // below a directory that was renamed: more than a Journal keeps at once
	Linked     Reason = "linked"     // written through one of several hard links, which the run did not make: the others are not seen
)

func (r Reason) known() bool {
	switch r {
	case Ignored, TooLarge, Special, Unreadable, Excluded, SecretName, TooMany, Linked:
		return true
	}
	return false
}

// Lookup returns the entry of a path.
func (t *Tree) Lookup(path string) (*Entry, bool) {
	i, ok := slices.BinarySearchFunc(t.Entries, path, func(e Entry, p string) int { return cmp.Compare(e.Path, p) })
	if !ok {
		return nil, false
	}
	return &t.Entries[i], true
}

// at returns the entry of a path, nil where there is none, or no tree.
func (t *Tree) at(path string) *Entry {
	if t == nil {
		return nil
	}
	e, _ := t.Lookup(path)
	return e
}

// TakeTimes gives what is as it was in another tree the times that it had there. What differs stays younger than all of that, as who compares
// times (make, find -newer) expects of what was changed: it keeps its times, moved on together where one of them is older.
func (t *Tree) TakeTimes(was *Tree) {
	listed := make(map[string]bool) // directories in which something came or went
	for _, trees := range [][2]*Tree{{t, was}, {was, t}} {
		for _, e := range trees[0].Entries {
			if trees[1].at(e.Path) == nil {
				listed[parentOf(e.Path)] = true
			}
		}
	}
	var differ []*int64
	var newest int64
	oldest := int64(math.MaxInt64)
	take := func(at *int64, then int64, same bool) {
		switch {
		case *at == 0 || same && then == 0: // not known
		case same:
			*at, newest = then, max(newest, then)
		default:
			differ, oldest = append(differ, at), min(oldest, *at)
		}
	}
	take(&t.MTime, was.MTime, !listed[""])
	for i := range t.Entries {
		e := &t.Entries[i]
		now, then := *e, was.at(e.Path)
		same := then != nil && !listed[e.Path]
		if same {
			now.MTime = then.MTime
			same = now == *then
		}
		take(&e.MTime, now.MTime, same)
	}
	if oldest <= newest {
		for _, at := range differ {
			*at += newest - oldest + 1
		}
	}
}

// LeaveOut lists a path, at which the tree has nothing, in NotCovered.
func (t *Tree) LeaveOut(path string, why Reason) {
	t.NotCovered = append(t.NotCovered, NotCovered{Path: path, Reason: why})
	t.sort()
}

// Covers reports whether neither path nor a directory above it is listed in NotCovered.
func (t *Tree) Covers(path string) bool {
	for p := path; p != ""; p = parentOf(p) {
		_, hit := slices.BinarySearchFunc(t.NotCovered, p, func(n NotCovered, p string) int { return cmp.Compare(n.Path, p) })
		if hit {
			return false
		}
	}
	return true
}

// With returns t together with a partial tree of the same root: what t does not cover, as the run found it. Where both name a
// path, t counts. Neither is changed.
func (t *Tree) With(found *Tree) *Tree {
	out := &Tree{Root: t.Root, MTime: t.MTime, Partial: t.Partial, NotCovered: t.NotCovered, Entries: slices.Clone(t.Entries)}
	for _, e := range found.Entries {
		if _, ok := t.Lookup(e.Path); !ok {
			out.Entries = append(out.Entries, e)
		}
	}
	out.sort()
	for _, p := range append(slices.Clone(t.Absent), found.Absent...) {
		up, isThere := out.Lookup(parentOf(p))
		if _, ok := out.Lookup(p); !ok && (parentOf(p) == "" || isThere && up.Mode.IsDir()) {
			out.Absent = append(out.Absent, p)
		}
	}
	slices.Sort(out.Absent)
	out.Absent = slices.Compact(out.Absent)
	out.Moved = slices.Concat(t.Moved, found.Moved)
	slices.Sort(out.Moved)
	out.Moved = slices.Compact(out.Moved)
	return out
}

// isPlace reports whether e has no content: it is a directory or a FIFO.
func (e *Entry) isPlace() bool { return e.Mode.IsDir() || e.Mode.IsFIFO() }

// sort puts the lists of t into their order.
func (t *Tree) sort() {
	slices.SortFunc(t.Entries, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
	slices.Sort(t.Absent)
	slices.Sort(t.Moved)
	slices.SortFunc(t.NotCovered, func(a, b NotCovered) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Reason, b.Reason))
	})
}

// sameContent reports whether a and b are the same file but for permissions. Two secret files are the same when the
// digests of their true bytes are.
func sameContent(a, b *Entry) bool {
	if a.Mode&TypeMask != b.Mode&TypeMask || a.Target != b.Target || a.Secret != b.Secret {
		return false
	}
	return a.Secret != "" || a.Digest == b.Digest && a.Size == b.Size
}

var (
	errOrder  = errors.New("out of order, or given twice")
	errParent = errors.New("its directory is not an entry before it")
	errAbsent = errors.New("it is an entry, too")
)

// Validate checks what every tree of this package holds: clean relative paths in ascending order, each one's directory an
// entry before it (so that no path leads through a link), a digest for each regular file and a target for each link and
// for nothing else. The error wraps ErrTree, and ErrPath where a path is the fault.
func (t *Tree) Validate() error {
	dirs := map[string]bool{"": true}
	last := ""
	for i := range t.Entries {
		e := &t.Entries[i]
		err := e.validate()
		switch {
		case err != nil:
		case e.Path <= last:
			err = errOrder
		case !dirs[parentOf(e.Path)]:
			err = errParent
		}
		if err != nil {
			return fmt.Errorf("files: entry %.80q: %w: %w", e.Path, ErrTree, err)
		}
		last = e.Path
		if e.Mode.IsDir() {
			dirs[e.Path] = true
		}
	}
	for i, p := range t.Absent {
		_, there := t.Lookup(p)
		err := follows(t.Absent, i)
		switch {
		case err != nil:
		case there:
			err = errAbsent
		case !dirs[parentOf(p)]:
			err = errParent
		}
		if err != nil {
			return fmt.Errorf("files: absent %.80q: %w: %w", p, ErrTree, err)
		}
	}
	paths := make([]string, len(t.NotCovered))
	for i, n := range t.NotCovered {
		paths[i] = n.Path
	}
	for what, list := range map[string][]string{"moved": t.Moved, "not covered": paths} {
		for i, p := range list {
			if err := follows(list, i); err != nil {
				return fmt.Errorf("files: %s %.80q: %w: %w", what, p, ErrTree, err)
			}
		}
	}
	return nil
}

// follows checks a path of a list against the one before.
func follows(list []string, i int) error {
	if err := checkPath(list[i]); err != nil {
		return err
	}
	if i > 0 && list[i] <= list[i-1] {
		return errOrder
	}
	return nil
}

// validate checks one entry by itself.
func (e *Entry) validate() error {
	if err := checkPath(e.Path); err != nil {
		return err
	}
	file, link := e.Mode.IsRegular(), e.Mode.IsLink()
	switch {
	case !file && !link && !e.Mode.IsDir() && !e.Mode.IsFIFO():
		return fmt.Errorf("mode %s is not that of a directory, file, link or FIFO", e.Mode)
	case file == e.Digest.IsZero() || e.Size < 0 || !file && e.Size != 0:
		return errors.New("a digest and a size belong to each regular file and to nothing else")
	case link != (e.Target != "") || len(e.Target) > maxPathLen || strings.IndexByte(e.Target, 0) >= 0:
		return errors.New("a target belongs to each link and to nothing else")
	case e.Secret != "" && !file:
		return errors.New("only a regular file can be secret")
	case e.Attrs != "" && !file && !e.Mode.IsDir():
		return errors.New("xattrs belong to files and directories")
	}
	_, err := parseAttrs(e.Attrs)
	return err
}

// A Mode is a Unix st_mode: the type and twelve permission bits.
type Mode uint32

// The types of an entry, as they stand in a Mode.
const (
	TypeMask Mode = 0o170000
	Dir      Mode = 0o040000
	Regular  Mode = 0o100000
	Link     Mode = 0o120000
	FIFO     Mode = 0o010000
)

// The three bits above rwxrwxrwx, as they stand in a Mode.
const (
	setUID Mode = 0o4000
	setGID Mode = 0o2000
	sticky Mode = 0o1000
)

// ModeOf returns the Mode of a file; ok is false where it is no directory, regular file, symbolic link or FIFO.
func ModeOf(m fs.FileMode) (mode Mode, ok bool) {
	switch m.Type() {
	case fs.ModeDir:
		mode = Dir
	case 0:
		mode = Regular
	case fs.ModeNamedPipe:
		mode = FIFO
	case fs.ModeSymlink:
		return Link | 0o777, true // the permissions of a link mean nothing, and differ between systems
	default:
		return 0, false
	}
	mode |= Mode(m.Perm())
	if m&fs.ModeSetuid != 0 {
		mode |= setUID
	}
	if m&fs.ModeSetgid != 0 {
		mode |= setGID
	}
	if m&fs.ModeSticky != 0 {
		mode |= sticky
	}
	return mode, true
}

// ParseMode reads the octal form of a mode, Git's or the whole. It refuses what is no directory, regular file, symbolic link
// or FIFO.
func ParseMode(s string) (Mode, error) {
	n, err := strconv.ParseUint(s, 8, 16)
	m := Mode(n)
	if err != nil || len(s) != 6 || !m.IsDir() && !m.IsRegular() && !m.IsLink() && !m.IsFIFO() {
		return 0, fmt.Errorf("files: mode %.20q is not that of a directory, file, link or FIFO", s)
	}
	return m, nil
}

// String returns six octal digits, "100644".
func (m Mode) String() string { return fmt.Sprintf("%06o", uint32(m)) }

// Taped returns the mode as a record has it: whole, but of links, whose permissions mean nothing, as Git writes it.
func (m Mode) Taped() string {
	if m.IsLink() {
		return m.Git()
	}
	return m.String()
}

// Git returns the mode as Git writes it: "100644", "100755", "120000" or "040000", and of a FIFO "010000".
func (m Mode) Git() string {
	switch {
	case m.IsLink():
		return "120000"
	case m.IsDir():
		return "040000"
	case m.IsFIFO():
		return "010000"
	case m&0o100 != 0:
		return "100755"
	}
	return "100644"
}

// IsDir reports whether m is that of a directory.
func (m Mode) IsDir() bool { return m&TypeMask == Dir }

// IsRegular reports whether m is that of a regular file.
func (m Mode) IsRegular() bool { return m&TypeMask == Regular }

// IsLink reports whether m is that of a symbolic link.
func (m Mode) IsLink() bool { return m&TypeMask == Link }

// IsFIFO reports whether m is that of a FIFO.
func (m Mode) IsFIFO() bool { return m&TypeMask == FIFO }

// FileMode returns the permission bits as package os takes them. A regular file loses set-user-ID and set-group-ID: no
// tree that came with data makes a privileged program.
func (m Mode) FileMode() fs.FileMode {
	out := fs.FileMode(m & 0o777)
	if m&setGID != 0 && m.IsDir() {
		out |= fs.ModeSetgid
	}
	if m&sticky != 0 && m.IsDir() {
		out |= fs.ModeSticky
	}
	return out
}

// A Change is what became of one path between two trees. Before is nil where the path is new, After where it is gone.
type Change struct {
	Path          string
	Before, After *Entry
}

// Changes compares two snapshots of one tree, sorted by path. Everything that a Tree holds counts: contents, types,
// targets and permissions, directories too. A path that either snapshot does not cover is not compared: whether it
// changed is not known. The entries are those of the trees, not copies.
func Changes(before, after *Tree) []Change {
	var out []Change
	b, a := before.Entries, after.Entries
	for len(b) > 0 || len(a) > 0 {
		var c Change
		switch order := compareFirst(b, a); {
		case order < 0:
			c = Change{Path: b[0].Path, Before: &b[0]}
			b = b[1:]
		case order > 0:
			c = Change{Path: a[0].Path, After: &a[0]}
			a = a[1:]
		default:
			c = Change{Path: b[0].Path, Before: &b[0], After: &a[0]}
			b, a = b[1:], a[1:]
		}
		if !SameEntry(c.Before, c.After) && before.Covers(c.Path) && after.Covers(c.Path) {
			out = append(out, c)
		}
	}
	return out
}

// compareFirst orders the first entries of two sorted lists, of which at most one is empty; an empty list comes last.
func compareFirst(b, a []Entry) int {
	switch {
	case len(a) == 0:
		return -1
	case len(b) == 0:
		return 1
	}
	return strings.Compare(b[0].Path, a[0].Path)
}

// SameEntry reports whether there is no difference but in paths and times; nil is nothing.
func SameEntry(a, b *Entry) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Mode == b.Mode && a.Attrs == b.Attrs && sameContent(a, b)
}

// IsSecret reports whether one side is a file whose true bytes are not in the store.
func (c *Change) IsSecret() bool {
	return c.Before != nil && c.Before.Secret != "" || c.After != nil && c.After.Secret != ""
}

// InGit reports whether the path is a .git, or lies in one: such a change is in no patch, and Apply leaves it alone.
func (c *Change) InGit() bool { return inGit(c.Path) }

// Reverse returns the change that takes c back.
func (c *Change) Reverse() Change { return Change{Path: c.Path, Before: c.After, After: c.Before} }

// sides returns what Git sees of a change: directories and FIFOs are nothing, and of the permissions only the owner's x counts. ok
// is false where it sees no change at all.
func (c *Change) sides() (before, after *Entry, ok bool) {
	before, after = gitSide(c.Before), gitSide(c.After)
	switch {
	case before == nil && after == nil:
		return nil, nil, false
	case before == nil || after == nil:
		return before, after, true
	}
	return before, after, before.Mode.Git() != after.Mode.Git() || !sameContent(before, after)
}

func gitSide(e *Entry) *Entry {
	if e == nil || e.isPlace() {
		return nil
	}
	return e
}

// settle puts the lists into order, keeps of what is not covered the topmost paths, and drops the entries whose
// directory did not make it into the tree.
func (t *Tree) settle() {
	t.sort()
	t.NotCovered = slices.CompactFunc(t.NotCovered, func(a, b NotCovered) bool { return a.Path == b.Path })
	all := &Tree{NotCovered: slices.Clone(t.NotCovered)}
	t.NotCovered = slices.DeleteFunc(t.NotCovered, func(n NotCovered) bool { return !all.Covers(parentOf(n.Path)) })
	dirs := make(map[string]bool)
	kept := t.Entries[:0]
	for _, e := range t.Entries {
		if p := parentOf(e.Path); p != "" && !dirs[p] {
			continue
		}
		if e.Mode.IsDir() {
			dirs[e.Path] = true
		}
		kept = append(kept, e)
	}
	t.Entries = kept
	t.Absent = slices.DeleteFunc(t.Absent, func(p string) bool { return parentOf(p) != "" && !dirs[parentOf(p)] })
}

// below returns the entries below a directory.
func (t *Tree) below(dir string) []Entry {
	first := func(prefix string) int {
		i, _ := slices.BinarySearchFunc(t.Entries, prefix, func(e Entry, p string) int { return cmp.Compare(e.Path, p) })
		return i
	}
	return t.Entries[first(dir+"/"):first(dir+"0")] // "0" is what follows "/"
}

// validate checks what could have come with data.
func (c *Change) validate() error {
	for _, e := range []*Entry{c.Before, c.After} {
		if e == nil {
			continue
		}
		if e.Path != c.Path {
			return fmt.Errorf("files: change of %.80q names %.80q: %w", c.Path, e.Path, ErrPath)
		}
		if err := e.validate(); err != nil {
			return err
		}
	}
	return checkPath(c.Path)
}

// WithStandIns returns the tree as a snapshot sees it where the secret files at paths are shown in their scrubbed form, for
// want of their true bytes: what a run changes is told from what stood there, not from what should have. What such a
// snapshot stores is put into store. reveal makes what is shown of what is stored, as LayerOptions.Reveal does; nil shows it
// as it is. t is not changed.
func (t *Tree) WithStandIns(paths []string, store cas.Store, s Scrubber, reveal func([]byte) []byte) (*Tree, error) {
	out := *t
	out.Entries = slices.Clone(t.Entries)
	for _, path := range paths {
		e, ok := out.Lookup(path)
		if !ok || e.Secret == "" {
			continue
		}
		shown, err := store.Get(e.Digest)
		if err != nil {
			return nil, fmt.Errorf("files: %s: %w", path, err)
		}
		if reveal != nil {
			shown = reveal(shown)
		}
		stored, secret, err := hideContent(s, path, shown)
		if err != nil {
			return nil, fmt.Errorf("files: %s: %w", path, err)
		}
		if e.Digest, err = lasting(store).Put(stored); err != nil {
			return nil, fmt.Errorf("files: %s: %w", path, err)
		}
		e.Size, e.Secret = int64(len(stored)), secret
	}
	return &out, nil
}
