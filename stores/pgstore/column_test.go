package pgstore

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"slices"

	"github.com/idemkit/idem"
)

func TestHeaderLinesSurvive(t *testing.T) {
	t.Parallel()
	for name, header := range map[string][][2]string{
		"none":            {},
		"order and case":  {{"X-B", "2"}, {"x-a", "1"}, {"X-B", "1"}},
		"empty":           {{"Empty", ""}, {"", ""}},
		"latin-1 bytes":   {{"X-Name", "M\xfcller"}, {"X-Next", "plain"}},
		"controls":        {{"X", "a\x00b\n\u2028<>&"}},
		"like the escape": {{"aGk=", "base64"}},
	} {
		text, err := encodeHeader(header)
		if err != nil || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if got, err := decodeHeader(text); err != nil || !slices.Equal(got, header) {
			t.Errorf("%s: %q came back as %q, %v", name, header, got, err)
		}
	}
}

func TestHeaderOfAnUnknownForm(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`[["one"]]`, `[["a","b","gzip"]]`, `[["%","b","base64"]]`, `[["a","b","base64","d"]]`} {
		if _, err := decodeHeader(text); !errors.Is(err, idem.ErrFormat) {
			t.Errorf("%s: %v, want ErrFormat", text, err)
		}
	}
	if _, err := decodeHeader(`{`); err == nil {
		t.Error("broken JSON was read")
	}
}

func TestKeysComeBackFromTheirColumn(t *testing.T) {
	t.Parallel()
	long, digest := strings.Repeat("x", 600), func(s string) string { return idem.Column(s) }
	for name, row := range map[string]struct{ key, want idem.Key }{
		"plain":         {idem.Key{ID: "1"}, idem.Key{ID: "1"}},
		"scoped":        {idem.Key{Scope: "alice", ID: "1"}, idem.Key{Scope: "alice", ID: "1"}},
		"long id":       {idem.Key{ID: long}, idem.Key{ID: digest(long)}},
		"long scope":    {idem.Key{Scope: long, ID: "1"}, idem.Key{Scope: digest(long), ID: "1"}},
		"scoped, long":  {idem.Key{Scope: "alice", ID: long}, idem.Key{Scope: "alice", ID: digest(long)}},
		"both":          {idem.Key{Scope: "a~b", ID: "~c"}, idem.Key{Scope: digest("a~b"), ID: digest("~c")}},
		"like a scoped": {idem.Key{ID: "~alice~1"}, idem.Key{ID: digest("~alice~1")}},
	} {
		if got := keyOf(idem.Key{ID: "another"}, row.key.Column()); got != row.want {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
		if got := keyOf(row.key, row.key.Column()); got != row.key {
			t.Errorf("%s: the caller's own key came back as %+v", name, got)
		}
	}
}

func TestReasonsFitTheColumn(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ reason, want string }{
		"plain":           {"declined", "declined"},
		"broken and NUL":  {"a\xff\x00b", "a\uFFFD\uFFFDb"},
		"long":            {strings.Repeat("x", 2000), strings.Repeat("x", 1000)},
		"cut in a letter": {strings.Repeat("x", 999) + "éé", strings.Repeat("x", 999)},
	} {
		if got := reasonColumn(row.reason); got == nil || *got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := reasonColumn(""); got != nil {
		t.Errorf("no reason became %q", *got)
	}
}

func TestDurationsForTheServer(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]int64{0: 0, 1: 1, time.Microsecond: 1, time.Millisecond: 1000, 720 * time.Hour: 2_592_000_000_000, -time.Second: -1_000_000} {
		if got := microseconds(d); got != want {
			t.Errorf("microseconds(%v) = %d, want %d", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{-1: "0", 0: "0", 1: "1", 1500 * time.Microsecond: "1", time.Minute: "60000"} {
		if got := setting(d); got != want {
			t.Errorf("setting(%v) = %s, want %s", d, got, want)
		}
	}
}

func TestLocksDifferByEveryPart(t *testing.T) {
	t.Parallel()
	one, other := &Store{names: names{"public", "a"}}, &Store{names: names{"public", "b"}}
	seen := map[int64]string{}
	note := func(what string, lock int64) {
		if before, taken := seen[lock]; taken {
			t.Errorf("%s has the lock of %s", what, before)
		}
		seen[lock] = what
	}
	for _, k := range []idem.Key{{Type: "t", ID: "1"}, {Tenant: "x", Type: "t", ID: "1"}, {Type: "t2", ID: "1"}, {Type: "t", Scope: "1", ID: "1"}, {Type: "t", ID: "2"}} {
		note(k.Column()+" in a", one.keyLock(k))
		note(k.Column()+" in b", other.keyLock(k))
	}
	q := idem.Request{Key: idem.Key{Type: "t", ID: "1"}, RequestID: "1"}
	note("the request id", *one.requestLock(q))
	q.Subject = "alice"
	note("another subject's", *one.requestLock(q))
	if q.RequestID = ""; one.requestLock(q) != nil {
		t.Error("no request id has a lock")
	}
}
