package exchange

import "fmt"

// A DamagedError says that a recorded answer cannot be given, for its payload is missing or is not what was recorded.
type DamagedError struct {
	Method, URL string
	Seq         uint64 // of its record
	Err         error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the recorded answer to %s %s (record %d) is damaged: %v", e.Method, e.URL, e.Seq, e.Err)
}

// Unwrap returns what is wrong: a *cas.MissingError, a *cas.CorruptError, or another.
func (e *DamagedError) Unwrap() error { return e.Err }

// Damage says that the answer that rec holds could not be given whole, for its payload is missing or damaged or was never
// kept. What the program does then says nothing about the program. What it returns says so to who asked.
func (b *Book) Damage(rec *Recorded, err error) *DamagedError {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.damaged[rec] == nil {
		b.damaged[rec] = err
	}
	return &DamagedError{Method: rec.Exchange.Method, URL: rec.Exchange.URL, Seq: rec.Seq, Err: err}
}

// Damaged lists, by arrival, the answers that Damage was told of, for people: each text names the record, the payload's
// hash where it has one, and what is wrong with it. A replay with such an answer cannot be compared.
func (b *Book) Damaged() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var texts []string
	for _, rec := range b.recorded {
		if err := b.damaged[rec]; err != nil {
			texts = append(texts, damageText(rec, err))
		}
	}
	return texts
}

func damageText(rec *Recorded, err error) string {
	answer := "its answer"
	if p := rec.Exchange.Response; p != nil {
		answer += ", payload " + p.Hash.Short() + ","
	}
	return fmt.Sprintf("%s: %s could not be given to %s %s: %v", nameOf(rec), answer, rec.Exchange.Method, rec.Exchange.URL, err)
}
