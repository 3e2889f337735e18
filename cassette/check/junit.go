package check

import (
	"encoding/xml"
	"io"
	"strings"
)

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Failure *junitMessage `xml:"failure,omitempty"`
	Error   *junitMessage `xml:"error,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes r as a JUnit test suite: one case an assertion. What could not be checked is an error there.
func (r *Result) WriteJUnit(w io.Writer) error {
	s := junitSuite{Name: r.Scenario, Tests: len(r.Assertions), Failures: r.Counts.Failed, Errors: r.Counts.Unchecked}
	for i := range r.Assertions {
		o := &r.Assertions[i]
		c := junitCase{Name: o.Name, Class: sprintf("%s:%d", r.Scenario, o.Line)}
		if c.Name == "" {
			c.Name, _, _ = strings.Cut(o.Source, "\n")
		}
		if m := (&junitMessage{o.Came, o.Text(r.Scenario)}); o.Status == Failed {
			c.Failure = m
		} else if o.Status == Unchecked {
			c.Error = m
		}
		s.Cases = append(s.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(s); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
