package idem_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
)

// One record that its resolver, or its compensation, cannot stand ends neither the round nor the process.
func TestRoundSurvivesPanics(t *testing.T) {
	t.Parallel()
	ledger := memstore.New(memstore.Options{})
	for _, id := range []string{"1", "2", "3"} {
		crashed(t, ledger, idem.K("refund", id))
		_, _ = idem.Once(t.Context(), ledger, idem.K("booking", id), func(context.Context) (int, error) { return 0, errors.New("no seats") })
	}
	j := idem.Janitor{
		Ledger: ledger, CompensateAfter: time.Nanosecond,
		Resolvers: map[string]idem.Resolver{"refund": func(_ context.Context, c idem.Claim) (idem.Ending, error) {
			if c.Key.ID == "2" {
				panic("no such refund")
			}
			return succeed("done").ending, nil
		}},
		Compensations: map[string]idem.Work{"booking": func(ctx context.Context) idem.Ending {
			if idem.FromContext(ctx).Key.ID == "2" {
				panic("no such booking")
			}
			return end(idem.Cancelled).ending
		}},
	}
	done, err := j.Round(t.Context())
	if done != (idem.Tidied{Recovered: 2, Compensated: 2}) || err == nil ||
		!strings.Contains(err.Error(), "no such refund") || !strings.Contains(err.Error(), "no such booking") {
		t.Errorf("%+v, %v", done, err)
	}
	if got := standing(t, ledger, idem.K("refund", "2")); got.State != idem.Processing || got.Live() || got.Attempt != 2 {
		t.Errorf("refund %+v", got)
	}
	if got := standing(t, ledger, idem.K("booking", "2")); got.State != idem.Failed || got.Attempt != 2 {
		t.Errorf("booking %+v", got)
	}
	if _, err := j.Round(t.Context()); errors.Is(err, idem.ErrInProgress) {
		t.Error("the round was not given free")
	}
}

// A gateway that answers nobody keeps neither the purge from its work nor the other processes from theirs.
func TestRoundDoesNotWaitForEveryResolver(t *testing.T) {
	bubbled(t, func(t *testing.T) {
		ledger, entrance := memstore.New(memstore.Options{}), memstore.New(memstore.Options{Forgetful: true})
		for i := range 500 {
			crashed(t, ledger, idem.K("refund", fmt.Sprint(i)))
		}
		invented := idem.Request{Key: idem.K("order", "1"), Owner: idem.NewOwner(), Ledger: ledger.Name(), Lease: time.Minute, Retention: 24 * time.Hour}
		if err := entrance.Restore(t.Context(), idem.Claim{Request: invented, Attempt: 1}, succeed("invented").ending.Result); err != nil {
			t.Fatal(err)
		}
		asked := 0
		j := idem.Janitor{Ledger: ledger, Store: entrance, Resolvers: map[string]idem.Resolver{"refund": func(ctx context.Context, _ idem.Claim) (idem.Ending, error) {
			asked++
			return idem.Ending{}, hang(ctx)
		}}}
		begun := time.Now()
		done, err := j.Round(t.Context())
		if took := time.Since(begun); done.Removed != 1 || err == nil || took > 20*time.Minute || asked == 500 {
			t.Errorf("%+v, %v after %v; %d were asked about", done, err, took, asked)
		}
	})
}

// A process that dies in its round keeps the others from theirs for a minute, by the ledger's clock.
func TestRoundOfAProcessThatDied(t *testing.T) {
	bubbled(t, func(t *testing.T) {
		ledger := memstore.New(memstore.Options{})
		dead := idem.Request{Key: idem.K("lock/idem.janitor", "round"), Owner: idem.NewOwner(), Lease: time.Minute, Retention: time.Hour}
		if answer, err := ledger.Claim(t.Context(), dead); err != nil || answer.Outcome != idem.Won {
			t.Fatal(answer.Outcome, err)
		}
		j := idem.Janitor{Ledger: ledger}
		if _, err := j.Round(t.Context()); !errors.Is(err, idem.ErrInProgress) {
			t.Errorf("beside it: %v", err)
		}
		pass(time.Minute)
		for range 2 {
			if _, err := j.Round(t.Context()); err != nil {
				t.Errorf("after it: %v", err)
			}
		}
	})
}

// A batch that says nothing is the default: none at all would never come to an end.
func TestPurgeOfABatchThatIsNone(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if n, err := (idem.Janitor{Ledger: memstore.New(memstore.Options{}), Batch: -1}).Purge(ctx); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// newer is a ledger with a record that a newer version wrote.
type newer struct {
	*ledger
	id string
}

func (n newer) Lookup(ctx context.Context, q idem.Request) (idem.Record, error) {
	if q.Key.ID == n.id {
		return idem.Record{}, idem.ErrFormat
	}
	return n.ledger.Lookup(ctx, q)
}

// In a rolling deployment the records of the newer version are left alone, and the others looked after.
func TestReconcilePassesOverNewerFormats(t *testing.T) {
	t.Parallel()
	r := newRig(t, both)
	for _, id := range []string{"request-1", "request-2", "request-3"} {
		q := r.order(t, id).Request
		q.Owner, q.Ledger = idem.NewOwner(), r.ledger.Name()
		if err := r.entrance.Restore(t.Context(), idem.Claim{Request: q, Attempt: 1}, succeed("invented").ending.Result); err != nil {
			t.Fatal(err)
		}
	}
	repaired, removed, err := idem.Janitor{Ledger: newer{r.ledger, "request-2"}, Store: r.entrance}.Reconcile(t.Context())
	if repaired != 0 || removed != 2 || err != nil {
		t.Errorf("repaired %d, removed %d, %v", repaired, removed, err)
	}
}

// The work is finished, and answered, while the janitor looks at it: whoever writes last writes the same.
func TestReconcileBesideALiveFinish(t *testing.T) {
	t.Parallel()
	r, work := newRig(t, both), hold(succeed("receipt").ending)
	call := r.order(t, "request-1")
	first := r.goDo(t.Context(), call, work.work)
	await(t, work.started, "the first")
	j := idem.Janitor{Ledger: r.ledger, Store: scanning{r.entrance, func() {
		close(work.release)
		await(t, first, "the first answer")
		drain(t, r.Engine)
	}}}
	if repaired, removed, err := j.Reconcile(t.Context()); removed != 0 || err != nil {
		t.Errorf("repaired %d, removed %d, %v", repaired, removed, err)
	}
	if again := r.must(t, call, work.work); !again.Replayed || string(again.Result.Body) != "receipt" {
		t.Errorf("duplicate: %+v", again)
	}
}

// scanning does something between reading and comparing.
type scanning struct {
	*entrance
	between func()
}

func (s scanning) Scan(ctx context.Context, visit func(idem.Record, string) error) error {
	return s.entrance.Scan(ctx, func(r idem.Record, ledger string) error {
		s.between()
		return visit(r, ledger)
	})
}
