package deck

import "github.com/tapedeck-dev/tapedeck/internal/jail"

// A Check is one thing that the jail needs, tried for real. Cost says what is lost without it.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Cost   string `json:"cost,omitempty"`
	// Evidence says that programs can be recorded and replayed without it: less is seen then.
	Evidence bool `json:"evidence,omitempty"`
}

// A Diagnosis is what Diagnose found. Works says that programs can be recorded and replayed here.
type Diagnosis struct {
	Works  bool     `json:"works"`
	Checks []Check  `json:"checks"`
	Notes  []string `json:"notes"`
	// NotHeld is what a hostile program can reach although everything works.
	NotHeld []string `json:"not_held"`
}

// Diagnose tries every part of the jail.
func Diagnose() *Diagnosis { return diagnosis(jail.Probe()) }

func diagnosis(checks []jail.Check) *Diagnosis {
	d := &Diagnosis{Works: true}
	for _, c := range checks {
		d.Checks = append(d.Checks, Check(c))
		d.Works = d.Works && (c.OK || c.Evidence)
	}
	if !d.Works {
		d.Notes = []string{insteadOfJail()}
		return d
	}
	d.NotHeld = notHeld
	return d
}

// notHeld is what no jail of ours can hold, each said in docs/security.md too, where integration/escape tries it.
var notHeld = []string{
	"a FIFO of this machine that a program may open can be read, and written to where it was made after the start: under HOME, TMP and the " +
		"work tree while recording, elsewhere on replay too; run untrusted programs as a user that may not",
	"the program reads what you may read, and while recording may send it to any host by HTTP: what it sent is on the tape",
	"it may lock files that it may read, and shares CPU, memory, disk and your user's limits with you",
	"bugs of the kernel: see docs/security.md for what is tried, and what the jail is not for",
}

// insteadOfJail says what is left where no jail can be made.
func insteadOfJail() string {
	if outsideAvailable() != nil {
		return "programs can be recorded and replayed inside WSL 2; recordings can be read, checked and compared here"
	}
	return "`record --proxy` and `replay --proxy` do without the jail, and cover what heeds HTTP_PROXY"
}
