package bench

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/tapedeck-dev/tapedeck/integration/agents"
	"github.com/tapedeck-dev/tapedeck/internal/scriptedllm"
)

// realAgent is a source: how long a whole run of an agent from npm takes when it is recorded, by how long it takes in the same
// jail without a recorder: agents ask hosts that they should not, so none runs outside one.
type realAgent struct {
	recipe *agents.Recipe
	pace   time.Duration // between two events of the model's stream
	text   int           // bytes of the model's last answer
	runs   int           // of each
}

func (a realAgent) how(short bool) string {
	n := a.runs
	if short {
		n = 1
	}
	return fmt.Sprintf("wall time of the agent under `tapedeck record` by that of the agent in a jail whose sockets the scripted endpoint itself "+
		"serves, over TLS; \"write hello.txt\", answers streamed with %v between events, the last of %d bytes; a work tree of %d files, a fresh "+
		"HOME; medians of alternating runs after one of each that does not count: %d", a.pace, a.text, agentFiles, n)
}

// agentHome is an agent's command as a workload: it begins with a HOME that has nothing but what its recipe says.
type agentHome struct {
	recipe  *agents.Recipe
	program []string
}

func (a *agentHome) tell(bool) string { return a.recipe.Name }

func (a *agentHome) prepare(_ context.Context, e *env, p *place) error {
	a.program = nil
	program, err := a.recipe.Program(e.agents.text)
	if err != nil {
		return err
	}
	a.program = program
	return (&recorder{work: p.work()}).fill(agentFiles)
}

func (a *agentHome) clean(e *env, p *place) error {
	if err := e.clear(p.home(), p.temp()); err != nil {
		return err
	}
	if err := e.putAway(filepath.Join(p.work(), "hello.txt")); err != nil {
		return err
	}
	for name, content := range a.recipe.Files {
		path := filepath.Join(p.home(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (a *agentHome) command(*place) (argv, env []string) {
	env = []string{a.recipe.Key + "=" + a.recipe.Value, "HTTP_PROXY=" + agents.Nowhere, "HTTPS_PROXY=" + agents.Nowhere}
	for name, value := range a.recipe.Env {
		env = append(env, name+"="+value)
	}
	return a.recipe.Command(a.program, "write hello.txt"), env
}

func (a realAgent) measure(ctx context.Context, e *env) (reading, error) {
	t, err := newTrial(ctx, e, &agentHome{recipe: a.recipe})
	if err != nil {
		return reading{}, err
	}
	model := jailedProgram{Host: a.recipe.Host, Key: a.recipe.Value, Pace: a.pace, Text: words(a.text)}
	server := httptest.NewServer(scriptedllm.New(modelOptions(model.Key, model.Pace, model.Text)))
	defer server.Close()
	t.flags = append(t.flags, "--upstream", a.recipe.Host+"="+server.URL)
	did := func(run func() (time.Duration, error)) func() (time.Duration, error) {
		return func() (time.Duration, error) {
			took, err := run()
			if err == nil {
				_, err = os.Stat(filepath.Join(t.place.work(), "hello.txt"))
			}
			return took, err
		}
	}
	jailed := func() (time.Duration, error) { return t.jailed(ctx, model) }
	times, err := alternate(pick(e, a.runs, 1), did(jailed), did(t.recorded(ctx)))
	if err != nil {
		return reading{}, err
	}
	return reading{value: times[1].median() / times[0].median(), beside: fmt.Sprintf("%s against %s", times[1], times[0])}, nil
}

// needAgent is a need: the agent, below $TAPEDECK_AGENTS or, where the caller wants that, installed with the others.
func needAgent(r *agents.Recipe) need {
	return func(ctx context.Context, e *env) string {
		if e.agents == (output{}) {
			e.agents.text, e.agents.err = e.findAgents(ctx)
		}
		err := e.agents.err
		if err == nil {
			_, err = r.Program(e.agents.text)
		}
		if err != nil {
			return fmt.Sprintf("agents (install with integration/install-npm.sh integration/agents DIR and set TAPEDECK_AGENTS=DIR/node_modules, or say -peers): %v", err)
		}
		return ""
	}
}

func (e *env) findAgents(ctx context.Context) (string, error) {
	if dir := os.Getenv("TAPEDECK_AGENTS"); dir != "" {
		return dir, nil
	}
	if !e.peers {
		return "", fmt.Errorf("TAPEDECK_AGENTS is not set")
	}
	dir := filepath.Join(e.tmp, "agents")
	cmd := e.command(ctx, e.root, "bash", filepath.Join("integration", "install-npm.sh"), filepath.Join("integration", "agents"), dir)
	cmd.Env = os.Environ()
	_, err := do(cmd)
	return filepath.Join(dir, "node_modules"), err
}

// agentRows are those of the agents, one each.
func agentRows() []row {
	var out []row
	for i := range agents.Recipes {
		r := &agents.Recipes[i]
		out = append(out, row{
			name: "agents/" + r.Name, unit: "x", target: atMost(1.1), timeout: 20 * time.Minute, needs: []need{needJail, needNode, needAgent(r)},
			what: "a whole run of " + r.Name + " recorded, by the same in a jail without a recorder",
			from: realAgent{recipe: r, pace: 30 * time.Millisecond, text: 1200, runs: 5},
		})
	}
	return out
}
