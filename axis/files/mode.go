package files

import (
	"fmt"
	"io/fs"
	"strconv"
)

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
