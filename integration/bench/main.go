package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/internal/jail"
)

func main() {
	jail.Enter() // rows start jails of their own
	if len(os.Args) > 1 && os.Args[1] == jobWord {
		os.Exit(doJob(os.Args[2:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// options are the flags.
type options struct {
	out   string
	run   string
	date  string
	short bool
	json  bool
	peers bool
}

func parseFlags(args []string, stderr io.Writer) (*options, error) {
	o := new(options)
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.out, "o", "", "`file` that gets the table as Markdown")
	f.StringVar(&o.run, "run", "", "measure the rows whose name matches this `regexp`; the others stand as not measured")
	f.StringVar(&o.date, "date", "", "`date` of the run (default: that of the commit)")
	f.BoolVar(&o.short, "short", false, "small sizes and few rounds: whether everything runs, not how fast")
	f.BoolVar(&o.json, "json", false, "print JSON in place of the table")
	f.BoolVar(&o.peers, "peers", false, "install the npm package "+aimockPackage+" and the agents into a temporary directory for the rows that need them")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("no arguments are expected, %q came: see -help", f.Args())
	}
	return o, nil
}

// run is the command; it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseFlags(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err == nil:
		err = measureAll(ctx, o, args, groups, stdout, stderr)
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	return 0
}

// measureAll measures the chosen rows of all groups, prints the report and writes its file.
func measureAll(ctx context.Context, o *options, args []string, groups []group, stdout, stderr io.Writer) error {
	chosen, err := choose(o.run, groups)
	if err != nil {
		return err
	}
	e, err := newEnv(ctx, o, stderr)
	if err != nil {
		return err
	}
	defer e.close()
	rep := &report{Version: 1, Machine: machineOf(ctx, e.root), Command: commandOf(args), Short: o.short}
	if o.date != "" {
		rep.Machine.Date = o.date
	}
	rep.measure(ctx, e, groups, chosen)
	if ctx.Err() != nil {
		return errors.New("interrupted: nothing was written")
	}
	if err := rep.write(o, stdout); err != nil {
		return err
	}
	if n := rep.count(stateFailed); n > 0 {
		return fmt.Errorf("rows that failed: %d (see the table)", n)
	}
	return nil
}

// choose returns which rows -run names.
func choose(pattern string, groups []group) (func(name string) bool, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("-run: %w", err)
	}
	var names []string
	for _, g := range groups {
		for _, r := range g.rows {
			if re.MatchString(r.name) {
				return re.MatchString, nil
			}
			names = append(names, r.name)
		}
	}
	return nil, fmt.Errorf("-run %q: no row has such a name; there are %s", pattern, strings.Join(names, ", "))
}

// commandOf is the command line that makes the same report again.
func commandOf(args []string) string {
	return strings.Join(append([]string{"go run ./integration/bench"}, quoted(args)...), " ")
}

// write puts the report where the options want it.
func (rep *report) write(o *options, stdout io.Writer) error {
	if o.out != "" {
		if err := os.WriteFile(o.out, []byte(rep.markdown()), 0o644); err != nil {
			return err
		}
	}
	if !o.json {
		_, err := io.WriteString(stdout, rep.markdown())
		return err
	}
	enc := json.NewEncoder(stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(rep)
}
