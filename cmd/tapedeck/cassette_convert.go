package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/cassette/foreign"
	"github.com/tapedeck-dev/tapedeck/cassette/picture"
	"github.com/tapedeck-dev/tapedeck/deck/secrets"
)

type cassetteExportOptions struct {
	output   string
	format   string
	from, to time.Duration
	at       time.Duration
	speed    float64
	maxIdle  time.Duration
	theme    string
	title    string
	fps      float64
	scale    int
	still    bool
	window   bool
	input    bool
	force    bool
	partial  bool
}

// exportFormats are the formats, by their names.
var exportFormats = map[string]exportFormat{
	"asciicast":    {write: writeCast(2), input: true},
	"asciicast-v3": {write: writeCast(3), input: true},
	"gif":          {write: pictured(picture.GIF), pictures: true},
	"svg":          {write: pictured(picture.SVG), pictures: true, still: true},
	"html":         {write: pictured(picture.HTML), pictures: true, input: true},
	"text":         {write: pictured(picture.Text), pictures: true, still: true},
}

// exportEndings are the formats that the end of a file's name stands for.
var exportEndings = map[string]string{
	".cast": "asciicast", ".gif": "gif", ".svg": "svg", ".html": "html", ".htm": "html", ".txt": "text",
}

type exportFormat struct {
	write    func(context.Context, io.Writer, *cassette.Reader, *cassetteExportOptions, *exportRun) error
	pictures bool // takes the flags of pictures
	still    bool // knows one screen alone
	input    bool // can say what was typed
}

// exportRun is what an export tells.
type exportRun struct {
	p    *progress
	cast *foreign.Exported
}

func newCassetteExportCommand(std *console) *cobra.Command {
	var o cassetteExportOptions
	cmd := command("cassette export", "CASSETTE", interruptibly(func(cmd *cobra.Command, args []string) error {
		return runCassetteExport(cmd.Context(), &o, args[0], std)
	}))
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "`file` to write, - for stdout")
	wordFlag(cmd, &o.format, "format", "", "asciicast, asciicast-v3, gif, svg, html or text (default: by the file's name)", slices.Sorted(maps.Keys(exportFormats))...)
	offsetFlag(f, &o.from, "from", "from this `time` on: 1500 (ms), 1.5s or 2m")
	offsetFlag(f, &o.to, "to", "up to this `time`")
	o.at = -1
	offsetFlag(f, &o.at, "at", "one screen, that of this `time` (svg, text)")
	f.BoolVar(&o.still, "still", false, "one screen, the last (svg, text)")
	parsedFlag(f, &o.speed, "speed", "", "`N` times as fast", parseSpeed)
	f.DurationVar(&o.maxIdle, "max-idle", 0, "the longest `pause`, as in 2s (default: 5s for pictures, as it was for asciicasts)")
	wordFlag(cmd, &o.theme, "theme", "", "colours: dark or light", slices.Sorted(maps.Keys(picture.Themes))...)
	f.StringVar(&o.title, "title", "", "`text` above it")
	f.Float64Var(&o.fps, "fps", 0, "the most pictures a second (default 20)")
	f.IntVar(&o.scale, "scale", 0, "pixels a unit, 1 to 4 (gif, svg)")
	f.BoolVar(&o.window, "window", false, "with a window around it (gif, svg)")
	f.BoolVar(&o.input, "input", false, "with what was typed, passwords too (asciicast, html)")
	f.BoolVarP(&o.force, "force", "f", false, "replace FILE where it is there")
	f.BoolVar(&o.partial, "partial", false, partialHelp)
	std.jsonFlag(cmd, "what was written as JSON")
	return cmd
}

func runCassetteExport(ctx context.Context, o *cassetteExportOptions, name string, std *console) error {
	format, err := o.check()
	if err != nil {
		return err
	}
	r, err := openCassette(name, o.partial, std)
	if err != nil {
		return err
	}
	defer r.Close()
	run := &exportRun{p: std.progress()}
	n, err := putWhole(o.output, o.force, std.out, func(w io.Writer) error { return format.write(ctx, w, r, o, run) })
	run.p.end()
	if err != nil {
		return err
	}
	return o.tell(run, n, std)
}

// check returns the format, once the flags fit it.
func (o *cassetteExportOptions) check() (*exportFormat, error) {
	if o.output == "" {
		return nil, errors.New("export takes -o FILE, or -o - for stdout (tapedeck cassette export --help has examples)")
	}
	if o.format == "" {
		var err error
		if o.format, err = formatOf(o.output, "", exportEndings); err != nil {
			return nil, fmt.Errorf("%w, or give --format", err)
		}
	}
	format := exportFormats[o.format]
	switch {
	case math.IsInf(o.speed, 1):
		return nil, errors.New("--speed collapsed: an export needs times; --max-idle makes pauses short")
	case o.at >= 0:
		o.still = true
		o.at = max(o.at, 1) // 0 is the end there; nothing is shown before the first millisecond
	}
	if o.still && !format.still {
		return nil, fmt.Errorf("--still and --at are for svg and text, not for %s", o.format)
	}
	if o.input && !format.input {
		return nil, fmt.Errorf("--input is for asciicasts and html, not for %s", o.format)
	}
	if !format.pictures && (o.theme != "" || o.fps != 0 || o.scale != 0 || o.window) {
		return nil, fmt.Errorf("--theme, --fps, --scale and --window are for pictures, not for %s", o.format)
	}
	if o.scale < 0 || o.scale > picture.MaxScale {
		return nil, fmt.Errorf("--scale %d: want 1 to %d", o.scale, picture.MaxScale)
	}
	if o.fps < 0 {
		return nil, fmt.Errorf("--fps %v: want a number above 0", o.fps)
	}
	if o.to > 0 && o.to < o.from {
		return nil, fmt.Errorf("--from %v is after --to %v", o.from, o.to)
	}
	if o.maxIdle < 0 {
		return nil, fmt.Errorf("--max-idle %v: want a time above 0", o.maxIdle)
	}
	return &format, nil
}

func (o *cassetteExportOptions) tell(run *exportRun, n int64, std *console) error {
	if std.json && o.output != "-" {
		return printJSON(std.out, map[string]any{"file": o.output, "format": o.format, "bytes": n, "asciicast": run.cast})
	}
	if c := run.cast; c != nil && c.Replaced > 0 {
		std.say("bytes that are no UTF-8 became U+FFFD, %s: an asciicast holds text alone",
			plural(c.Replaced, "time", "times"))
	}
	if o.output == "-" {
		return nil
	}
	return std.say("wrote %s: %s, %s", o.output, o.format, size(n))
}

func writeCast(version int) func(context.Context, io.Writer, *cassette.Reader, *cassetteExportOptions, *exportRun) error {
	return func(ctx context.Context, w io.Writer, r *cassette.Reader, o *cassetteExportOptions, run *exportRun) (err error) {
		run.cast, err = foreign.Export(ctx, r, w, &foreign.ExportOptions{
			Version: version, Input: o.input, From: o.from, To: o.to, Speed: o.speed, MaxIdle: o.maxIdle,
			Title: o.title, Progress: run.p.bytes("writing"),
		})
		return err
	}
}

func pictured(draw func(io.Writer, *cassette.Reader, *picture.Options) error) func(context.Context, io.Writer, *cassette.Reader, *cassetteExportOptions, *exportRun) error {
	return func(ctx context.Context, w io.Writer, r *cassette.Reader, o *cassetteExportOptions, run *exportRun) error {
		return draw(&interrupted{ctx, w}, r, &picture.Options{
			From: o.from, To: o.to, Still: o.still, At: max(o.at, 0), Speed: o.speed, MaxIdle: o.maxIdle,
			FPS: o.fps, Theme: picture.Themes[o.theme], Scale: o.scale, Title: o.title, Window: o.window,
			Keys: o.input,
			Progress: func(done, total time.Duration) {
				run.p.show(func() string {
					return fmt.Sprintf("drawing: %d%% of %s", percent(int64(done), int64(total)), clockTime(total))
				})
			},
		})
	}
}

// interrupted is a writer that fails once ctx has ended.
type interrupted struct {
	ctx context.Context
	w   io.Writer
}

func (i *interrupted) Write(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.w.Write(p)
}

type cassetteImportOptions struct {
	foreign.ImportOptions
	output  string
	logs    foreign.Options
	exit    int
	account string
}

func newCassetteImportCommand(std *console) *cobra.Command {
	var o cassetteImportOptions
	cmd := command("cassette import", "FILE", interruptibly(func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("exit") {
			o.Exit = &o.exit
		}
		return runCassetteImport(cmd.Context(), &o, args[0], std)
	}))
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "`directory` of the cassette (default: a new one in .tapedeck/)")
	f.StringVar(&o.logs.Timing, "timing", "", "timing `file` of a typescript")
	f.StringVar(&o.logs.LogOut, "log-out", "", "`file` of what was printed, of a typescript")
	f.StringVar(&o.logs.LogIn, "log-in", "", "`file` of what was typed, of a typescript")
	f.StringVar(&o.logs.LogIO, "log-io", "", "`file` of both, of a typescript")
	f.IntVar(&o.Rows, "rows", 0, "`rows` of the terminal")
	f.IntVar(&o.Cols, "cols", 0, "`columns` of the terminal")
	f.StringVar(&o.Term, "term", "", "`name` of the terminal's type, TERM")
	f.IntVar(&o.exit, "exit", 0, "exit `code` of the program, where FILE says none")
	f.StringVar(&o.account, "account", "", "`name` of an account that is masked")
	std.jsonFlag(cmd, "the result as JSON")
	return cmd
}

func runCassetteImport(ctx context.Context, o *cassetteImportOptions, file string, std *console) error {
	src, err := foreign.Open(file, &o.logs)
	if err != nil {
		return err
	}
	defer src.Close()
	lib, err := openLibrary()
	if err != nil {
		return err
	}
	id, dir, err := lib.NewCassette(o.output)
	if err != nil {
		return err
	}
	if o.ID = id; o.account != "" {
		o.Accounts = []string{o.account}
	}
	if o.Scrub, err = secrets.OfTerminal(nil, os.Environ()); err != nil {
		return err
	}
	p := std.progress()
	o.Progress = func(done int64) { p.show(func() string { return "importing: " + size(done) + " of output" }) }
	im, err := foreign.Import(ctx, src, dir, &o.ImportOptions)
	p.end()
	if err != nil {
		return err
	}
	return o.tell(im, dir, std)
}

// importedCassette is what cassette import --json prints.
type importedCassette struct {
	Cassette   string   `json:"cassette"`
	ID         string   `json:"id"`
	Origin     any      `json:"origin"`
	Events     int      `json:"events"`
	Bytes      int64    `json:"bytes"`
	DurationMS int64    `json:"duration_ms"`
	Notes      []string `json:"notes"`
}

func (o *cassetteImportOptions) tell(im *foreign.Imported, dir string, std *console) error {
	if std.json {
		notes := im.Notes
		if notes == nil {
			notes = []string{}
		}
		return printJSON(std.out, &importedCassette{dir, im.Manifest.ID, im.Origin, im.Events, im.Output, im.Duration.Milliseconds(), notes})
	}
	for _, n := range im.Notes {
		std.say("%s", n)
	}
	if len(im.Origin.Unknown) > 0 {
		std.say("%s says nothing of: %s", string(im.Origin.Format), strings.Join(im.Origin.Unknown, ", "))
	}
	return std.say("imported %s: %s, %s, %s", shortPath(dir), string(im.Origin.Format),
		clockTime(im.Duration), fmt.Sprintf("%s in %s", size(im.Output), plural(im.Events, "event", "events")))
}
