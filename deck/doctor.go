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
	d := &Diagnosis{Works: true, Notes: []string{
		"a Unix socket that another program of this machine makes under HOME or TMP while a run is recorded can be reached by it; replay closes all of them",
	}}
	for _, c := range jail.Probe() {
		d.Checks = append(d.Checks, Check(c))
		d.Works = d.Works && c.OK
	}
	return d
}
