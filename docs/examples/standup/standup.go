// Package standup is the first example of docs/testbench.md, which quotes it: a small agent, and its test on a testbench.
package standup

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

// standup asks a model what to ask Git, asks Git, and writes down a day later what came of it.
func standup(ctx context.Context, b *testbench.Bench) error {
	answer, err := b.Model().Complete(ctx, &fixture.Request{Messages: "What changed? Answer with arguments of git."})
	if err != nil {
		return err
	}
	out, err := b.Processes().Command(ctx, "git", strings.Fields(answer.Text)...).Output()
	if err != nil {
		return err
	}
	if err := b.Clock().Sleep(ctx, 24*time.Hour); err != nil {
		return err
	}
	note := fmt.Sprintf("%s: %s", b.Clock().Now().Format(time.DateOnly), out)
	return b.Files().WriteFile("standup.txt", []byte(note), 0o644)
}
