package fidelity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// others writes the further divergences by lane, in order of the lanes' first. What follows from a refused request is one
// block, and so are mere drifts of times.
func (t *textWriter) others(r *Report, ds []Divergence) {
	if len(ds) == 0 {
		return
	}
	follow := 0
	for i := range ds {
		if ds[i].afterRefusal {
			follow++
		}
	}
	fold := follow >= foldedRefusal && !t.o.All
	var folded []*Divergence
	drifts := make(map[Category]int)
	var lanes []string
	byLane := make(map[string][]*Divergence)
	for i := range ds {
		d := &ds[i]
		switch {
		case fold && d.afterRefusal:
			folded = append(folded, d)
			continue
		case drift(d.Category) && !t.o.All:
			drifts[d.Category]++
			continue
		}
		if byLane[d.Lane] == nil {
			lanes = append(lanes, d.Lane)
		}
		byLane[d.Lane] = append(byLane[d.Lane], d)
	}
	then := fmt.Sprintf("then %d more:", len(ds)+r.Omitted)
	if len(folded) == len(ds) && r.Omitted == 0 {
		then = fmt.Sprintf("then %d more, which follow from the refused request:", len(ds))
	}
	t.line(0, bold, then)
	for _, lane := range lanes {
		t.line(2, plain, fmt.Sprintf("%s (%d)", cmp.Or(lane, "records"), len(byLane[lane])))
		t.ofLane(r.names, byLane[lane])
	}
	if len(folded) > 0 && len(folded) < len(ds)+r.Omitted {
		t.line(2, plain, fmt.Sprintf("%d that follow from the refused request:", len(folded)))
		t.folded(4, folded)
	} else {
		t.folded(2, folded)
	}
	if len(drifts) > 0 {
		t.left = true
		t.line(2, plain, "times that drifted: "+driftsOf(drifts))
	}
}

func driftsOf(n map[Category]int) string {
	var out []string
	for _, c := range slices.Sorted(maps.Keys(n)) {
		out = append(out, fmt.Sprintf("%s %d", c, n[c]))
	}
	return strings.Join(out, ", ")
}

// ofLane writes the further divergences of one lane. Many records in a row that one side has alone are one line. Where some
// are left out, the weightiest are shown.
func (t *textWriter) ofLane(names sideNames, ds []*Divergence) {
	if len(ds) > shownPerLane && !t.o.All {
		slices.SortStableFunc(ds, func(a, b *Divergence) int { return cmp.Compare(weight(a), weight(b)) })
	}
	for shown := 0; len(ds) > 0; shown++ {
		if shown == shownPerLane && !t.o.All {
			t.left = true
			t.line(4, plain, fmt.Sprintf("and %d more", len(ds)))
			return
		}
		n := run(ds)
		if n >= shownInRun && !t.o.All {
			t.left = true
			t.line(4, plain, fmt.Sprintf("seq %d to %d: %d in a row %s, the first %s", *ds[0].Seq, *ds[n-1].Seq, n,
				sideOf(names, ds[0]), cmp.Or(ds[0].Recorded, ds[0].Replay)))
			ds = ds[n:]
			continue
		}
		t.other(ds[0])
		ds = ds[1:]
	}
}

// weight orders divergences where not all are shown: whole exchanges and processes that were inserted, removed or moved,
// then other whole records, then fields.
func weight(d *Divergence) int {
	switch d.Category {
	case MissingInRecorded, MissingInReplay, RecordMoved, KindMismatch:
		kind, _, _ := strings.Cut(cmp.Or(d.Recorded, d.Replay), " ")
		switch kind {
		case "llm_call", "http_exchange", "process_spawn", "mcp_json_rpc", "mcp_open", "ws_open":
			return 0
		}
		return 1
	}
	return 2
}

// run is how many divergences at the start of ds are about records in a row that one side has alone.
func run(ds []*Divergence) int {
	n := 1
	for n < len(ds) && ds[n].Category == ds[0].Category && alone(ds[0]) && *ds[n].Seq == *ds[n-1].Seq+1 {
		n++
	}
	return n
}

func alone(d *Divergence) bool {
	return d.Category == MissingInRecorded || d.Category == MissingInReplay
}

func sideOf(names sideNames, d *Divergence) string {
	if d.Category == MissingInRecorded {
		return names.alone(Replay)
	}
	return names.alone(Recorded)
}

// other writes a further divergence: its line, its first change, and what it follows from.
func (t *textWriter) other(d *Divergence) {
	seq := ""
	if d.Seq != nil {
		seq = fmt.Sprintf("seq %d ", *d.Seq)
	}
	if t.apart(d, seq+d.Message, 4) {
		t.line(4, plain, seq+d.title)
		t.values(6, &Change{Op: Changed, Was: d.oldValue, Now: d.newValue}, true)
	} else {
		t.line(4, plain, seq+d.Message)
	}
	if !d.whole || t.tooWide(4, seq+d.Message) {
		t.changes(d)
	}
	if d.Follows != "" {
		t.line(6, plain, d.Follows)
	}
	t.remarks(6, d)
}

// changes writes the first change of a further divergence, or all.
func (t *textWriter) changes(d *Divergence) {
	shown := len(d.Changes)
	if !t.o.All {
		shown = min(shown, 1)
	}
	for i := range d.Changes[:shown] {
		t.change(6, &d.Changes[i], true)
	}
	t.more(6, d, len(d.Changes)-shown+d.MoreChanges, true)
}

// folded writes what follows from a refused request: a line for each kind of it.
func (t *textWriter) folded(indent int, ds []*Divergence) {
	if len(ds) == 0 {
		return
	}
	t.left = true
	var order []string
	subjects := make(map[string][]string)
	count := make(map[string]int)
	for _, d := range ds {
		what, subject := consequence(d)
		if count[what]++; count[what] == 1 {
			order = append(order, what)
		}
		if subject != "" && !slices.Contains(subjects[what], subject) {
			subjects[what] = append(subjects[what], subject)
		}
	}
	for _, what := range order {
		s := what
		if all := subjects[what]; len(all) > 0 {
			s = fmt.Sprintf("%s (%d): %s", what, count[what], list(all, shownSubjects))
		} else if count[what] > 1 {
			s = fmt.Sprintf("%s (%d)", what, count[what])
		}
		t.line(indent, plain, s)
	}
}

// consequence says what a divergence is as one of many that follow from a refused request, and what it is about.
func consequence(d *Divergence) (what, subject string) {
	if d.Lane == laneProgram {
		return d.Message, ""
	}
	if d.Lane == laneTerminal {
		return "what the terminal showed", ""
	}
	kind, subject, _ := strings.Cut(cmp.Or(d.Recorded, d.Replay), " ")
	switch d.Category {
	case MissingInReplay:
		switch kind {
		case "llm_call", "http_exchange":
			return "calls that were not made", subject
		case "process_spawn":
			return "processes that were not run", subject
		case "mcp_json_rpc":
			return "calls of tool servers that were not made", subject
		case "ws_message":
			return "messages that did not pass", subject
		case "file_write", "file_delete":
			return "files that were left alone", subject
		}
		return "records that are missing", kind
	case MissingInRecorded:
		switch kind {
		case "llm_call", "http_exchange":
			return "calls that nothing was recorded for", subject
		case "process_spawn":
			return "processes that were run and not recorded", subject
		case "mcp_json_rpc":
			return "calls of tool servers that nothing was recorded for", subject
		case "ws_message":
			return "messages that passed and were not recorded", subject
		case "file_write", "file_delete":
			return "files that were changed and not recorded so", subject
		}
		return "records that were added", kind
	}
	return titleOf(d.Category), subject
}
