package server

import "log/slog"

// Secret is a setting that no log, error or dump of the Config shows. Reveal gives its text.
type Secret string

const hidden = "[set]"

// Reveal is the text itself.
func (s Secret) Reveal() string { return string(s) }

// String says whether it is set, never what it is.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// GoString is String: %#v shows no more than %v does.
func (s Secret) GoString() string { return s.String() }

// LogValue is String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is String, for JSON and the like.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
