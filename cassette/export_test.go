package cassette

// Codes returns all codes.
func Codes() (all []string) {
	for _, err := range []error{
		ErrNoManifest, ErrMissingFile, ErrVersion, ErrNoID, ErrNoDigest, ErrDigest, ErrChunkDigest, ErrChunkRange, ErrSequence, ErrTime, ErrFeature,
		ErrNoEmulator, ErrResolution, ErrBadJSON, ErrTooLong, ErrNotBound, ErrEmulator, ErrNotDirectory, ErrExists, ErrNoFinal, ErrFinished,
	} {
		all = append(all, Code(err))
	}
	return all
}
