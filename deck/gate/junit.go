package gate

import (
	"encoding/xml"
	"fmt"
	"io"
	"path/filepath"
	"time"
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
