package gate

import (
	"encoding/json"
	"io"
	"net/url"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/internal/version"
)

type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID    string    `json:"id"`
		Short sarifText `json:"shortDescription"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		Level     string          `json:"level"` // error, warning or note
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical struct {
			Artifact struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
		} `json:"physicalLocation"`
	}
)

// sarifRules say what each status but Faithful and Skipped is about.
var sarifRules = []struct {
	status Status
	about  string
}{
	{Diverged, "The replay is not what was recorded"},
	{Expected, "The replay differs from the recording as tapedeck.yaml says that it does"},
	{Unsure, "The replay is what was recorded as far as it was looked at"},
	{Hangs, "The replay did not come to its end in time"},
	{Damaged, "The recording is damaged"},
	{Newer, "The recording was written by a newer version"},
	{NoProgram, "The recorded program is not on this machine"},
	{NoJail, "The jail cannot be made on this machine"},
	{Broken, "The recording could not be tried"},
}

// WriteSARIF writes what does not hold as a SARIF 2.1.0 log.
func (s *Summary) WriteSARIF(w io.Writer, strict bool) error {
	run := sarifRun{Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "tapedeck", Version: version.Version}
	for _, r := range sarifRules {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{string(r.status), sarifText{r.about}})
	}
	for _, r := range s.Results {
		if r.Status == Faithful || r.Status == Skipped {
			continue
		}
		out := sarifResult{RuleID: string(r.Status), Level: r.level(strict), Message: sarifText{r.Text()}}
		var at sarifLocation
		at.Physical.Artifact.URI = (&url.URL{Path: filepath.ToSlash(r.Path)}).String()
		out.Locations = append(out.Locations, at)
		run.Results = append(run.Results, out)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

// level is how grave a result is, in the words of SARIF.
func (r *Result) level(strict bool) string {
	switch {
	case r.Status.Exit(strict) != 0:
		return "error"
	case r.Status == Unsure:
		return "warning"
	}
	return "note"
}

// Text is what a result says, in lines.
func (r *Result) Text() string {
	if r.First == "" || r.First == r.Why {
		return r.Why
	}
	return r.Why + "\n" + r.First
}
