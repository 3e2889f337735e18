package sessionlog

import "fmt"

// Order is what is odd about the order of a log's entries. Zero is a log in order: seq runs 0, 1, 2 … over all entries of
// which any has one. A log that is out of order still loads.
type Order struct {
	Entries  int       // entries seen
	Events   int       // of them, events
	Numbered int       // of them, with a seq
	Gaps     int       // entries whose seq is higher than the one that was due
	Back     int       // entries whose seq is lower
	First    *Disorder // the first of these

	due uint64
}

// A Disorder is an entry out of order.
type Disorder struct {
	Line      int
	Want, Got uint64
}

func (d *Disorder) String() string {
	return fmt.Sprintf("line %d: seq is %d, want %d", d.Line, d.Got, d.Want)
}

func (o *Order) see(e *Entry) {
	o.Entries++
	if e.Form != FormRecord {
		o.Events++
	}
	if !e.HasSeq {
		if o.Numbered == 0 {
			o.due++
		}
		return
	}
	if o.Numbered == 0 {
		o.due = 0
	}
	o.Numbered++
	if e.Seq != o.due && o.First == nil {
		o.First = &Disorder{Line: e.Line, Want: o.due, Got: e.Seq}
	}
	switch {
	case e.Seq > o.due:
		o.Gaps++
	case e.Seq < o.due:
		o.Back++
	}
	o.due = max(o.due, e.Seq+1)
}
