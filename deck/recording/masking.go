package recording

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

// Masking says which volatile facts are masked beside or without those that tapedeck knows. It stands in recording.json,
// for a replay must mask as its recording did.
type Masking struct {
	Off []string  `json:"off" yaml:"off"`
	Add []OwnMask `json:"add" yaml:"add"`
	// Agents name those whose masks are used beside the ones of every program; nil for those of the command line.
	Agents  []string `json:"agents,omitempty" yaml:"agents"`
	Headers *Headers `json:"headers,omitempty" yaml:"-"` // beside masks in the file
	Rules   int      `json:"rules,omitempty" yaml:"-"`   // version of the masks that tapedeck knows (masks.Rules); none is 1
}

// Headers says which headers of requests compare beside or without those that tapedeck compares by itself.
type Headers struct {
	Ignore  []string `json:"ignore,omitempty" yaml:"ignore"`
	Compare []string `json:"compare,omitempty" yaml:"compare"`
}

// Compares reports whether a header of requests compares. A nil Headers changes nothing.
func (h *Headers) Compares(name string) bool {
	switch {
	case h != nil && fidelity.HeaderIn(h.Ignore, name):
		return false
	case h != nil && fidelity.HeaderIn(h.Compare, name):
		return true
	}
	return !fidelity.HeaderIn(fidelity.TransportHeaders(), name)
}

// ignored lists the headers of requests that do not compare, a * for the rest of a name.
func (h *Headers) ignored() []string {
	out := fidelity.TransportHeaders()
	if h != nil {
		out = slices.DeleteFunc(append(out, h.Ignore...), func(name string) bool {
			return !fidelity.HeaderIn(h.Ignore, name) && fidelity.HeaderIn(h.Compare, name)
		})
	}
	for i := range out {
		out[i] = strings.ToLower(out[i])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// OwnMask is a mask of a project's own.
type OwnMask struct {
	Name    string `json:"name" yaml:"name"`
	Pattern string `json:"pattern" yaml:"pattern"`               // RE2
	Drop    bool   `json:"drop,omitempty" yaml:"drop,omitempty"` // the match goes without a trace
}

// Comparing is how a recording compares now.
type Comparing struct {
	*Masking
	Side    *fidelity.SideRules
	Files   []string // paths, as on the tape, at or below which its agents log what they do
	Changed bool     // its digests were taken under other masks
}

// ComparingNow is how a recording compares by the tapedeck.yaml in config, or by its own masks and headers where there is no such file.
func (m *Manifest) ComparingNow(config string) (*Comparing, error) {
	own, err := ReadConfig(config)
	if err != nil {
		return nil, err
	}
	now := *cmp.Or(own.Masks, m.Masking, new(Masking))
	switch {
	case now.Agents != nil:
	case m.Masking == nil || m.Masking.Rules < masks.Rules:
		now.Agents = agentsBefore
	default:
		now.Agents = m.Masking.Agents
	}
	now.Rules = masks.Rules
	c := &Comparing{Masking: &now, Side: new(fidelity.SideRules), Changed: !now.SameAs(m.Masking)}
	if own.Side != nil {
		*c.Side = *own.Side
	}
	used, _ := knownAgents(now.Agents)
	for _, a := range used {
		c.Side.Ignore, c.Files = slices.Concat(c.Side.Ignore, a.ignore), append(c.Files, a.logs...)
	}
	return c, nil
}

// SameAs reports whether digests are the same under m and o.
func (m *Masking) SameAs(o *Masking) bool {
	m, o = cmp.Or(m, new(Masking)), cmp.Or(o, new(Masking))
	return slices.Equal(m.Off, o.Off) && slices.Equal(m.Add, o.Add) && slices.Equal(m.Agents, o.Agents) && max(m.Rules, 1) == max(o.Rules, 1)
}

// Masker returns what masks for runs with these roots. A nil Masking is what tapedeck knows, all of it.
func (m *Masking) Masker(r *Roots) (*masks.Masker, error) {
	o, err := m.options(r)
	if err != nil {
		return nil, err
	}
	return masks.New(o), nil
}

func (m *Masking) options(r *Roots) (*masks.Options, error) {
	o := &masks.Options{Home: r.Home, WorkTree: r.Tree, Temp: r.Temp, Moved: r.Moved}
	all, err := m.agentMasks()
	if err != nil {
		return nil, err
	}
	if m != nil {
		o.Disabled = slices.DeleteFunc(slices.Clone(m.Off), func(name string) bool {
			return name == maskTelemetry || isAgentMask(name) || slices.ContainsFunc(screenMasks(), func(s screenMask) bool { return s.Name == name })
		})
		all = append(all, m.Add...)
	}
	for _, own := range all {
		re, err := regexp.Compile(own.Pattern)
		if err != nil {
			return nil, fmt.Errorf("mask %q: %w", own.Name, err)
		}
		o.Extra = append(o.Extra, masks.Extra{Name: own.Name, Pattern: re, Drop: own.Drop})
	}
	return o, o.Check()
}

// maskTelemetry was a mask of what side traffic is now. A recording or a project that names it means nothing by it.
const maskTelemetry = "telemetry"

// MaskUse is one mask and how often a recording used it.
type MaskUse struct {
	Name    string `json:"name"`
	What    string `json:"what"`
	Example string `json:"example"`
	Off     bool   `json:"off"`
	Used    int    `json:"used"`
}

// MasksOf lists the masks that a recording of the work tree at tree would use, of which none is used yet, and the headers of requests
// that do not compare there. tree may be "", which has no tapedeck.yaml.
func MasksOf(tree string) (masks []MaskUse, headers []string, err error) {
	own, err := ReadConfig(tree)
	masks, headers = (&Manifest{Masking: own.Masks}).MaskUses()
	return masks, headers, err
}

// MaskUses lists the masks that tapedeck knows, then the recording's own, with how often each was used, and the headers of requests that do
// not compare; a * stands for the rest of a name.
func (m *Manifest) MaskUses() (out []MaskUse, headers []string) {
	own := cmp.Or(m.Masking, new(Masking))
	use := func(name, what, example string) {
		out = append(out, MaskUse{name, what, example, slices.Contains(own.Off, name), m.Masks[name]})
	}
	for _, k := range masks.All() {
		use(k.Name, k.What, k.Example)
	}
	use(fidelity.AnswerIDs, "ids and times that a provider makes up for each answer, where two answers differ in nothing else: a verdict "+
		"counts them; always on", `"id":"chatcmpl-9xKf2"`)
	for _, s := range screenMasks() {
		use(s.Name, s.what, s.example)
	}
	use(fidelity.AnimationMask, "of screens: what moves while nothing is typed or answered, in its row; a verdict with --tty counts the "+
		"rows; always on", "⠋ Working")
	for _, a := range agents {
		for _, k := range a.masks {
			if !slices.ContainsFunc(out, func(u MaskUse) bool { return u.Name == k.Name }) {
				use(k.Name, "of "+a.name+", where it runs", k.Pattern)
			}
		}
	}
	for _, k := range own.Add {
		use(k.Name, "of "+ConfigName, k.Pattern)
	}
	return out, own.Headers.ignored()
}

// screenMasks are masks of what stands on screens alone, where programs write for people: elsewhere such a shape may be anything.
var screenMasks = sync.OnceValue(func() []screenMask {
	return []screenMask{
		{masks.Extra{Name: "screen-clock", Pattern: regexp.MustCompile(
			`(?:^|[\s(\[|│•·—])((?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9])?(?: ?[AaPp][Mm])?)(?:$|[\s)\]|│•·—,.])`)},
			"of screens: a time of day that stands by itself", "Worked • 10:01"},
		{masks.Extra{Name: "screen-elapsed", Pattern: regexp.MustCompile(
			`(?:\(|\b(?:[Ff]or|[Ii]n|[Aa]fter) )((?:[0-9]+h ?)?(?:[0-9]+m ?)?[0-9]+(?:\.[0-9]+)?s)\b`)},
			"of screens: how long something has taken", "Working (3s • esc to interrupt)"},
	}
})

type screenMask struct {
	masks.Extra
	what, example string
}

// ScreenMasker returns what masks the rows of screens. It counts for itself.
func (m *Masking) ScreenMasker(r *Roots) (*masks.Masker, error) {
	own := cmp.Or(m, new(Masking))
	o, err := m.options(r)
	if err != nil {
		return nil, err
	}
	for _, s := range screenMasks() {
		if !slices.Contains(own.Off, s.Name) {
			o.Extra = append(o.Extra, s.Extra)
		}
	}
	return masks.New(o), nil
}

// An agent is a program that makes up, in every run, what no replay can give again: names that its tasks draw from one stream of
// random numbers, whichever comes first, and lines that it logs by chance.
type agent struct {
	name     string
	programs []string // the last elements of their paths, without .js
	masks    []OwnMask
	ignore   []string // side traffic, as in SideRules
	logs     []string // where it logs what it says and does, which is compared for itself, in the order in which its threads come to it
}

// agents are told by the command line of a run (AgentsIn), or by masks.agents of tapedeck.yaml. A mask of one is used in its
// runs alone, and stands for a shape in a place as that agent writes it.
var agents = []agent{
	{
		name: "claude-code", programs: []string{"claude", "claude-code"},
		masks: append([]OwnMask{
			{Name: "task-id", Pattern: `(?:ID: |<task-id>|tasks/)(b[0-9a-z]{8}|<temp-name>)(?:\.output|</task-id>|\. Output)`},
			{Name: "agent-id", Pattern: `(?:^|agentId: |to: '|agent-)(a[0-9a-f]{16})\b`},
			{Name: "billing-hash", Pattern: `cch=([0-9a-f]{5});`},
		}, shellMasks...),
		ignore: []string{"POST api.anthropic.com/api/eval/*"}, // feature flags, asked for with an id of the device
		logs: []string{"~/.claude/projects/*/*.jsonl", "~/.claude/projects/*/*/*/*.jsonl", "~/.cache/claude-cli-nodejs/*/mcp-logs-*/*.jsonl",
			"~/.claude/.last-cleanup", "~/.claude/shell-snapshots"}, // it cleans up, unless it ends before
	},
	{
		name: "copilot", programs: []string{"copilot"}, logs: []string{"~/.copilot/logs", "~/.copilot/session-state", "~/.cache/Microsoft/DeveloperTools/deviceid"},
		masks: append([]OwnMask{{Name: "login-shell", Pattern: `copilot_login_env_snapshot_([0-9a-f]+_[0-9a-f]+)`}}, shellMasks...),
	},
	{
		name: "codex", programs: []string{"codex"},
		// Its numbers of commands are drawn by whichever thread comes, and it keeps how long each of its steps took, those of its databases too.
		logs: []string{"~/.codex/sessions", "~/.codex/*.sqlite*", "~/.codex/.tmp"},
		masks: []OwnMask{
			{Name: "chunk-id", Pattern: `\bChunk ID: ([0-9A-Fa-f]{4,})\b`},
			// Its list of models could not be asked for, with the reasons that come of the exchange, which compares for itself.
			{Name: "codex-models", Drop: true, Pattern: `(?m)^(?:<timestamp>|[0-9]\S*Z) ERROR codex_models_manager::manager: ` +
				`failed to refresh available models: (?:stream disconnected before completion: |unexpected status |Connection failed: ).*(?:\n|\z)`},
		},
	},
	{name: "opencode", programs: []string{"opencode"}, logs: []string{"~/.local/share/opencode/log"}},
	{
		name: "gemini-cli", programs: []string{"gemini", "gemini-cli"},
		masks: []OwnMask{
			// A phase of its start is over sooner or later than its measures are looked at.
			{Name: "gemini-startup", Drop: true, Pattern: `(?m)^\[STARTUP\] (?:Phase '\w*' was started but never ended\. Skipping metrics\.` +
				`|Cannot measure phase '\w*': start mark 'startup:\w*:start' not found \(likely cleared by reset\)\.` +
				`|Cannot end phase '\w*': phase was already ended\.)(?:\n|\z)`},
		},
	},
}

// shellMasks are of the names by which agents of one family keep the state of a shell between two commands.
var shellMasks = []OwnMask{
	{Name: "shell-snapshot", Pattern: `snapshot-bash-([0-9]+-[0-9a-z]+)`},
	{Name: "shell-path", Pattern: `PATH_END_([0-9a-z]+)`},
	{Name: "shell-cwd", Pattern: `<temp-name>-([0-9a-f]{4})-cwd`},
}

// agentsBefore had their masks among those of every program, in recordings whose masks are older than Rules 3.
var agentsBefore = []string{"codex", "gemini-cli"}

// AgentsIn names the agents that a command line starts, by itself, through a runner of programs, or in the script of a shell.
func AgentsIn(argv []string) []string {
	names := []string{} // not nil: none is known, which a later version of this table does not change
	for _, words := range commandsIn(argv) {
		program := programIn(words)
		if i := slices.IndexFunc(agents, func(a agent) bool { return slices.Contains(a.programs, program) }); i >= 0 {
			names = append(names, agents[i].name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

var (
	shells  = []string{"sh", "bash", "dash", "zsh", "ksh", "fish"}
	runners = []string{"npx", "bunx", "pnpx", "npm", "pnpm", "yarn", "bun", "deno", "node", "env", "nohup", "exec", "nice", "time"}
	// runnerWords are what a runner is told before the program.
	runnerWords = []string{"exec", "x", "dlx", "run"}
	// innards are names within a package that say nothing of it.
	innards = []string{"cli", "index", "main", "dist", "bundle", "build", "lib", "bin", "src"}
)

// commandsIn are the commands of a command line: those of its script where a shell has one, as far as separators tell them.
func commandsIn(argv []string) (commands [][]string) {
	script := slices.IndexFunc(argv, func(arg string) bool {
		return len(arg) > 1 && arg[0] == '-' && arg[1] != '-' && strings.HasSuffix(arg, "c")
	}) + 1
	if len(argv) == 0 || !slices.Contains(shells, path.Base(argv[0])) || script == 0 || script == len(argv) {
		return [][]string{argv}
	}
	text := quotedText().ReplaceAllString(argv[script], "_") // what it says is no command
	for command := range strings.FieldsFuncSeq(text, func(c rune) bool { return strings.ContainsRune(";&|()\n", c) }) {
		commands = append(commands, strings.Fields(command))
	}
	return commands
}

var quotedText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"[^"]*"|'[^']*'`) })

// programIn is what the program of a command is called, without the way to it, its version and .js; "" for none.
func programIn(words []string) string {
	for len(words) > 0 && (strings.Contains(words[0], "=") || strings.HasPrefix(words[0], "-") || slices.Contains(runners, path.Base(words[0])) || slices.Contains(runnerWords, words[0])) {
		words = words[1:]
	}
	if len(words) == 0 {
		return ""
	}
	file := words[0]
	if at := strings.LastIndexByte(file, '@'); at > strings.LastIndexByte(file, '/')+1 {
		file = file[:at]
	}
	for file = strings.TrimSuffix(file, ".js"); slices.Contains(innards, path.Base(file)); {
		file = path.Dir(file)
	}
	return path.Base(file)
}

// knownAgents are those of these names.
func knownAgents(names []string) ([]agent, error) {
	var out []agent
	for _, name := range names {
		i := slices.IndexFunc(agents, func(a agent) bool { return a.name == name })
		if i < 0 {
			var known []string
			for _, a := range agents {
				known = append(known, a.name)
			}
			return nil, fmt.Errorf("masks.agents: no agent is named %q; there are %s", name, strings.Join(known, ", "))
		}
		out = append(out, agents[i])
	}
	return out, nil
}

// isAgentMask tells whether a mask is of an agent, used here or not.
func isAgentMask(name string) bool {
	return slices.ContainsFunc(agents, func(a agent) bool {
		return slices.ContainsFunc(a.masks, func(k OwnMask) bool { return k.Name == name })
	})
}

// agentMasks are the masks of the agents of m that it does not switch off, and has none of its own for.
func (m *Masking) agentMasks() (out []OwnMask, err error) {
	names := agentsBefore
	if m != nil && m.Rules >= masks.Rules {
		names = m.Agents
	}
	used, err := knownAgents(names)
	for _, a := range used {
		for _, k := range a.masks {
			named := func(o OwnMask) bool { return o.Name == k.Name }
			if m == nil || !slices.Contains(m.Off, k.Name) && !slices.ContainsFunc(m.Add, named) && !slices.ContainsFunc(out, named) {
				out = append(out, k)
			}
		}
	}
	return out, err
}
