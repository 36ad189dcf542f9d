package redisstream_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/consumer"
	"github.com/idemkit/idem/consumer/redisstream"
	"github.com/idemkit/idem/internal/testkit"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	rdb := testkit.RedisClient(t, testkit.RedisOptions("127.0.0.1:1"))
	for name, tt := range map[string]struct {
		config redisstream.Config
		says   string
	}{
		"no stream":               {redisstream.Config{}, "no stream"},
		"braces without a tag":    {redisstream.Config{Stream: "or}ders"}, "name Dead"},
		"dead letters in a loop":  {redisstream.Config{Stream: "orders", Dead: "orders"}, "again"},
		"negative concurrency":    {redisstream.Config{Stream: "orders", Concurrency: -1}, "concurrency -1"},
		"negative resting":        {redisstream.Config{Stream: "orders", Resting: -1}, "resting -1"},
		"negative length":         {redisstream.Config{Stream: "orders", MaxDead: -1}, "dead letters -1"},
		"hasty MinIdle":           {redisstream.Config{Stream: "orders", MinIdle: time.Millisecond}, "MinIdle 1ms"},
		"negative block":          {redisstream.Config{Stream: "orders", Block: -1}, "block"},
		"block below millisecond": {redisstream.Config{Stream: "orders", Block: time.Microsecond}, "block"},
		"negative reconnect":      {redisstream.Config{Stream: "orders", Reconnect: -1}, "reconnect"},
		"negative grace":          {redisstream.Config{Stream: "orders", Grace: -1}, "grace"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := redisstream.New(rdb, tt.config)
			if a != nil || !errors.Is(err, idem.ErrInvalid) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want ErrInvalid with %q", err, tt.says)
			}
		})
	}
	if _, err := redisstream.New(nil, redisstream.Config{Stream: "orders"}); !errors.Is(err, idem.ErrInvalid) {
		t.Errorf("no client: error %v", err)
	}
}

func TestFields(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		message consumer.Message
		want    []string
		fails   bool
	}{
		"whole": {
			message: consumer.Message{ID: "1", Body: []byte("x\x00"), Headers: map[string]string{"B": "2", "A": "1"}},
			want:    []string{"id", "1", "body", "x\x00", "A", "1", "B", "2"},
		},
		"no body":            {message: consumer.Message{ID: "1"}, want: []string{"id", "1", "body", ""}},
		"a header like id":   {message: consumer.Message{ID: "1", Headers: map[string]string{"id": "2"}}, fails: true},
		"a header like body": {message: consumer.Message{ID: "1", Headers: map[string]string{"body": "2"}}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := redisstream.Fields(tt.message)
			if tt.fails != errors.Is(err, idem.ErrInvalid) || strings.Join(got, "|") != strings.Join(tt.want, "|") {
				t.Errorf("fields %q, error %v; want %q", got, err, tt.want)
			}
		})
	}
	first, _ := redisstream.Fields(consumer.Message{Body: []byte("x")})
	second, _ := redisstream.Fields(consumer.Message{Body: []byte("x")})
	if len(first) != 4 || first[1] == "" || first[1] == second[1] {
		t.Errorf("ids %q and %q, want random ones", first, second)
	}
}

// Redis before 7 wraps what a command says inside a script.
func TestMissingGroupInEveryVersion(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"NOGROUP No such key 'orders' or consumer group 'points'":                                                         true,
		"NOGROUP No such key 'orders' or consumer group 'points' script: 5f3d, on @user_script:4.":                        true,
		"ERR Error running script (call to f_5f3d): @user_script:4: NOGROUP No such key 'orders' or consumer group 'p'\n": true,
		"UNBLOCKED the stream key no longer exists":                                                                       true,
		"WRONGTYPE Operation against a key holding the wrong kind of value":                                               false,
		"ERR unknown command": false,
	} {
		if got := redisstream.Missing(reply(text)); got != want {
			t.Errorf("%q: missing %v, want %v", text, got, want)
		}
	}
	if redisstream.Missing(errors.New("NOGROUP, says the network")) || redisstream.Missing(nil) {
		t.Error("taken for Redis' own answer")
	}
}

type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}
