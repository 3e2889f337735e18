package recording

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/axis/network"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/plainyaml"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// ConfigName is the file at the top of a work tree that says how its runs are recorded (docs/reference/project.md).
const ConfigName = "tapedeck.yaml"

// A Config is what tapedeck.yaml holds.
type Config struct {
	Masks     *Masking            `yaml:"masks"`
	Headers   *Headers            `yaml:"headers"` // Masks holds them once read
	Side      *fidelity.SideRules `yaml:"side"`
	Test      *TestRules          `yaml:"test"`
	Upstreams map[string]string   `yaml:"upstreams"` // by NAME[:PORT]
	Secrets   []string            `yaml:"secrets"`   // names of variables, headers and fields
	Prices    map[string]Price    `yaml:"prices"`    // by the beginning of a model's name, as in llm.Prices
	Store     *Store              `yaml:"store"`
}

// A Store is where a team keeps its runs: URLs as push --store and --blobs have them. A password does not belong here: PGPASSWORD, ~/.pgpass and
// AWS_SECRET_ACCESS_KEY hold them.
type Store struct {
	Runs    string `yaml:"runs"`
	Blobs   string `yaml:"blobs"`
	Project string `yaml:"project"`

	Retention []Retention `yaml:"retention"` // a run goes when one of them lets it go
}

// A Retention says which runs of a store's project go, as the flags of gc that are called so do.
type Retention struct {
	OlderThan string `yaml:"older-than"`
	Keep      int    `yaml:"keep"`
	MaxSize   string `yaml:"max-size"`
	Tag       string `yaml:"tag"`
}

// A Price is what a model costs, in USD per million tokens.
type Price struct {
	Input  *float64 `yaml:"input"` // required
	Output *float64 `yaml:"output"`
	Cached *float64 `yaml:"cached"` // of the input, what comes out of a cache; absent: as Input
}

// maxConfig bounds tapedeck.yaml, in bytes.
const maxConfig = 64 << 10

// ReadConfig reads tapedeck.yaml of the work tree root; empty, without an error, where there is none. What it cannot use is
// an error: a mask that is not applied would make a verdict red for no reason.
func ReadConfig(root string) (c Config, err error) {
	if root == "" {
		return c, nil
	}
	path := filepath.Join(root, ConfigName)
	b, err := ReadBounded(path, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = plainyaml.Decode(b, maxConfig, &c)
	}
	if c.Headers != nil && c.Masks == nil {
		c.Masks = new(Masking)
	}
	if c.Masks != nil {
		c.Masks.Headers, c.Masks.Rules = c.Headers, masks.Rules
	}
	if err == nil {
		upstreams := make(map[string]string, len(c.Upstreams)) // names of hosts are in lower case
		for name, url := range c.Upstreams {
			upstreams[strings.ToLower(name)] = url
		}
		c.Upstreams = upstreams
		err = c.check()
	}
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// check refuses what cannot be used.
func (c *Config) check() error {
	_, masking := c.Masks.Masker(&Roots{})
	_, prices := c.PriceTable()
	return cmp.Or(masking, c.Side.Check(), c.Test.check(), within("upstreams", network.CheckUpstreams(c.Upstreams)), within("secrets", checkNames(c.Secrets)), prices)
}

// maxSecretNames bounds secrets.
const maxSecretNames = 1000

func checkNames(secrets []string) error {
	if len(secrets) > maxSecretNames {
		return fmt.Errorf("expected %d names at most, got %d", maxSecretNames, len(secrets))
	}
	for _, name := range secrets {
		if name == "" || len(name) > names.MaxName || strings.ContainsAny(name, "= \t\n") {
			return fmt.Errorf("%q: expected the name of a variable, a header or a field, of 1 to %d bytes; a value does not belong here", name, names.MaxName)
		}
	}
	return nil
}

func within(key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", key, err)
}

// PriceTable is the table that is built in, with the prices of c before it.
func (c *Config) PriceTable() (*llm.Prices, error) {
	own := make(map[string]llm.Rates)
	for model, p := range c.Prices {
		own[model] = llm.Rates{Input: p.Input, Output: p.Output, CacheRead: p.Cached}
	}
	table, err := llm.DefaultPrices().With(own)
	return table, within("prices", err)
}

// PricesOf are the prices that hold for the work tree root: those of its tapedeck.yaml, and those that are built in.
func PricesOf(root string) (*llm.Prices, error) {
	c, err := ReadConfig(root)
	if err != nil {
		return nil, err
	}
	return c.PriceTable()
}

// TestRules are what tapedeck.yaml says under test: what package gate holds recordings to.
type TestRules struct {
	Mode    string        `yaml:"mode"`    // as fidelity.ParseMode has it; "" is semantic
	Watch   []string      `yaml:"watch"`   // paths that gate too, as in deck.ReplayOptions
	Timeout time.Duration `yaml:"timeout"` // of one replay; 0 is what the caller says
	Expect  []Expect      `yaml:"expect"`
}

// An Expect is a divergence that is known: one whose category is Diverges, or whose message holds it.
type Expect struct {
	Diverges   string `yaml:"diverges"`
	Recordings string `yaml:"recordings"` // a pattern of path.Match for their names; "" is all
	Reason     string `yaml:"reason"`
	Until      string `yaml:"until"` // a day as 2027-03-01, from which on it is red again; "" is for ever
}

// Over reports whether an expectation holds no more on the day now.
func (e *Expect) Over(now time.Time) bool {
	return e.Until != "" && now.Format(time.DateOnly) >= e.Until
}

func (r *TestRules) check() error {
	if r == nil {
		return nil
	}
	if _, err := fidelity.ParseMode(r.Mode); r.Mode != "" && err != nil {
		return fmt.Errorf("test: mode: %w", err)
	}
	if r.Timeout < 0 {
		return fmt.Errorf("test: timeout: %v is less than nothing", r.Timeout)
	}
	for i := range r.Expect {
		if err := r.Expect[i].check(); err != nil {
			return fmt.Errorf("test: expect: %w", err)
		}
	}
	return nil
}

func (e *Expect) check() error {
	_, wrong := path.Match(e.Recordings, "")
	switch {
	case e.Diverges == "":
		return errors.New("diverges is missing: a category such as missing_in_recorded, or a part of the message of a divergence")
	case e.Reason == "":
		return fmt.Errorf("%s: reason is missing", e.Diverges)
	case wrong != nil:
		return fmt.Errorf("%s: recordings: %w", e.Diverges, wrong)
	}
	if e.Until == "" {
		return nil
	}
	if _, err := time.Parse(time.DateOnly, e.Until); err != nil {
		return fmt.Errorf("%s: until %q: want a day, as in 2027-03-01", e.Diverges, e.Until)
	}
	return nil
}

// FindRoots finds the work tree of dir, HOME and the temporary directory of a program with env. tree may be empty. why
// says why no snapshot can be taken, and is empty where one can.
func FindRoots(dir, tree string, env []string) (r Roots, why string, err error) {
	r.Home = Resolved(Getenv(env, "HOME"))
	r.Temp = Resolved(Getenv(env, "TMPDIR"))
	if r.Temp == "" {
		r.Temp = Resolved(os.TempDir())
	}
	for _, root := range []string{r.Home, r.Temp} {
		if root != "" && !IsDir(root) && !slices.Contains(r.Absent, root) {
			r.Absent = append(r.Absent, root)
		}
	}
	start := dir
	if tree != "" {
		if start, err = filepath.Abs(tree); err != nil {
			return r, "", err
		}
		if !IsDir(start) {
			return r, "", fmt.Errorf("--tree %s: no such directory", tree)
		}
		r.Tree = Resolved(start)
		if Within(r.Home, r.Tree) {
			why = r.Tree + " holds HOME: no snapshot of the work tree"
			r.Tree = ""
		}
		return r, why, nil
	}
	root, ok, why := files.FindTree(start, r.Home)
	if ok {
		r.Tree = root
	}
	return r, why, nil
}

// Resolved returns the absolute path without symbolic links, as far as it exists; "" stays "".
func Resolved(path string) string {
	if path == "" || !filepath.IsAbs(path) {
		return ""
	}
	if p, err := filepath.EvalSymlinks(path); err == nil {
		return p
	}
	return filepath.Clean(path)
}

// Within reports whether path is dir or lies in it. Both are absolute and clean.
func Within(path, dir string) bool {
	if dir == "" {
		return false
	}
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// TapePath spells an absolute path as a tape does: relative to the work tree, ~/…, $TMP/…, else absolute. A path takes
// its most specific root.
func (r *Roots) TapePath(path string) string {
	best, prefix := "", ""
	for _, c := range []struct{ root, prefix string }{{r.Tree, ""}, {r.Home, "~"}, {r.Temp, "$TMP"}} {
		if c.root != "" && !slices.Contains(r.Absent, c.root) && Within(path, c.root) && (best == "" || len(c.root) > len(best)) {
			best, prefix = c.root, c.prefix
		}
	}
	if best == "" {
		return path
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(path, best), "/")
	switch {
	case prefix == "" && rel == "":
		return "."
	case prefix == "":
		return rel
	case rel == "":
		return prefix
	}
	return prefix + "/" + rel
}

// Writable returns the directories that the program may change: those of the roots that exist, the system's temporary
// directory, which programs use whatever TMPDIR says, and extra. None is listed that lies in another.
func (r *Roots) Writable(extra []string) []string {
	all := append([]string{r.Tree, r.Home, r.Temp, "/tmp"}, extra...)
	var out []string
	for _, p := range all {
		if p = Resolved(p); p == "" || p == "/" || slices.Contains(out, p) || slices.Contains(r.Absent, p) {
			continue
		}
		if IsDir(p) {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

// Getenv returns the value of name in env, the last one winning as it does for execve's readers in Go and the shells.
func Getenv(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// WorkingDir returns dir, or the process's own, absolute and without symbolic links: what the program sees of its
// directory must be a path that the jail has.
func WorkingDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir) // of "" it is the working directory
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// LibraryRoot is the directory whose library takes recordings made in dir: the work tree, or dir itself where there is
// none.
func (r *Roots) LibraryRoot(dir string) string {
	if r.Tree == "" {
		return dir
	}
	return r.Tree
}

// Watched spells paths as a tape does: ~/… and $TMP/… stay, others are absolute or seen from the directory cwd. Each may be a
// pattern of path.Match.
func (r *Roots) Watched(cwd string, list []string) []string {
	var out []string
	for _, p := range list {
		if !isRooted(p) {
			if !filepath.IsAbs(p) {
				p = filepath.Join(cwd, p)
			}
			p = r.TapePath(filepath.Clean(p))
		}
		out = append(out, p)
	}
	return out
}

func isRooted(p string) bool {
	for _, root := range []string{"~", "$TMP"} {
		if p == root || strings.HasPrefix(p, root+"/") {
			return true
		}
	}
	return false
}

// SeesOutside reports whether a recording knows what changed outside its work tree.
func (m *Manifest) SeesOutside() bool { return !slices.Contains(m.Axes["files"].NotCovered, GapFiles) }

// Unwatchable says of each path that the snapshot tree, which may be nil, does not cover that what changed there cannot be
// compared.
func Unwatchable(paths []string, tree *files.Tree) []string {
	var out []string
	for _, p := range paths {
		if inTree := !isRooted(p) && !filepath.IsAbs(p) && tree != nil; inTree && tree.Covers(p) && !strings.ContainsAny(p, "*?[") {
			continue
		}
		out = append(out, fmt.Sprintf("--watch %s: what changes outside the work tree, or is ignored there, is seen in the jail alone, and "+
			"one of the two runs was not there (record or replay it again)", p))
	}
	return out
}
