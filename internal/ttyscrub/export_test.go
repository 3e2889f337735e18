package ttyscrub

// Taken returns how many bytes Take and Flush have returned.
func (in *Input) Taken() int64 { return in.ledger.taken }

// Taken returns how many bytes Take and Flush have returned: the offset of what they return next.
func (l *Live) Taken() int64 { return l.ledger.taken }
