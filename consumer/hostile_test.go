package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/consumer"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/pgstore"
)

// A panic outside the handler must not end one process after another either.
func TestKeyFuncPanics(t *testing.T) {
	t.Parallel()
	b := newBench(t, consumer.KeyFunc(func(m consumer.Message) (string, error) { return string(m.Body[100:]), nil }))
	v := b.deliver(order("1"))
	b.sees(v, consumer.DeadLetter, 0, false, consumer.ErrNoKey)
	if !errors.Is(v.Err, consumer.ErrPanicked) || !strings.Contains(v.Err.Error(), "out of range") {
		t.Errorf("error %v, want the panic's", v.Err)
	}
	b.ran(0)
}

// Keys are anything that a message can hold; different ones stay apart.
func TestHostileKeys(t *testing.T) {
	t.Parallel()
	onDatabases(t, func(t *testing.T, d database) {
		g := newGranter(t, d, consumer.KeyFunc(func(m consumer.Message) (string, error) { return string(m.Body), nil }))
		keys := []string{"\x00", "\xff\xfe", "~", " ", "'; DROP TABLE grants; --", strings.Repeat("x", 10_000), strings.Repeat("x", 10_001), "{a}", "ö"}
		for i, key := range keys {
			m := consumer.Message{ID: "the same for all", Body: []byte(key)}
			g.deliver(m, consumer.Ack, 1, i+1)
			if v := g.deliver(m, consumer.Ack, 0, i+1); !v.Replayed {
				t.Errorf("key %.20q: verdict %+v, want a replay", key, v)
			}
		}
	})
}

// A broker's message id is not always unique: a second message under the id of another is kept for a person, not taken for done.
func TestSameIDWithAnotherBody(t *testing.T) {
	t.Parallel()
	other := order("1")
	other.Body = []byte(`{"order":2}`)
	for name, before := range map[string]func(b *bench){
		"done": func(b *bench) { b.sees(b.deliver(order("1")), consumer.Ack, 1, true, nil) },
		"running": func(b *bench) {
			b.answer = func(context.Context, consumer.Message) error {
				b.sees(b.deliver(other), consumer.DeadLetter, 0, false, idem.ErrPayloadMismatch)
				return nil
			}
			b.sees(b.deliver(order("1")), consumer.Ack, 1, true, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			before(b)
			b.sees(b.deliver(other), consumer.DeadLetter, 0, false, idem.ErrPayloadMismatch)
			b.ran(1)
			b.stands("1", idem.Succeeded, 1)
		})
	}
	t.Run("failed, and put right by a person", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.fails(errBroken)
		b.sees(b.deliver(order("1")), consumer.Retry, 1, true, errBroken)
		b.answer = nil
		b.sees(b.deliver(other), consumer.Ack, 2, true, nil)
	})
	t.Run("a KeyFunc decides alone", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, keyed("order 1", nil)...)
		b.sees(b.deliver(order("1")), consumer.Ack, 1, true, nil)
		if v := b.deliver(other); v.Action != consumer.Ack || !v.Replayed {
			t.Errorf("verdict %+v, want a replay", v)
		}
	})
}

// A resolver that cannot say uses up attempts like a handler that fails: the threshold ends it, and says why.
func TestResolverThatCannotSay(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		resolver idem.Resolver
		says     string
	}{
		"an error": {func(context.Context, idem.Claim) (idem.Ending, error) { return idem.Ending{}, errBroken }, errBroken.Error()},
		"a panic":  {func(context.Context, idem.Claim) (idem.Ending, error) { panic("no gateway") }, "no gateway"},
		"no state": {func(context.Context, idem.Claim) (idem.Ending, error) { return idem.Ending{}, nil }, "state"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, consumer.Resolver(tt.resolver), consumer.Attempts(3))
			b.claim("1")
			b.ledger.Lapse(key("1"))
			b.sees(b.deliver(order("1")), consumer.Retry, 2, true, idem.ErrUnavailable)
			v := b.deliver(order("1"))
			b.sees(v, consumer.DeadLetter, 3, true, idem.ErrUnavailable)
			if !strings.Contains(fmt.Sprint(v.Err), tt.says) {
				t.Errorf("error %v, want %q in it", v.Err, tt.says)
			}
			b.ran(0)
			b.stands("1", idem.Processing, 3)
		})
	}
}

// A commit that the database refuses is a failure like any other: the threshold ends it, and the dead letter says what the database said.
func TestRefusedCommit(t *testing.T) {
	t.Parallel()
	db := testkit.Postgres(t)
	pool := db.Pool(t)
	if err := pgstore.Migrate(t.Context(), pool, pgstore.Options{}); err != nil {
		t.Fatal(err)
	}
	db.Exec(t, `CREATE TABLE customers (id TEXT PRIMARY KEY)`)
	db.Exec(t, `CREATE TABLE grants (customer TEXT REFERENCES customers DEFERRABLE INITIALLY DEFERRED)`)
	ledger, err := pgstore.New(pool, pgstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ledger.Close)
	for way, options := range ways() {
		t.Run(way, func(t *testing.T) {
			b := &bench{T: t}
			b.c = b.open(ledger, append(options, consumer.Attempts(2))...)
			b.answer = func(ctx context.Context, _ consumer.Message) error {
				tx, err := pgstore.Tx(ctx)
				if err != nil {
					return err
				}
				_, err = tx.Exec(ctx, `INSERT INTO grants VALUES ('nobody')`)
				return err
			}
			m := order("order of " + way)
			b.sees(b.deliver(m), consumer.Retry, 1, true, idem.ErrOutcomeUnknown)
			v := b.deliver(m)
			if way == "claim first" { // which cannot tell yet that it never was
				b.sees(v, consumer.Retry, 2, true, idem.ErrOutcomeUnknown)
				v = b.deliver(m)
			}
			if v.Action != consumer.DeadLetter || !strings.Contains(v.Err.Error(), "grants_customer_fkey") {
				t.Errorf("verdict %+v, want a dead letter with the database's error", v)
			}
			b.ran(2)
		})
	}
}
