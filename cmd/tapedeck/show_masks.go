package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/sealing"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

// showMasksHere lists the masks of the work tree that holds the working directory.
func showMasksHere(json bool, out io.Writer) error {
	lib, err := openLibrary()
	if err != nil {
		return err
	}
	rows, headers, err := recording.MasksOf(filepath.Dir(lib.Dir))
	if err != nil {
		return err
	}
	return printMasks(rows, headers, json, out)
}

func (s *shown) showMasks(json bool, out io.Writer) error {
	return printMasks(s.rec.MaskUses(), s.rec.HeadersIgnored(), json, out)
}

func printMasks(rows []recording.MaskUse, headers []string, json bool, out io.Writer) error {
	if json {
		return printJSON(out, map[string]any{"masks": rows, "headers_ignored": headers})
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, r := range rows {
		used := strconv.Itoa(r.Used)
		if r.Off {
			used = "off"
		}
		visible.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Name, used, r.What, r.Example)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	visible.Fprintf(out, "\nheaders of requests that do not compare: %s\n", strings.Join(headers, ", "))
	return nil
}

func (s *shown) showCoverage(json bool, out io.Writer) error {
	if s.rec == nil {
		return fmt.Errorf("--coverage: a bare tape does not say what it covers")
	}
	m := s.rec.Manifest
	by, whole := sealing.SealedBy(s.rec)
	if json {
		return printJSON(out, map[string]any{"axes": m.Axes, "not_covered": m.NotCovered(), "sealed": m.Sealed, "sealed_by": by, "daemon": m.Daemon})
	}
	for _, name := range sortedKeys(m.Axes) {
		state := "off"
		if m.Axes[name].On {
			state = "on"
		}
		visible.Fprintf(out, "%s: %s\n", name, state)
		for _, n := range m.Axes[name].NotCovered {
			visible.Fprintf(out, "  not covered: %s\n", n)
		}
	}
	said := "none"
	switch {
	case !whole:
		said = "it says that it has one, which is gone or damaged"
	case by != "":
		said = "by " + by + " (tapedeck verify tells whether it holds)"
	}
	visible.Fprintf(out, "seal: %s\n", said)
	s.showDaemon(out)
	return nil
}
