package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idemkit/idem"
)

// brief is the retention of records that a test wants to see end. It must cover the calls made until then on a slow machine.
const brief = 300 * time.Millisecond

// passed claims a record that lives for brief and returns when it is gone: everything written before with as long a life is gone as well.
func (f fixture) passed() {
	f.Helper()
	q := request("clock")
	q.Lease, q.Retention = brief, brief
	f.won(q, 1)
	f.eventually("the record ends with its retention", func() bool {
		_, err := f.Store.Lookup(f.Context(), q)
		return errors.Is(err, idem.ErrNotFound)
	})
}

func tokenEnds(f fixture) {
	short, long := request("short"), request("long")
	err := f.tokens().Issue(f.Context(), []idem.Token{
		{ID: "a", Key: short.Key, TTL: 100 * time.Millisecond, Retention: longRetention},
		{ID: "a", Key: long.Key, TTL: time.Hour, Retention: longRetention},
	})
	if err != nil {
		f.Fatalf("Issue: %v", err)
	}
	f.passed()
	f.spends(f.tokens(), idem.Unknown, "a", short)
	f.spends(f.tokens(), idem.Won, "a", long)
}

// spentForGood: a token that was only marked in its record could be spent again when the record is gone.
func spentForGood(f fixture) {
	for name, finish := range map[string]func(idem.Claim){
		"running": func(idem.Claim) {},
		"done":    func(c idem.Claim) { f.complete(c, result()) },
		"failed":  func(c idem.Claim) { f.release(c, idem.Failed) },
	} {
		q := request(name)
		q.Lease, q.Retention = brief, brief
		err := f.tokens().Issue(f.Context(), []idem.Token{{ID: "a", Key: q.Key, TTL: time.Hour, Retention: brief}})
		if err != nil {
			f.Fatalf("Issue: %v", err)
		}
		finish(f.spends(f.tokens(), idem.Won, "a", q).Claim)
	}
	f.passed()
	for _, name := range []string{"running", "done", "failed"} {
		f.spends(f.tokens(), idem.Unknown, "a", request(name))
	}
}

func issueProlongs(f fixture) {
	renewed := map[string]func(idem.Claim){
		"running": func(idem.Claim) {},
		"done":    func(c idem.Claim) { f.complete(c, result()) },
		"failed":  func(c idem.Claim) { f.release(c, idem.Failed) },
	}
	for name, reach := range renewed {
		q := request(name)
		q.Lease, q.Retention = brief, brief
		claim := f.won(q, 1)
		f.issue(f.tokens(), q.Key, "renewed")
		reach(claim)
		f.issue(f.tokens(), q.Key, "again")
	}
	f.passed()
	f.stands(request("running"), idem.Processing, 1)
	f.stands(request("failed"), idem.Failed, 1)
	f.replays(request("done"), result())
}

func issueNeverShortens(f fixture) {
	q := request("1")
	f.complete(f.won(q, 1), result())
	err := f.tokens().Issue(f.Context(), []idem.Token{{ID: "a", Key: q.Key, TTL: 10 * time.Millisecond, Retention: 10 * time.Millisecond}})
	if err != nil {
		f.Fatalf("Issue: %v", err)
	}
	f.passed()
	f.replays(again(q), result())
}

func raceForToken(f fixture) {
	q := request("1")
	f.issue(f.tokens(), q.Key, "a")
	f.oneWins(f.race(spending(f.tokens(), "a"), spending(f.another(), "a"), q), 1)
}

// another is the other handle as a token store, or the same where the other is none.
func (f fixture) another() idem.TokenStore {
	if s, ok := f.other.(idem.TokenStore); ok {
		return s
	}
	return f.tokens()
}

func spending(s idem.TokenStore, id string) asking {
	return func(ctx context.Context, q idem.Request) (idem.Answer, error) { return s.Spend(ctx, id, q) }
}

func raceOfTabs(f fixture) {
	q := request("1")
	ids := make(chan string, racers)
	for i := range racers {
		id := fmt.Sprint("tab", i)
		f.issue(f.tokens(), q.Key, id)
		ids <- id
	}
	tab := func(s idem.TokenStore) asking {
		return func(ctx context.Context, q idem.Request) (idem.Answer, error) { return s.Spend(ctx, <-ids, q) }
	}
	f.oneWins(f.race(tab(f.tokens()), tab(f.another()), q), 1)
}
