package web

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"
	"slices"
	"strings"

	"github.com/idemkit/idem"
)

// fingerprint is the format's number and SHA-256 over method, path as sent, query, media type, payload and the parts of the key, which may stand elsewhere, each
// with its length in front, so that ("a:b","c") and ("a","b:c") differ. Token fields, and those that the route ignores, do not count.
func (s *submission) fingerprint(key []string) ([]byte, *refusal) {
	digest := lengthPrefixed{sha256.New()}
	path, query, _ := strings.Cut(s.r.RequestURI, "?")
	if path == "" {
		path, query = s.r.URL.EscapedPath(), s.r.URL.RawQuery
	}
	digest.add(s.r.Method, path, s.mediaType)
	given := readURLEncoded(strings.NewReader(query))
	digest.form(s.counting(given))
	if !given.whole {
		digest.add(query)
	}
	if failure := s.addPayload(digest); failure != nil {
		return nil, failure
	}
	digest.add(key...)
	return digest.Sum([]byte{idem.Format}), nil
}

func (s *submission) addPayload(digest lengthPrefixed) *refusal {
	if s.isForm() {
		form, failure := s.fields()
		if failure != nil {
			return failure
		}
		if form.whole {
			digest.form(s.counting(form))
			return nil
		}
	}
	if s.body == nil {
		return nil
	}
	digest.length(s.body.size)
	if _, err := io.Copy(digest, s.body.reader()); err != nil {
		return refuse(StoreUnavailable).because(err)
	}
	return nil
}

// counting leaves out what does not count.
func (s *submission) counting(form *fields) *fields {
	skip := func(name string) bool { return name == tokenField || name == requestIDField || s.ignored[name] }
	return &fields{
		texts: slices.DeleteFunc(slices.Clone(form.texts), func(f field) bool { return skip(f.name) }),
		files: slices.DeleteFunc(slices.Clone(form.files), func(f file) bool { return skip(f.field) }),
	}
}

type lengthPrefixed struct{ hash.Hash }

func (d lengthPrefixed) length(n int64) {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(n))
	d.Write(size[:])
}

func (d lengthPrefixed) add(parts ...string) {
	for _, part := range parts {
		d.length(int64(len(part)))
		d.Write([]byte(part))
	}
}

// form counts the order of values of one name, and not that of names, nor a multipart boundary: a browser makes that afresh on
// every click.
func (d lengthPrefixed) form(form *fields) {
	texts, files := slices.Clone(form.texts), slices.Clone(form.files)
	slices.SortStableFunc(texts, func(a, b field) int { return strings.Compare(a.name, b.name) })
	slices.SortStableFunc(files, func(a, b file) int { return strings.Compare(a.field, b.field) })
	d.length(int64(len(texts)))
	for _, text := range texts {
		d.add(text.name, text.value)
	}
	d.length(int64(len(files)))
	for _, f := range files {
		d.add(f.field, f.name, string(f.digest[:]))
	}
}
