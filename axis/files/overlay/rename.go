package overlay

import (
	"errors"
	"path"
	"strings"
)

// A mover gives something another name, and keeps what is to be recorded of that.
type mover struct {
	f    *FS
	name string // where it came to
	at   place
	was  place // from
	to   place

	links  []link
	lists  []listed
	before []byte    // the content of what is replaced, nil for nothing
	gone   []written // in the order of their paths
	made   []written
}

// A listed is a directory whose names were read.
type listed struct {
	at  place
	all []entry
}

func (m *mover) run(from, to string) (err error) {
	if m.was, err = m.walk(from, askRemove); err != nil {
		return err
	}
	if m.was.mode == 0 {
		return errNone
	}
	if m.to, err = m.walk(to, askChange); err != nil || m.to.path == m.was.path {
		return err
	}
	if err := m.fits(); err != nil {
		return err
	}
	m.name, m.at = from, m.was
	if err := m.raise(&m.was, ""); err != nil {
		return err
	}
	return m.move()
}

func (m *mover) walk(name string, a ask) (p place, err error) {
	p, err = m.f.walk(name, a, false)
	m.name, m.at = name, p
	m.links = append(m.links, p.links...)
	return p, err
}

// fits refuses what cannot stand in the other's place.
func (m *mover) fits() error {
	isDir := m.was.mode.IsDir()
	switch {
	case isDir && strings.HasPrefix(m.to.path, m.was.path+"/"):
		return errIntoSelf
	case m.to.mode == 0:
		return nil
	case isDir && !m.to.mode.IsDir():
		return errNoDir
	case !isDir && m.to.mode.IsDir():
		return errIsDir
	case isDir:
		return m.fitsEmpty()
	case m.f.rec == nil:
		return nil
	}
	before, err := m.f.contentOf(&m.to)
	if m.before = before; m.to.mode.IsLink() != m.was.mode.IsLink() { // the one goes, the other comes
		m.gone, m.before = append(m.gone, written{path: m.to.path, was: m.to.mode, before: before}), nil
	}
	return err
}

// fitsEmpty refuses a directory in whose place another cannot stand.
func (m *mover) fitsEmpty() error {
	all, err := m.f.entries(&m.to)
	if err != nil {
		return err
	}
	m.lists = append(m.lists, listed{m.to, all})
	if len(all) > 0 {
		return errNotEmpty
	}
	return nil
}

// raise brings what stands at p into the upper layer whole, and keeps what is to be recorded of it; below is its path below what
// moves.
func (m *mover) raise(p *place, below string) error {
	if !p.mode.IsDir() {
		return m.raiseFile(p, below)
	}
	all, err := m.f.entries(p)
	if m.at = *p; err != nil {
		return err
	}
	m.lists = append(m.lists, listed{*p, all})
	dir, err := m.f.ensure(p.path)
	if err != nil {
		return err
	}
	in := step{p.path, dir, p.below}
	for _, e := range all {
		kid, err := m.f.kid(&in, e.name, join(p.path, e.name), askRemove)
		if m.at = kid; err == nil {
			err = m.raise(&kid, below+"/"+e.name)
		}
		if err != nil {
			return err
		}
	}
	p.up, p.below, dir.opaque = dir, false, true
	return nil
}

func (m *mover) raiseFile(p *place, below string) error {
	data, err := m.f.contentOf(p)
	if m.at = *p; err != nil {
		return err
	}
	if p.up == nil {
		if err := m.f.place(p, &node{mode: p.mode, data: ofFile(p, data), target: p.target}); err != nil {
			return err
		}
	}
	if m.f.rec == nil {
		return nil
	}
	w := written{path: m.to.path + below, mode: p.mode, data: data}
	if below == "" {
		w.before = m.before
	}
	m.made = append(m.made, w)
	m.gone = append(m.gone, written{path: p.path, was: p.mode, before: data})
	return nil
}

// ofFile is the content of a file, nil of a link.
func ofFile(p *place, data []byte) []byte {
	if p.mode.IsLink() {
		return nil
	}
	return data
}

// move takes the node from one place and puts it at the other.
func (m *mover) move() error {
	f, n := m.f, m.was.up
	dir, err := f.ensure(path.Dir(m.to.path))
	if err != nil {
		return err
	}
	if err := f.grow(nodeCost); err != nil { // what may stay in its place
		return err
	}
	f.found(&m.to)
	from := n.dir
	delete(from.kids, n.name)
	if m.was.over {
		from.put(n.name, &node{})
	} else {
		f.used -= nodeCost
	}
	f.release(dir.put(path.Base(m.to.path), n))
	return nil
}

// failed records what was looked at before it failed, and returns the error.
func (m *mover) failed(err error) error {
	f := m.f
	if f.rec == nil {
		return f.failed("rename", m.name, &m.at, err)
	}
	if m.was.mode != 0 && m.at.path != m.was.path {
		if err := f.noteStat(&m.was); err != nil {
			return err
		}
	}
	if err := m.noteLists(); err != nil {
		return err
	}
	if errors.Is(err, errNotEmpty) { // which the list says
		return failure("rename", m.name, err)
	}
	return f.failed("rename", m.name, &m.at, err)
}

// noteLists records the directories that were read.
func (m *mover) noteLists() error {
	for i := range m.lists {
		m.lists[i].at.links = nil
		if err := m.f.noteList(&m.lists[i].at, m.lists[i].all); err != nil {
			return err
		}
	}
	return nil
}

// note records it: the links that were passed, that nothing stood where a directory goes, the directories that were read, then what
// is gone, then what is there.
func (m *mover) note() error {
	if err := m.f.noteLinks(m.links); err != nil {
		return err
	}
	if m.was.mode.IsDir() && m.to.mode == 0 { // no file_write may say so
		m.to.links = nil
		if err := m.f.noteStat(&m.to); err != nil {
			return err
		}
	}
	if err := m.noteLists(); err != nil {
		return err
	}
	return m.f.noteWritten(nil, append(m.gone, m.made...)...)
}
