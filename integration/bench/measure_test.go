package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/jail"
)

// options are the flags of the test binary that say what to measure; what is -short is testing's.
type options struct {
	page  string
	rows  string
	date  string
	short bool
	peers bool
}

var flags options

func init() {
	flag.StringVar(&flags.page, "page", "", "`file`, from the root of the checkout, that gets the table as Markdown")
	flag.StringVar(&flags.rows, "rows", "", "measure the rows whose name matches this `regexp`; the others stand as they were measured for the page before")
	flag.StringVar(&flags.date, "date", "", "`date` of the run (default: that of the commit)")
	flag.BoolVar(&flags.peers, "peers", false, "install the npm package "+aimockPackage+" and the agents into a temporary directory for the rows that need them")
}

// TestMain lets the test binary do the jobs that rows start this program for.
func TestMain(m *testing.M) {
	jail.Enter() // rows start jails of their own
	if len(os.Args) > 1 && os.Args[1] == jobWord {
		os.Exit(doJob(os.Args[2:]))
	}
	status := m.Run()
	if tiny.env != nil {
		tiny.env.close()
	}
	os.Exit(status)
}

// TestMeasure measures the rows that the flags name; none without one.
func TestMeasure(t *testing.T) {
	if flags.page == "" && flags.rows == "" {
		t.Skip("-page or -rows says what to measure")
	}
	o := flags
	o.short = testing.Short()
	if err := measureAll(t.Context(), &o, groups, os.Stdout, os.Stderr); err != nil {
		t.Error(err)
	}
}

// measureAll measures the chosen rows of all groups, prints the report and writes its file.
func measureAll(ctx context.Context, o *options, groups []group, stdout, stderr io.Writer) error {
	chosen, err := choose(o.rows, groups)
	if err != nil {
		return err
	}
	e, err := newEnv(ctx, o, stderr)
	if err != nil {
		return err
	}
	defer e.close()
	rep := &report{Machine: machineOf(ctx, e.root), Command: o.command(), Short: o.short}
	if o.date != "" {
		rep.Machine.Date = o.date
	}
	var before kept
	if o.page != "" && o.rows != "" {
		if before, err = readKept(filepath.Join(e.root, o.page)); err != nil {
			return err
		}
	}
	rep.measure(ctx, e, groups, chosen, before)
	if ctx.Err() != nil {
		return errors.New("interrupted: nothing was written")
	}
	if _, err := io.WriteString(stdout, rep.markdown()); err != nil {
		return err
	}
	if o.page != "" {
		if err := rep.write(filepath.Join(e.root, o.page)); err != nil {
			return err
		}
	}
	if n := rep.count(stateFailed); n > 0 {
		return fmt.Errorf("rows that failed: %d (see the table)", n)
	}
	return nil
}

// choose returns which rows -rows names.
func choose(pattern string, groups []group) (func(name string) bool, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("-rows: %w", err)
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
	return nil, fmt.Errorf("-rows %q: no row has such a name; there are %s", pattern, strings.Join(names, ", "))
}

// command is the command line that makes the same report again.
func (o *options) command() string {
	line := []string{measureCommand}
	for _, arg := range []struct{ name, value string }{{"-page", o.page}, {"-rows", o.rows}, {"-date", o.date}} {
		if arg.value != "" {
			line = append(line, arg.name, quoted([]string{arg.value})[0])
		}
	}
	if o.short {
		line = append(line, "-short")
	}
	if o.peers {
		line = append(line, "-peers")
	}
	return strings.Join(line, " ")
}

const measureCommand = "go test -v -timeout 5h ./integration/bench -run TestMeasure"
