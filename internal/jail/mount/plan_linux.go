package mount

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jail/mountinfo"
	"github.com/tapedeck-dev/tapedeck/internal/jail/step"
	"golang.org/x/sys/unix"
)

// A Plan is what the init mounts, found out by the recorder on the host's tree.
type Plan struct {
	Targets []Target // shallow ones first, no two alike
	Masks   []string // existing files and directories
	Files   []File   // Over: existing files
	Console string   // the slave of the program's terminal; empty for none
}

// A Target is a directory that the program may change. Its overlay is nil where it changes the host's.
type Target struct {
	Path      string
	Within    bool // it lies in another writable directory: a mount of its own would split what can be renamed
	Overlay   *Overlay
	Covered   []string // of an overlay: mount points of the host below its lowers
	Submounts []string // of an overlay: mount points of the host below Path that stay read-only, outermost ones only

	Alone []string // of an overlay: lowers that the init is handed without what is mounted below them

	Mount bool   // it is a mount of the host's below another overlay
	Flags uint64 // of such a mount: MOUNT_ATTR_NOEXEC, _NOSUID
}

// A Wish is what a program is to see and to change, as Config has it. Console is the slave of its terminal; empty for none.
type Wish struct {
	Writable []string
	Overlays []Overlay
	Masks    []string
	Files    []File
	Console  string
}

// NewPlan resolves the paths of c on the host's tree and adds what every jail covers.
func NewPlan(c *Wish) (*Plan, error) {
	p := new(Plan)
	if err := p.addTargets(c); err != nil {
		return nil, err
	}
	masks := append([]string{"/var/run"}, c.Masks...)
	for _, m := range masks {
		path, err := filepath.EvalSymlinks(m)
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR):
			if p.inLower(m) {
				p.Masks = append(p.Masks, filepath.Clean(m))
			}
		case err != nil:
			return nil, &step.Error{Op: "mask", Path: m, Err: step.Errno(err)}
		case !mountinfo.Within(path, "/run") || p.targetAbove(path) != nil: // the rest of /run is hidden whole
			p.Masks = append(p.Masks, path)
		}
	}
	slices.Sort(p.Masks)
	p.Masks = slices.Compact(p.Masks)
	p.addFiles(c)
	p.Console = c.Console
	return p, nil
}

// inLower reports whether path, which is not on the host, stands in what the program sees there instead.
func (p *Plan) inLower(path string) bool {
	t := p.targetAbove(path)
	if t == nil || t.Overlay == nil {
		return false
	}
	rel, err := filepath.Rel(t.Path, path)
	return err == nil && slices.ContainsFunc(t.Overlay.Lowers, func(lower string) bool {
		_, err := os.Lstat(filepath.Join(lower, rel))
		return err == nil
	})
}

func (p *Plan) addTargets(c *Wish) error {
	for _, o := range c.Overlays {
		if len(o.Lowers) == 0 || filepath.Dir(o.Upper) != filepath.Dir(o.Work) {
			return fmt.Errorf("jail: overlay of %s needs a lower, and Upper and Work in one directory", o.Target)
		}
		o.Lowers = slices.Clone(o.Lowers)
		for i, l := range o.Lowers {
			o.Lowers[i] = resolve(l)
		}
		layers := resolve(filepath.Dir(o.Upper))
		o.Target, o.Upper, o.Work = resolve(o.Target), filepath.Join(layers, filepath.Base(o.Upper)), filepath.Join(layers, filepath.Base(o.Work))
		if err := p.addTarget(Target{Path: o.Target, Overlay: &o}); err != nil {
			return err
		}
	}
	for _, w := range c.Writable {
		path, err := filepath.EvalSymlinks(w)
		if err != nil {
			return &step.Error{Op: "make writable", Path: w, Err: step.Errno(err)}
		}
		if err := p.addTarget(Target{Path: path}); err != nil {
			return err
		}
	}
	p.sortTargets()
	for i := range p.Targets {
		t := &p.Targets[i]
		above := p.targetAbove(filepath.Dir(t.Path))
		t.Within = t.Overlay == nil && above != nil && above.Overlay == nil
	}
	return p.findSubmounts()
}

func (p *Plan) sortTargets() {
	slices.SortFunc(p.Targets, func(a, b Target) int {
		return cmp.Or(strings.Count(a.Path, "/")-strings.Count(b.Path, "/"), cmp.Compare(a.Path, b.Path))
	})
}

func (p *Plan) addTarget(t Target) error {
	if !filepath.IsAbs(t.Path) || t.Path == "/" {
		return fmt.Errorf("jail: %q cannot be made writable: it must be absolute and not the root", t.Path)
	}
	if i := slices.IndexFunc(p.Targets, func(x Target) bool { return x.Path == t.Path }); i >= 0 {
		if p.Targets[i].Overlay != nil && t.Overlay != nil {
			return fmt.Errorf("jail: two overlays at %s", t.Path)
		}
		return nil // twice writable is once; an overlay, which comes first, wins
	}
	p.Targets = append(p.Targets, t)
	return nil
}

// targetAbove returns the deepest target that path lies in or is; nil for none.
func (p *Plan) targetAbove(path string) (deepest *Target) {
	for i := range p.Targets {
		t := &p.Targets[i]
		if mountinfo.Within(path, t.Path) && (deepest == nil || len(t.Path) > len(deepest.Path)) {
			deepest = t
		}
	}
	return deepest
}

// Given reports whether path is a directory of the host that the program may change, and whether its changes are laid over it.
func (p *Plan) Given(path string) (given, layered bool) {
	i := slices.IndexFunc(p.Targets, func(t Target) bool { return t.Path == path })
	return i >= 0, i >= 0 && p.Targets[i].Overlay != nil
}

// layers are the directories of an overlay, the topmost first.
func (o *Overlay) layers() []string { return append([]string{o.Upper}, o.Lowers...) }

// LayerOf is what a directory of an overlay is asked for by: at its own path lies the overlay, or what covers it.
func LayerOf(dir string) string { return "layer " + dir }

// Layers are the directories in which a file that lies in an overlay may lie, the topmost first, and where in each; none for another file.
func (p *Plan) Layers(path string) (dirs []string, rest string) {
	t := p.targetAbove(path)
	if t == nil || t.Overlay == nil || path == t.Path {
		return nil, ""
	}
	return t.Overlay.layers(), path[len(t.Path)+1:]
}

// addFiles adds the files of c, and the resolver's configuration, which names us.
func (p *Plan) addFiles(c *Wish) {
	for _, f := range c.Files {
		f.Path = filepath.Clean(f.Path)
		var over []string
		for _, o := range f.Over {
			if path, err := filepath.EvalSymlinks(o); err == nil && !slices.Contains(over, path) {
				over = append(over, path)
			}
		}
		f.Over = over
		p.Files = append(p.Files, f)
	}
	resolv := File{Path: "/run/tapedeck/resolv.conf", Data: []byte("nameserver 127.0.0.1\n")}
	if path := resolve("/etc/resolv.conf"); mountinfo.Within(path, "/run") {
		resolv.Path = path
	} else if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
		resolv.Over = []string{path}
	}
	p.Files = append(p.Files, resolv) // with no file at all, resolvers ask 127.0.0.1
}

// Behind lists the descriptors that files stand behind, in the order of the files. The init gets copies of them.
func (p *Plan) Behind() (fds []int) {
	for _, f := range p.Files {
		if f.Behind > 0 {
			fds = append(fds, f.Behind)
		}
	}
	return fds
}

// resolve follows the symbolic links of path as far as it exists.
func resolve(path string) string {
	path = filepath.Clean(path)
	for rest := ""; ; {
		if p, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Join(p, rest)
		}
		// A dangling link stands for where it points to.
		if to, err := os.Readlink(path); err == nil {
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(path), to)
			}
			return filepath.Join(to, rest)
		}
		rest = filepath.Join(filepath.Base(path), rest)
		path = filepath.Dir(path)
	}
}
