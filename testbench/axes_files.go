package testbench

import (
	"os"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/files/overlay"
	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// openFiles says what the tree of files begins as.
func (b *Bench) openFiles() error {
	o := &overlay.Options{Dir: b.conf.Files.Dir, Now: b.fileTime}
	if b.from != nil {
		if dir := b.conf.Files.Read; dir != "" {
			if _, err := os.ReadDir(dir); err != nil {
				return &ConfigError{"Files.Read", err}
			}
		}
		o.Tape = overlay.NewTaped(b.from.records, b.from.store, &overlay.TapedOptions{InOrder: b.from.foreign, Files: b.conf.Files.Read})
		o.Unknown = b.unknownPath
	}
	files, err := overlay.New(o)
	if err != nil {
		return &ConfigError{"Files.Dir", err}
	}
	files.Record(b.Recorder())
	b.files = files
	b.closers = append(b.closers, files.Close)
	if path := b.conf.Files.Diff; path != "" {
		b.writes = append(b.writes, func() error { return writeDiff(path, files) })
	}
	if b.conf.Files.WriteBack {
		b.writes = append(b.writes, func() error {
			if b.Failed() {
				return nil // half of a run is nobody's wish
			}
			if err := files.WriteBack(); err != nil {
				return &ConfigError{"Files.WriteBack", err}
			}
			return nil
		})
	}
	return nil
}

// unknownPath takes note of a path of which the tape of a replay does not tell what was asked.
func (b *Bench) unknownPath(err *overlay.UnknownError) {
	if lostBlob(err) {
		b.watch.lose(err)
		return
	}
	b.watch.refuse(err, func() tape.Kind {
		path := b.cleanText(err.Path)
		switch err.Op {
		case "read":
			return &tape.FileRead{File: tape.File{Path: path}}
		case "list":
			return &tape.DirList{Path: path}
		case "removal":
			return &tape.FileDelete{File: tape.File{Path: path}}
		}
		return &tape.FileStat{Path: path}
	})
}

// fileTime is the time of a file that is written: the run's, unrecorded.
func (b *Bench) fileTime() time.Time {
	ms, _ := b.clock.Stamp()
	return time.UnixMilli(ms).UTC()
}

func writeDiff(path string, files *overlay.FS) error {
	diff, err := files.Diff()
	if err == nil {
		err = replace(path, diff)
	}
	if err != nil {
		return &ConfigError{"Files.Diff", err}
	}
	return nil
}

// changedFiles lists what a command changed in a copy of the run's files.
func (b *Bench) changedFiles(dir string) ([]process.Change, error) {
	changes, err := b.files.Changed(dir)
	all := make([]process.Change, len(changes))
	for i := range changes {
		all[i] = process.Change(changes[i])
	}
	return all, err
}

// applyChanges makes what a command changed true of the run's files.
func (b *Bench) applyChanges(spawn uint64, changes []process.Change) error {
	all := make([]overlay.Change, len(changes))
	for i := range changes {
		all[i] = overlay.Change(changes[i])
	}
	return b.files.Apply(spawn, all)
}
