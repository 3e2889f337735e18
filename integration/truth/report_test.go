package truth

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// A tally counts verdicts on changes that the documents say compare.
type tally struct{ judged, missed, noted, caught, named int }

func (t *tally) add(o *outcome) {
	if o.Verdict == unjudged || o.Verdict == broken || o.Verdict == unmade {
		return
	}
	t.judged++
	switch o.Verdict {
	case green:
		t.missed++
	case greenNote:
		t.noted++
	case redNamed:
		t.named++
		t.caught++
	case red:
		t.caught++
	}
}

// wilson is the 95% interval of k of n, in percent.
func wilson(k, n int) (low, high float64) {
	if n == 0 {
		return 0, 100
	}
	const z = 1.959964
	p, m := float64(k)/float64(n), float64(n)
	mid := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return max(0, 100*(mid-half)), min(100, 100*(mid+half))
}

func share(k, n int) string {
	if n == 0 {
		return "none tried"
	}
	low, high := wilson(k, n)
	return fmt.Sprintf("%d of %d: %.1f%% (%.1f to %.1f)", k, n, 100*float64(k)/float64(n), low, high)
}

// A document is what docs/reference/truth.md says of outcomes.
type document struct {
	strings.Builder
	outcomes []*outcome
	modes    []mode
}

func (o *options) document(outcomes []*outcome) string {
	d := &document{outcomes: outcomes}
	for _, m := range strings.Split(o.modes, ",") {
		d.modes = append(d.modes, mode(m))
	}
	d.intro(o)
	d.whole()
	d.by("By kind of change", "what was changed", func(c *outcome) string { return c.Kind })
	d.by("By place", "where", func(c *outcome) string { return c.Place })
	d.by("By how a changed constant reaches the program", "from", func(c *outcome) string { return c.Origin })
	d.alarms()
	d.wrongs()
	d.blind()
	d.failures()
	return d.String()
}

func (d *document) intro(o *options) {
	fmt.Fprintf(d, `# Can the verdict be believed?

<!-- generated: do not edit; go test -v -timeout 5h ./integration/truth -run Verdicts -seed %d -programs %d -modes %s -page docs/reference/truth.md -->

Measured, not claimed. A generator that shares no code with tapedeck makes programs in Python and Node from a seed: calls of models
over the wires of Anthropic, OpenAI (chat, responses, embeddings), Mistral, Ollama and Gemini, streaming or not; plain HTTP, JSON, forms, uploads; tool servers over
MCP; files in the work tree, HOME and the temporary directory, large ones and databases; children, pipelines, daemons; threads; names, sockets; in every third program something that differs
in every run. Each is recorded, replayed twice as it is (once with another TZ, LANG, HOME and directory outside), and then with **one** change.
What a change must come to is fixed before, from what the documents say compares ([replay](../replay.md), [limits](limits.md)).

    go test -v -timeout 5h ./integration/truth -run Verdicts -seed %d -programs %d -modes %s -page docs/reference/truth.md   # again
    go test -v ./integration/truth -run Verdicts -only %d/7        # one program, with every change and what was said of it
    go test -v ./integration/truth -run Verdicts -programs 12     # the short form, in .ci/run

*Missed*: status 0, and nothing in the report names the change. *Noted*: status 0, and a note names it that the unchanged program does
not have. *Caught*: status 2. *Named*: the first divergence holds the new value or the place. *False alarm*: status 2 of a replay of the same
program. A change of a program that is a false alarm as it is, is not judged. In brackets: 95%% bounds (Wilson).

`, o.seed, o.n, o.modes, o.seed, o.n, o.modes, o.seed)
}

// row writes a line of a table.
func (d *document) row(cells ...string) { fmt.Fprintf(d, "| %s |\n", strings.Join(cells, " | ")) }

func (d *document) head(cells ...string) {
	d.row(cells...)
	d.row(slices.Repeat([]string{"---"}, len(cells))...)
}

// whole is the table of everything.
func (d *document) whole() {
	rows := []string{"recorded programs", "unchanged replays: false alarms", "changes that compare: missed", "noted", "caught", "first divergence names it, of those caught",
		"changes that a mask may hide, if a note says so: missed", "changes that are the same by the documents: false alarms", "not judged"}
	columns := make([][]string, len(d.modes))
	titles := []string{""}
	for i, m := range d.modes {
		titles, columns[i] = append(titles, string(m)), d.column(m)
	}
	d.head(titles...)
	for r, name := range rows {
		cells := []string{name}
		for _, c := range columns {
			cells = append(cells, c[r])
		}
		d.row(cells...)
	}
}

func (d *document) column(m mode) []string {
	seen := map[uint64]bool{}
	var must, may tally
	var alarms, unchanged, wrong, same, skipped int
	for _, o := range d.outcomes {
		switch {
		case o.Mode != m || o.Verdict == unmade:
			continue
		case o.Change == -1:
			seen[o.Index] = true
			unchanged++
			alarms += count(o.isRed())
		case o.Verdict == unjudged:
			skipped++
		case o.Want == harmless:
			same++
			wrong += count(o.isRed())
		case o.Want == caught:
			must.add(o)
		case o.Want == noted:
			may.add(o)
		}
	}
	return []string{fmt.Sprint(len(seen)), share(alarms, unchanged), share(must.missed, must.judged), share(must.noted, must.judged), share(must.caught, must.judged),
		share(must.named, must.caught), share(may.missed, may.judged), share(wrong, same), fmt.Sprint(skipped)}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// by is a table of what must be caught or noted, by a property of it.
func (d *document) by(title, what string, key func(*outcome) string) {
	fmt.Fprintf(d, "\n## %s\n\n", title)
	rows := map[string]map[mode]*tally{}
	for _, o := range d.outcomes {
		if o.Want != caught && o.Want != noted {
			continue
		}
		k := key(o)
		if rows[k] == nil {
			rows[k] = map[mode]*tally{}
			for _, m := range d.modes {
				rows[k][m] = new(tally)
			}
		}
		rows[k][o.Mode].add(o)
	}
	titles := []string{what}
	for _, m := range d.modes {
		titles = append(titles, string(m)+": judged", "missed", "noted", "caught", "named")
	}
	d.head(titles...)
	var whole []string
	for _, k := range slices.Sorted(maps.Keys(rows)) {
		if judged, named := allOf(rows[k]); judged == named {
			whole = append(whole, fmt.Sprintf("%s (%d)", k, judged))
			continue
		}
		cells := []string{k}
		for _, m := range d.modes {
			cells = append(cells, rows[k][m].cells()...)
		}
		d.row(cells...)
	}
	d.rest("Caught and named each time, of as many as were judged", whole)
}

// rest tells in one paragraph of what a table leaves out.
func (d *document) rest(what string, names []string) {
	if len(names) > 0 {
		fmt.Fprintf(d, "\n%s: %s.\n", what, strings.Join(names, ", "))
	}
}

// allOf counts what was judged in all modes, and what of it was caught and named.
func allOf(row map[mode]*tally) (judged, named int) {
	for _, t := range row {
		judged += t.judged
		named += t.named
	}
	return judged, named
}

func (t *tally) cells() []string {
	if t.judged == 0 {
		return []string{"", "", "", "", ""}
	}
	return []string{fmt.Sprint(t.judged), blank(t.missed), blank(t.noted), blank(t.caught), blank(t.named)}
}

func blank(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// alarms is the table of what differs in every run.
func (d *document) alarms() {
	fmt.Fprint(d, "\n## Unchanged replays, by what differs in every run\n\n")
	type cell struct{ all, red int }
	rows := map[string]map[mode]*cell{}
	for _, o := range d.outcomes {
		if o.Change != -1 || o.Verdict == unmade {
			continue
		}
		for _, k := range strings.Split(o.Kind, " + ") {
			if rows[k] == nil {
				rows[k] = map[mode]*cell{}
				for _, m := range d.modes {
					rows[k][m] = new(cell)
				}
			}
			rows[k][o.Mode].all++
			rows[k][o.Mode].red += count(o.isRed())
		}
	}
	titles := []string{"what, where"}
	for _, m := range d.modes {
		titles = append(titles, string(m)+": replays", "false alarms")
	}
	d.head(titles...)
	var never []string
	for _, k := range slices.Sorted(maps.Keys(rows)) {
		cells, all, red := []string{k}, 0, 0
		for _, m := range d.modes {
			cells = append(cells, blank(rows[k][m].all), blank(rows[k][m].red))
			all += rows[k][m].all
			red += rows[k][m].red
		}
		if red == 0 {
			never = append(never, fmt.Sprintf("%s (%d)", k, all))
			continue
		}
		d.row(cells...)
	}
	d.rest("No false alarm, in as many replays", never)
}

// wrongs lists what is not caught, one of each kind and place with the way to see it.
func (d *document) wrongs() {
	fmt.Fprint(d, "\n## What is not caught, or red and the same by the documents\n\nOne of each kind and place.\n\n")
	d.head("where", "what", "mode", "verdict", "how often", "to see it")
	type key struct {
		place, kind string
		mode        mode
	}
	all, first := map[key]int{}, map[key]*outcome{}
	for _, o := range d.outcomes {
		if o.Change != -1 && o.wrong() && o.Verdict != broken {
			k := key{o.Place, o.Kind, o.Mode}
			all[k]++
			if first[k] == nil || (first[k].Verdict != green && o.Verdict == green) {
				first[k] = o
			}
		}
	}
	keys := slices.SortedFunc(maps.Keys(all), func(a, b key) int {
		return strings.Compare(a.place+"\x00"+a.kind+string(a.mode), b.place+"\x00"+b.kind+string(b.mode))
	})
	for _, k := range keys {
		o := first[k]
		d.row(k.place, k.kind, string(k.mode), o.Verdict, fmt.Sprint(all[k]), fmt.Sprintf("`-modes=%s -only %d/%d`, change %d", o.Mode, o.Seed, o.Index, o.Change))
	}
}

// blind lists what the documents say that nothing compares.
func (d *document) blind() {
	fmt.Fprint(d, "\n## What cannot be seen\n\nNo verdict speaks of these, and none is expected to.\n\n")
	d.head("where", "what", "mode", "why", "tried", "red all the same")
	type key struct{ place, kind, mode, why string }
	tried, seen := map[key]int{}, map[key]int{}
	for _, o := range d.outcomes {
		if o.Want != unseen || o.Verdict == unjudged {
			continue
		}
		k := key{o.Place, o.Kind, string(o.Mode), o.Why}
		if slices.ContainsFunc(forms, func(f form) bool { return f.kind == o.Kind }) {
			k.kind = "any constant"
		}
		tried[k]++
		seen[k] += count(o.isRed())
	}
	keys := slices.SortedFunc(maps.Keys(tried), func(a, b key) int {
		return strings.Compare(a.place+a.kind+a.mode, b.place+b.kind+b.mode)
	})
	for _, k := range keys {
		d.row(k.place, k.kind, k.mode, k.why, fmt.Sprint(tried[k]), blank(seen[k]))
	}
}

// failures are runs that gave no verdict.
func (d *document) failures() {
	n := 0
	for _, o := range d.outcomes {
		if o.Verdict != broken && o.Verdict != unmade {
			continue
		}
		if n == 0 {
			fmt.Fprint(d, "\n## No verdict\n\n")
		}
		n++
		said := strings.Join(strings.Fields(o.Said), " ")
		fmt.Fprintf(d, "- %s %d/%d, %s, change %d: %s: %.300s\n", o.Mode, o.Seed, o.Index, o.Lang, o.Change, o.Verdict, said)
	}
}
