package recording

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

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
		logs:   []string{"~/.claude/projects/*/*.jsonl", "~/.claude/projects/*/*/*/*.jsonl", "~/.claude/.last-cleanup"},
	},
	{
		name: "copilot", programs: []string{"copilot"}, logs: []string{"~/.copilot/logs", "~/.copilot/session-state", "~/.cache/Microsoft/DeveloperTools/deviceid"},
		masks: append([]OwnMask{{Name: "login-shell", Pattern: `copilot_login_env_snapshot_([0-9a-f]+_[0-9a-f]+)`}}, shellMasks...),
	},
	{
		name: "codex", programs: []string{"codex"},
		masks: []OwnMask{
			{Name: "chunk-id", Pattern: `\bChunk ID: ([0-9A-Fa-f]{4,})\b`},
			// Its list of models could not be asked for, with the reasons that come of the exchange, which compares for itself.
			{Name: "codex-models", Drop: true, Pattern: `(?m)^(?:<timestamp>|[0-9]\S*Z) ERROR codex_models_manager::manager: ` +
				`failed to refresh available models: (?:stream disconnected before completion: |unexpected status |Connection failed: ).*(?:\n|\z)`},
		},
	},
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

// SideTraffic is what own says of side traffic, and what the agents of m ask on the side.
func (m *Masking) SideTraffic(own *fidelity.SideRules) *fidelity.SideRules {
	all := new(fidelity.SideRules)
	if own != nil {
		*all = *own
	}
	used, _ := knownAgents(m.Agents)
	for _, a := range used {
		all.Ignore = slices.Concat(all.Ignore, a.ignore)
	}
	return all
}

// AgentFiles are the paths, as on the tape, at or below which the agents of m log what they do.
func (m *Masking) AgentFiles() (paths []string) {
	used, _ := knownAgents(m.Agents)
	for _, a := range used {
		paths = append(paths, a.logs...)
	}
	return paths
}
