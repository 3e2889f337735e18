//go:build !linux

package library

// renameNew renames a file or a directory, and fails with an error that wraps fs.ErrExist where the new name is taken.
func renameNew(from, to string) error { return renameChecked(from, to) }

// exchange swaps the names of two directories of one file system; to is gone for a moment.
func exchange(from, to string) error { return exchangeByTurns(from, to) }
