package check

// The table of everything that a scenario may say.
var scenarioShape = object("What must be so in a terminal cassette.",
	need("version", &shape{kind: kindInt, min: 1, max: 1, doc: "The version of this format."}),
	need("cassette", object("The cassette that the scenario is about.",
		may("path", text("Its directory, from this file's folder. Left out where the caller names one.", formatFilled)),
		need("id", text("Its id, as in manifest.json.", formatFilled)),
		need("sha256", text("The digest of its output.raw, as in manifest.json.", formatDigest)),
		may("emulator", object("The screen model that its frames must come from.",
			need("name", text("", formatFilled)), need("version", text("", formatFilled)))),
	)),
	may("normalise", normaliseShape),
	need("assertions", &shape{kind: kindList, min: 1, item: assertionShape, doc: "What must be so, checked in one pass."}),
)

var normaliseShape = either("Volatile facts (UUIDs, times, temporary names, paths) become the names of their masks on every screen before text is looked for.",
	yesNo(""),
	object("",
		may("home", text("The path that <home> stands for.", formatFilled)),
		may("worktree", text("The path that <worktree> stands for.", formatFilled)),
		may("temp", text("The path that <temp> stands for.", formatFilled)),
		may("disable", list(text("A mask that is not used.", formatFilled), 1, "")),
		may("extra", list(object("",
			need("name", text("The mask's name: <name> takes the place of what it finds.", formatFilled)),
			need("pattern", text("What it finds; its first group, where it has one.", formatRegexp)),
		), 1, "Masks of your own.")),
	))

var assertionShape = &shape{
	kind: kindObject,
	doc:  "One assertion: its family, and a name where one helps.",
	members: []member{
		may("name", text("What the assertion is about, for whoever reads a failure.", formatFilled)),
		may("frame", frameShape), may("state", stateShape), may("timing", timingShape),
		may("input", inputShape), may("service", serviceShape), may("process", processShape),
	},
	one: [][]string{{"frame", "state", "timing", "input", "service", "process"}},
}

// What an assertion about screens says of time: one of these.
var when = []string{"at", "eventually", "never", "always"}

func whenMembers() []member {
	return []member{
		may("at", either("The screen as it stood at this time, after all that came at it.", duration(""), &shape{kind: kindText, enum: []string{"start", "end"}})),
		may("eventually", either("At least one screen of the window; true is the whole cassette, a time the end of the window.", &shape{kind: kindTrue}, duration(""), window(""))),
		may("never", either("No screen of the window.", &shape{kind: kindTrue}, duration(""), window(""))),
		may("always", either("Every screen of the window.", &shape{kind: kindTrue}, duration(""), window(""))),
		may("for", duration("With eventually: it stands at least so long without a break.")),
	}
}

var frameShape = &shape{
	kind: kindObject,
	ref:  "frame",
	doc:  "What stands on the screen. Rows and columns count from 0.",
	members: append([]member{
		may("contains", text("This text stands there. A newline goes on in the next row; a line that the terminal wrapped counts as one.", formatFilled)),
		may("matches", text("This regular expression (RE2) matches the text there; ^ and $ are the ends of a line.", formatRegexp)),
		may("equals", either("The rows there are these, but for trailing blanks and blank rows at the end.", text("", formatNone), list(text("", formatNone), 1, ""))),
		may("stable", duration("The text there does not change for so long.")),
		may("row", &shape{kind: kindInt, min: -4096, max: 4095, doc: "In this row alone; -1 is the last."}),
		may("region", object("In this rectangle alone.",
			need("row", count("", 0)), need("col", count("", 0)), need("rows", count("", 1)), need("cols", count("", 1)))),
		may("normalise", yesNo("Volatile facts are masked first, or not: another answer than the scenario's.")),
	}, whenMembers()...),
	one:   [][]string{{"contains", "matches", "equals", "stable"}, when},
	apart: [][]string{{"row", "region"}, {"stable", "for"}, {"stable", "always"}},
	with:  []needs{{"for", []string{"eventually"}}},
}

var stateShape = &shape{
	kind: kindObject,
	ref:  "state",
	doc:  "What the terminal is like.",
	members: append([]member{
		may("cursor", &shape{kind: kindObject, doc: "Where the cursor is, from 0, and whether it shows.",
			members: []member{may("row", count("", 0)), may("col", count("", 0)), may("visible", yesNo(""))},
			some:    [][]string{{"row", "col", "visible"}}}),
		may("size", sizeShape("The size of the terminal.")),
		may("alternate_screen", yesNo("Whether the alternate screen shows.")),
		may("title", either("The title: the whole text, or what matches it.", text("", formatNone),
			object("", need("matches", text("", formatRegexp))))),
		may("modes", &shape{kind: kindObject, keys: text("", formatMode), values: yesNo(""),
			doc: "Modes that the program set: bracketed_paste, mouse, focus_events, application_cursor, synchronised_output …, or a private mode's number."}),
		may("style", styleShape),
	}, whenMembers()...),
	one:  [][]string{when},
	some: [][]string{{"cursor", "size", "alternate_screen", "title", "modes", "style"}},
	with: []needs{{"for", []string{"eventually"}}},
}

var attributes = []string{"bold", "faint", "italic", "blink", "reverse", "hidden", "strike", "overline"}

var styleShape = func() *shape {
	s := &shape{
		kind: kindObject,
		doc:  "How a cell, or every cell of a text where it stands, is drawn.",
		members: []member{
			may("row", count("", 0)), may("col", count("", 0)),
			may("text", text("Every cell of this text, where it stands in one row.", formatFilled)),
			may("fg", colour()), may("bg", colour()), may("underline_color", colour()),
			may("underline", &shape{kind: kindText, enum: underlines[:]}),
			may("link", text("The address of the hyperlink (OSC 8), empty for none.", formatNone)),
		},
		one:  [][]string{{"row", "text"}},
		with: []needs{{"row", []string{"col"}}, {"col", []string{"row"}}},
	}
	named := []string{"fg", "bg", "underline_color", "underline", "link"}
	for _, a := range attributes {
		s.members = append(s.members, may(a, yesNo("")))
	}
	s.some = [][]string{append(named, attributes...)}
	return s
}()

var pointShape = &shape{
	kind: kindObject,
	ref:  "moment",
	doc:  "A moment of the session.",
	members: []member{
		may("text", text("The output brings this text.", formatFilled)),
		may("input", text("These bytes are typed.", formatFilled)),
		may("key", text("This key is typed.", formatKey)),
		may("resize", sizeShape("The terminal gets this size.")),
		may("service", object("A service event comes that is like this.",
			need("path", text("", formatPath)), may("equals", &shape{kind: kindAny}))),
		may("at", &shape{kind: kindText, enum: []string{"start", "end"}, doc: "The session begins, or ends."}),
	},
	one: [][]string{{"text", "input", "key", "resize", "service", "at"}},
}

var timingShape = &shape{
	kind: kindObject,
	ref:  "timing",
	doc:  "When things came.",
	members: []member{
		may("order", list(text("", formatFilled), 2, "The output brings these texts for the first time in this order.")),
		may("max_gap", duration("The program never prints nothing for longer than this between two outputs.")),
		may("delay", &shape{kind: kindObject, doc: "The time from one moment to the first such moment after it.",
			members: []member{need("from", pointShape), need("to", pointShape), may("min", duration("")), may("max", duration(""))},
			some:    [][]string{{"min", "max"}}}),
		may("total", between("How long the session is.")),
		may("between", window("With max_gap: only in this window.")),
	},
	one:  [][]string{{"order", "max_gap", "delay", "total"}},
	with: []needs{{"between", []string{"max_gap"}}},
}

var inputShape = &shape{
	kind: kindObject,
	ref:  "input",
	doc:  "What was typed.",
	members: []member{
		may("equals", text("Exactly these bytes, in all events together.", formatNone)),
		may("equals_base64", text("The same, for bytes that are no text.", formatBase64)),
		may("contains", text("These bytes in a row.", formatFilled)),
		may("keys", list(text("", formatKey), 1, "These keys in this order; others may stand between them.")),
		may("paste", list(text("", formatNone), 1, "Exactly these pastes, each between its two marks (bracketed paste).")),
		may("resizes", list(sizeShape(""), 0, "Exactly these sizes, in this order.")),
		may("signals", list(text("", formatSignal), 0, "Exactly these signals, in this order.")),
		may("between", window("Only what came in this window.")),
	},
	one: [][]string{{"equals", "equals_base64", "contains", "keys", "paste", "resizes", "signals"}},
}

var serviceShape = &shape{
	kind: kindObject,
	ref:  "service",
	doc:  "Events of the layer above the terminal.",
	members: []member{
		may("where", &shape{kind: kindObject, keys: text("", formatPath), values: &shape{kind: kindAny}, doc: "Only events in which each of these JSON paths has this value."}),
		may("path", text("A place in the event's payload.", formatPath)),
		may("equals", &shape{kind: kindAny, doc: "What stands there."}),
		may("matches", text("A regular expression that matches the text there.", formatRegexp)),
		may("exists", yesNo("Whether anything stands there.")),
		may("count", either("How many such events there are; at least one where left out.", count("", 0), &shape{kind: kindObject,
			members: []member{may("min", count("", 0)), may("max", count("", 0))}, some: [][]string{{"min", "max"}}})),
		may("between", window("Only what came in this window.")),
	},
	some:  [][]string{{"where", "path", "count"}},
	apart: [][]string{{"equals", "matches", "exists"}},
	with:  []needs{{"equals", []string{"path"}}, {"matches", []string{"path"}}, {"exists", []string{"path"}}},
}

var processShape = &shape{
	kind: kindObject,
	ref:  "process",
	doc:  "How the program ended.",
	members: []member{
		may("exit_code", &shape{kind: kindInt, min: -1, max: 1 << 31}),
		may("signal", either("The signal that ended it, or none.", text("", formatSignal), &shape{kind: kindText, enum: []string{"none"}})),
		may("timed_out", yesNo("Whether its time was up.")),
	},
	some: [][]string{{"exit_code", "signal", "timed_out"}},
}

func object(doc string, members ...member) *shape {
	return &shape{kind: kindObject, doc: doc, members: members}
}

func need(name string, s *shape) member { return member{name, true, s} }
func may(name string, s *shape) member  { return member{name, false, s} }

func text(doc string, f format) *shape { return &shape{kind: kindText, doc: doc, format: f} }
func yesNo(doc string) *shape          { return &shape{kind: kindBool, doc: doc} }
func duration(doc string) *shape       { return &shape{kind: kindTime, doc: doc} }
func colour() *shape {
	c := either("", text("", formatColor), &shape{kind: kindInt, max: 255})
	c.ref = "colour"
	return c
}

func count(doc string, least int) *shape {
	return &shape{kind: kindInt, doc: doc, min: least, max: 1 << 31}
}

func list(item *shape, least int, doc string) *shape {
	return &shape{kind: kindList, item: item, min: least, doc: doc}
}

func either(doc string, shapes ...*shape) *shape {
	return &shape{kind: kindEither, doc: doc, either: shapes}
}

func window(doc string) *shape {
	return &shape{kind: kindObject, ref: "window", doc: doc, members: []member{may("from", duration("")), may("to", duration(""))}, some: [][]string{{"from", "to"}}}
}

func between(doc string) *shape {
	return &shape{kind: kindObject, doc: doc, members: []member{may("min", duration("")), may("max", duration(""))}, some: [][]string{{"min", "max"}}}
}

func sizeShape(doc string) *shape {
	return &shape{kind: kindObject, ref: "size", doc: doc, members: []member{
		need("rows", &shape{kind: kindInt, min: 1, max: 65535}), need("cols", &shape{kind: kindInt, min: 1, max: 65535})}}
}
