package wasi

import (
	"cmp"
	"io"
	"time"
)

// Options of one run. Nil and zero work.
type Options struct {
	// Args are the program's arguments, without its name; those of the bench where nil.
	Args []string
	// Stdin is standard input, read whole when the program reads it first; nil is empty. A replay takes it from the tape.
	Stdin io.Reader
	// Stdout and Stderr get what the program prints, at most Output bytes together. Nil discards.
	Stdout, Stderr io.Writer
	// Memory is the most bytes of the module's memory, in pages of 64 KiB: up to 4 GiB, default 256 MiB.
	Memory int64
	// Output is the most bytes that it prints; default 64 MiB.
	Output int64
	// Timeout ends it after so long by the real clock, whatever its own says; default one minute.
	Timeout time.Duration
	// Reads is how often it may read a clock that stands still with nothing happening in between: a program that waits for the
	// time in a loop would wait for ever. Default a million.
	Reads int
	// Cache holds compiled modules; nil is one in memory that all runs of this process share.
	Cache *Cache
}

const pageSize = 64 << 10

func (o *Options) withDefaults() Options {
	var all Options
	if o != nil {
		all = *o
	}
	all.Memory = cmp.Or(max(all.Memory, 0), 256<<20)
	all.Output = cmp.Or(max(all.Output, 0), 64<<20)
	all.Timeout = cmp.Or(max(all.Timeout, 0), time.Minute)
	all.Reads = cmp.Or(max(all.Reads, 0), 1_000_000)
	if all.Cache == nil {
		all.Cache = shared()
	}
	return all
}

// pages is Memory in pages, at least one and at most what WebAssembly can address.
func (o *Options) pages() uint32 { return uint32(max(1, min(o.Memory/pageSize, 1<<16))) }
