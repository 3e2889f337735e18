package deck

import "github.com/tapedeck-dev/tapedeck/internal/jail"

// A Check is one thing that the jail needs, tried for real. Cost says what is lost without it.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Cost   string `json:"cost,omitempty"`
}

// A Diagnosis is what Diagnose found. Works says that programs can be recorded and replayed here.
type Diagnosis struct {
	Works  bool     `json:"works"`
	Checks []Check  `json:"checks"`
	Notes  []string `json:"notes"`
}

// Diagnose tries every part of the jail.
func Diagnose() *Diagnosis {
	d := &Diagnosis{Works: true}
	for _, c := range jail.Probe() {
		d.Checks = append(d.Checks, Check(c))
		d.Works = d.Works && c.OK
	}
	if !d.Works {
		d.Notes = []string{insteadOfJail()}
		return d
	}
	d.Notes = []string{
		"Unix sockets of this machine: those with an absolute name under HOME, TMP and the work tree are closed; while recording, " +
			"one that is made there later can be reached",
		"a socket or FIFO elsewhere that is bound by a relative name, was renamed, or belongs to another network namespace can be " +
			"reached, on replay too, by a program that may open it: run untrusted programs as a user that may not",
	}
	return d
}

// insteadOfJail says what is left where no jail can be made.
func insteadOfJail() string {
	if outsideAvailable() != nil {
		return "programs can be recorded and replayed inside WSL 2; recordings can be read, checked and compared here"
	}
	return "`record --proxy` and `replay --proxy` do without the jail, and cover what heeds HTTP_PROXY"
}
