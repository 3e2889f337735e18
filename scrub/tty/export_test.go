package tty

// Taken returns how many bytes Take and Flush have returned.
func (in *Input) Taken() int64 { return in.ledger.taken }

// Taken returns how many bytes Take and Flush have returned: the offset of what they return next.
func (l *Live) Taken() int64 { return l.ledger.taken }

// MaskShownWork is MaskShown. It returns what looking at rows cost.
func MaskShownWork(b []byte, o *Options) int64 { return maskShown(b, nil, o) }
