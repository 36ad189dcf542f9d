package tokens_test

import (
	"strings"
	"testing"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/tokens"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text              string
		requestID, action bool
	}{
		"empty":               {text: ""},
		"one character":       {text: "a", action: true},
		"seven characters":    {text: "1234567", action: true},
		"eight characters":    {text: "12345678", requestID: true, action: true},
		"every character":     {text: "azAZ09._-", requestID: true, action: true},
		"128 characters":      {text: strings.Repeat("a", 128), requestID: true, action: true},
		"129 characters":      {text: strings.Repeat("a", 129)},
		"blank":               {text: "12345 678"},
		"blank behind":        {text: "12345678 "},
		"line break behind":   {text: "12345678\n"},
		"braces":              {text: "{12345678}"},
		"slash":               {text: "1234/5678"},
		"colon":               {text: "1234:5678"},
		"percent":             {text: "1234%5678"},
		"tilde":               {text: "1234~5678"},
		"NUL":                 {text: "1234\x005678"},
		"letter with a tail":  {text: "1234ç5678"},
		"full-width digit":    {text: "1234567８９"},
		"not UTF-8":           {text: "12345678\xff"},
		"before A, after Z":   {text: "1234@5[67"},
		"before a, after z":   {text: "1234`5{67"},
		"128 letters of two":  {text: strings.Repeat("é", 64)},
		"uuid":                {text: "6ba7b810-9dad-11d1-80b4-00c04fd430c8", requestID: true, action: true},
		"dotted action":       {text: "order.create", requestID: true, action: true},
		"leading punctuation": {text: "-._-._-._", requestID: true, action: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tokens.ValidRequestID(c.text); got != c.requestID {
				t.Errorf("as a request id: %v", got)
			}
			if got := tokens.ValidAction(c.text); got != c.action {
				t.Errorf("as an action: %v", got)
			}
		})
	}
}

func TestNewRequestID(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		id := tokens.NewRequestID()
		if !tokens.ValidRequestID(id) || seen[id] || len(id) != 26 {
			t.Fatalf("request id %q", id)
		}
		seen[id] = true
	}
}

func TestSubjectDigest(t *testing.T) {
	t.Parallel()
	digests := map[string]string{}
	for name, pair := range map[string][2]string{
		"no tenant":         {"", "ann"},
		"tenant":            {"shop", "ann"},
		"other tenant":      {"club", "ann"},
		"other subject":     {"shop", "bob"},
		"border moved":      {"shopa", "nn"},
		"border moved back": {"sho", "pann"},
		"swapped":           {"ann", "shop"},
		"blank":             {"shop", " "},
		"trailing NUL":      {"shop", "ann\x00"},
	} {
		digest := tokens.SubjectDigest(pair[0], pair[1])
		if len(digest) != 43 || digest != idem.Digest(pair[0], pair[1]) {
			t.Errorf("%s: %q", name, digest)
		}
		if other, twice := digests[digest]; twice {
			t.Errorf("%s and %s have one digest", name, other)
		}
		digests[digest] = name
	}
	if digest := tokens.SubjectDigest("shop", ""); digest != "" {
		t.Errorf("nobody in particular is %q", digest)
	}
}

// Records are found by this digest for as long as they are kept: another one would orphan them.
func TestSubjectDigestStaysWhatItWas(t *testing.T) {
	t.Parallel()
	const want = "gJE8MFrcAKCuhBG_naX1EhbsFVM5Z9Q2adZRvJgLgME"
	if got := tokens.SubjectDigest("shop", "ann"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
