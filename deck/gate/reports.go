package gate

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/version"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

type (
	junitSuites struct {
		XMLName xml.Name `xml:"testsuites"`
		junitCounts
		Suite junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		junitCounts
		Skipped int         `xml:"skipped,attr"`
		Cases   []junitCase `xml:"testcase"`
	}
	junitCounts struct {
		Name     string `xml:"name,attr"`
		Tests    int    `xml:"tests,attr"`
		Failures int    `xml:"failures,attr"`
		Errors   int    `xml:"errors,attr"`
		Time     string `xml:"time,attr"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		File    string        `xml:"file,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitMessage `xml:"failure,omitempty"`
		Error   *junitMessage `xml:"error,omitempty"`
		Skipped *junitMessage `xml:"skipped,omitempty"`
		Output  string        `xml:"system-out,omitempty"`
		Stderr  string        `xml:"system-err,omitempty"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes the results as JUnit XML: a test case each. What diverged failed, what could not be tried is an error.
func (s *Summary) WriteJUnit(w io.Writer, strict bool) error {
	suite := junitSuite{junitCounts: junitCounts{Name: "tapedeck test", Tests: len(s.Results), Time: seconds(s.Took)}, Skipped: s.Count(Skipped)}
	for _, r := range s.Results {
		c := junitCase{Name: r.Name, Class: filepath.ToSlash(filepath.Dir(r.Path)), File: filepath.ToSlash(r.Path), Time: seconds(r.Took), Stderr: r.Output}
		message := &junitMessage{Message: r.Why, Type: string(r.Status), Text: r.First}
		switch exit := r.Status.Exit(strict); {
		case r.Status == Skipped:
			c.Skipped = &junitMessage{Message: r.Why}
		case exit == 1:
			c.Error = message
			suite.Errors++
		case exit == 2:
			c.Failure = message
			suite.Failures++
		case r.Status != Faithful:
			c.Output = r.Why + "\n" + r.First
		}
		suite.Cases = append(suite.Cases, c)
	}
	if s.Left > 0 {
		message := &junitMessage{Message: fmt.Sprintf("interrupted: %d not tried", s.Left), Type: "interrupted"}
		suite.Cases = append(suite.Cases, junitCase{Name: "tapedeck test", Time: seconds(s.Took), Error: message})
		suite.Tests++
		suite.Errors++
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(junitSuites{junitCounts: suite.junitCounts, Suite: suite}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

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

// Annotate writes a line for a result that does not hold as a workflow command of GitHub's, which shows it beside the file.
func (r *Result) Annotate(w io.Writer, strict bool) error {
	if r.Status == Faithful || r.Status == Skipped {
		return nil
	}
	word := map[string]string{"error": "error", "warning": "warning", "note": "notice"}[r.level(strict)]
	_, err := fmt.Fprintf(w, "::%s file=%s,title=%s::%s\n", word, commandProperty(filepath.ToSlash(r.Path)),
		commandProperty(r.Name+": "+string(r.Status)), commandData(r.Text()))
	return err
}

// commandData and commandProperty write a text as workflow commands want it.
func commandData(s string) string {
	return strings.NewReplacer("%", "%25", "\n", "%0A").Replace(visible.Text(s))
}

func commandProperty(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(commandData(s))
}

// WriteMarkdown writes the results as GitHub's step summary shows them: a table, and what does not hold below it.
func (s *Summary) WriteMarkdown(w io.Writer, strict bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### tapedeck test: %s\n\n| | recording | time | verdict |\n|---|---|---|---|\n", s)
	for _, r := range s.Results {
		fmt.Fprintf(&b, "| %s | <code>%s</code> | %.1f s | %s |\n", r.sign(strict), cell(r.Name), r.Took.Seconds(), cell(r.Why))
	}
	for _, r := range s.Results {
		if r.First != "" && r.Status.Exit(strict) != 0 {
			fmt.Fprintf(&b, "\n<details><summary>%s</summary>\n\n%s\n\n</details>\n", visible.Markdown(r.Name), visible.Fence("text", visible.Text(r.First)))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Result) sign(strict bool) string {
	switch {
	case r.Status.Exit(strict) != 0:
		return "❌ " + string(r.Status)
	case r.Status == Faithful:
		return "✅"
	}
	return "⚠️ " + string(r.Status)
}

// cell is a text within a table: nothing in it is Markdown or HTML.
func cell(s string) string { return visible.Markdown(strings.ReplaceAll(s, "\n", " ")) }

// String counts results: "30 tried: 28 faithful, 2 diverged".
func (s *Summary) String() string {
	var parts []string
	for _, status := range []Status{Faithful, Unsure, Expected, Diverged, Hangs, Damaged, Newer, NoProgram, NoJail, Broken, Skipped} {
		if n := s.Count(status); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, status))
		}
	}
	if s.Left > 0 {
		parts = append(parts, fmt.Sprintf("%d not tried", s.Left))
	}
	return fmt.Sprintf("%d tried: %s", len(s.Results)-s.Count(Skipped), strings.Join(parts, ", "))
}
