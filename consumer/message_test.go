package consumer_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/idemkit/idem/consumer"
)

func TestDead(t *testing.T) {
	t.Parallel()
	verdict := consumer.Verdict{Action: consumer.DeadLetter, Attempt: 5, Err: errBroken, Consumer: "points"}
	for name, tt := range map[string]struct {
		message consumer.Message
		verdict consumer.Verdict
		want    map[string]string
	}{
		"whole": {
			message: order("1"), verdict: verdict,
			want: map[string]string{
				"Trace": "t-1", consumer.HeaderError: errBroken.Error(), consumer.HeaderAttempt: "5", consumer.HeaderConsumer: "points",
				consumer.HeaderSource: "orders", consumer.HeaderID: "1",
			},
		},
		"bare": {
			message: consumer.Message{}, verdict: consumer.Verdict{Consumer: "points"},
			want: map[string]string{consumer.HeaderAttempt: "0", consumer.HeaderConsumer: "points"},
		},
		"dead before": {
			message: order("1").Dead(verdict), verdict: consumer.Verdict{Attempt: 10, Err: errors.New("still"), Consumer: "points"},
			want: map[string]string{
				"Trace": "t-1", consumer.HeaderError: "still", consumer.HeaderAttempt: "10", consumer.HeaderConsumer: "points",
				consumer.HeaderSource: "orders", consumer.HeaderID: "1",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := maps.Clone(tt.message.Headers)
			letter := tt.message.Dead(tt.verdict)
			if !maps.Equal(letter.Headers, tt.want) {
				t.Errorf("headers %v, want %v", letter.Headers, tt.want)
			}
			if !maps.Equal(tt.message.Headers, before) {
				t.Error("the message itself was changed")
			}
			if string(letter.Body) != string(tt.message.Body) || letter.ID != tt.message.ID {
				t.Errorf("letter %v of %v", letter, tt.message)
			}
		})
	}
}

func TestErrorTextFitsAHeader(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"long":          strings.Repeat("x", 5000),
		"long runes":    strings.Repeat("ö", 2000),
		"broken":        "a\xff\xfeb",
		"with NUL":      "a\x00b",
		"long and worn": strings.Repeat("\xff\x00", 3000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := order("1").Dead(consumer.Verdict{Err: errors.New(text)}).Headers[consumer.HeaderError]
			if len(got) > 1000 || !utf8.ValidString(got) || strings.Contains(got, "\x00") || got == "" {
				t.Errorf("%d bytes, valid %v", len(got), utf8.ValidString(got))
			}
		})
	}
}

// Attempts that are counted from a header are those of this consumer, and never more than the ledger has.
func TestHeadersOfADeadLetter(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		consumer, attempt string
		spent             int // in the ledger
		runs              bool
	}{
		"own":                  {"points", "2", 2, true},
		"own, none in ledger":  {"points", "2", 0, true},
		"own, one used since":  {"points", "2", 3, true},
		"own, all used since":  {"points", "2", 4, false},
		"another's":            {"mail", "2", 2, false},
		"no number":            {"points", "many", 2, false},
		"negative":             {"points", "-1000", 2, false},
		"none":                 {"", "", 2, false},
		"more than the ledger": {"points", "99", 2, false}, // forged, or from before a purge
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, consumer.Attempts(2))
			b.spend("1", tt.spent)
			m := order("1")
			m.Headers = map[string]string{consumer.HeaderConsumer: tt.consumer, consumer.HeaderAttempt: tt.attempt}
			v := b.deliver(m)
			if ran := len(b.runs) == 1; ran != tt.runs {
				t.Errorf("ran %v, want %v; verdict %+v", ran, tt.runs, v)
			}
		})
	}
}
