package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/idemkit/idem"
)

func tokenChecks() []check {
	checks := []check{
		{"token/is spent by its first use", spentOnce},
		{"token/a renewed one meets the same record", renewedMeetsRecord},
		{"token/many tabs, all valid", manyTabs},
		{"token/unknown", unknownToken},
		{"token/unknown, vouched for by a ledger", vouchedToken},
		{"token/is good for its own key only", tokenOfAnotherKey},
		{"token/a spent one asks again after a failure", spentAsksAgain},
		{"token/repeated by its owner is won again", spentRepeatedly},
		{"token/the record answers by subject and payload", spendJudges},
		{"token/any bytes in its id and key", hostileTokens},
		{"token/issuing none, or one twice", issueOddly},
		{"token/an invalid request spends nothing", invalidSpend},
		{"token/a cancelled context spends nothing", cancelledSpend},
		{"token/ends with its time", tokenEnds},
		{"token/stays spent when its record has ended", spentForGood},
		{"token/issuing prolongs the record", issueProlongs},
		{"token/issuing never shortens the record", issueNeverShortens},
		{"token/race: many spend one, one wins", raceForToken},
		{"token/race: many tabs, one wins", raceOfTabs},
	}
	return gather(checks, restoreChecks(), scanChecks())
}

func (f fixture) tokens() idem.TokenStore { return f.Store.(idem.TokenStore) }

// issue stores a token of each id for the key.
func (f fixture) issue(s idem.TokenStore, key idem.Key, ids ...string) {
	f.Helper()
	var tokens []idem.Token
	for _, id := range ids {
		tokens = append(tokens, idem.Token{ID: id, Key: key, TTL: time.Hour, Retention: longRetention})
	}
	if err := s.Issue(f.Context(), tokens); err != nil {
		f.Fatalf("Issue: %v", err)
	}
}

// spends fails the test where the outcome is another.
func (f fixture) spends(s idem.TokenStore, want idem.Outcome, id string, q idem.Request) idem.Answer {
	f.Helper()
	answer, err := s.Spend(f.Context(), id, q)
	if err != nil || answer.Outcome != want {
		f.Fatalf("Spend: outcome %v, %v; want %v; record %+v", answer.Outcome, err, want, answer.Record)
	}
	return answer
}

func spentOnce(f fixture) {
	q := request("1")
	f.issue(f.tokens(), q.Key, "a")
	f.absent(q)
	claim := f.spends(f.tokens(), idem.Won, "a", q).Claim
	if claim.Attempt != 1 || claim.Owner != q.Owner {
		f.Fatalf("claim %+v", claim)
	}
	f.stands(q, idem.Processing, 1)
	f.spends(f.tokens(), idem.Busy, "a", again(q))
	f.spends(f.tokens(), idem.Mismatch, "a", corrected(q))
	f.complete(claim, result())
	answer := f.spends(f.tokens(), idem.Done, "a", again(q))
	if !sameResult(answer.Record.Result, result()) {
		f.Errorf("result %+v", answer.Record.Result)
	}
	f.spends(f.tokens(), idem.Mismatch, "a", corrected(q))
}

func renewedMeetsRecord(f fixture) {
	q := request("1")
	f.issue(f.tokens(), q.Key, "a")
	claim := f.spends(f.tokens(), idem.Won, "a", q).Claim
	f.issue(f.tokens(), q.Key, "b", "c")
	f.stands(q, idem.Processing, 1)
	f.spends(f.tokens(), idem.Busy, "b", again(q))
	f.complete(claim, result())
	f.issue(f.tokens(), q.Key, "d")
	for _, id := range []string{"b", "c", "d"} {
		f.spends(f.tokens(), idem.Done, id, again(q))
	}
}

func manyTabs(f fixture) {
	var tokens []idem.Token
	for i := range 1000 {
		tokens = append(tokens, idem.Token{ID: fmt.Sprint("tab", i), Key: request(fmt.Sprint(i)).Key, TTL: time.Hour, Retention: longRetention})
	}
	if err := f.tokens().Issue(f.Context(), tokens); err != nil {
		f.Fatalf("Issue: %v", err)
	}
	for i := 999; i >= 0; i -= 9 {
		f.spends(f.tokens(), idem.Won, fmt.Sprint("tab", i), request(fmt.Sprint(i)))
	}
}

func unknownToken(f fixture) {
	q := request("1")
	f.spends(f.tokens(), idem.Unknown, "never issued", q)
	f.absent(q)
	f.issue(f.tokens(), q.Key, "a")
	f.spends(f.tokens(), idem.Unknown, "A", again(q))
	f.spends(f.tokens(), idem.Won, "a", again(q))
}

func vouchedToken(f fixture) {
	q := request("1")
	q.Ledger = "the ledger"
	claim := f.spends(f.tokens(), idem.Won, "never issued", q).Claim
	f.spends(f.tokens(), idem.Busy, "never issued", again(q))
	f.release(claim, idem.Failed)
	unvouched := again(q)
	unvouched.Ledger = ""
	if next := f.spends(f.tokens(), idem.Won, "never issued", unvouched).Claim; next.Attempt != 2 {
		f.Errorf("attempt %d, want 2", next.Attempt)
	}
}

func tokenOfAnotherKey(f fixture) {
	right, wrong := request("1"), request("2")
	f.issue(f.tokens(), right.Key, "a")
	f.spends(f.tokens(), idem.Unknown, "a", wrong)
	f.absent(wrong)
	f.spends(f.tokens(), idem.Won, "a", right)
}

func spentAsksAgain(f fixture) {
	q := request("1")
	f.issue(f.tokens(), q.Key, "a")
	f.release(f.spends(f.tokens(), idem.Won, "a", q).Claim, idem.Failed)
	next := corrected(q)
	claim := f.spends(f.tokens(), idem.Won, "a", next).Claim
	if claim.Attempt != 2 {
		f.Errorf("attempt %d, want 2", claim.Attempt)
	}
	f.Lapse(f.T, q.Key)
	if claim = f.spends(f.tokens(), idem.Won, "a", again(next)).Claim; claim.Attempt != 3 {
		f.Errorf("attempt %d, want 3", claim.Attempt)
	}
	f.release(claim, idem.Cancelled)
	f.spends(f.tokens(), idem.Withdrawn, "a", again(next))
}

func spentRepeatedly(f fixture) {
	q := request("1")
	f.issue(f.tokens(), q.Key, "a")
	for range 3 {
		if claim := f.spends(f.tokens(), idem.Won, "a", q).Claim; claim.Attempt != 1 {
			f.Fatalf("attempt %d, want 1", claim.Attempt)
		}
	}
	f.spends(f.tokens(), idem.Busy, "a", again(q))
}

func spendJudges(f fixture) {
	q := request("1")
	f.issue(f.tokens(), q.Key, "a", "b", "c")
	f.spends(f.tokens(), idem.Won, "a", q)
	if answer := f.spends(f.tokens(), idem.Foreign, "b", stranger(q)); !blank(answer.Record) {
		f.Errorf("a foreign answer tells %+v", answer.Record)
	}
	f.spends(f.tokens(), idem.Mismatch, "c", corrected(q))
	f.Lapse(f.T, q.Key)
	f.spends(f.tokens(), idem.Mismatch, "c", corrected(q))
	f.stands(q, idem.Processing, 1)
}

func hostileTokens(f fixture) {
	for i, value := range hostile() {
		byID, byKey := request(fmt.Sprint("token id", i)), request(value)
		byKey.Key.Scope = value
		byKey.RequestID = value
		f.issue(f.tokens(), byID.Key, value)
		f.issue(f.tokens(), byKey.Key, "a")
		f.spends(f.tokens(), idem.Won, value, byID)
		f.spends(f.tokens(), idem.Won, "a", byKey)
	}
}

func issueOddly(f fixture) {
	for _, none := range [][]idem.Token{nil, {}} {
		if err := f.tokens().Issue(f.Context(), none); err != nil {
			f.Errorf("Issue of none: %v", err)
		}
	}
	q := request("1")
	f.issue(f.tokens(), q.Key, "a", "a")
	f.issue(f.tokens(), q.Key, "a")
	f.release(f.spends(f.tokens(), idem.Won, "a", q).Claim, idem.Failed)
	f.stands(q, idem.Failed, 1)
}

func invalidSpend(f fixture) {
	f.refusesInvalid(func(ctx context.Context, q idem.Request) (idem.Answer, error) {
		q.Ledger = "the ledger"
		return f.tokens().Spend(ctx, "a", q)
	})
	q := request("1")
	f.issue(f.tokens(), q.Key, "a")
	bad := q
	bad.Lease = 0
	if _, err := f.tokens().Spend(f.Context(), "a", bad); err == nil {
		f.Fatalf("Spend without a lease was accepted")
	}
	f.spends(f.tokens(), idem.Won, "a", q)
}

func cancelledSpend(f fixture) {
	q := request("1")
	f.issue(f.tokens(), q.Key, "a")
	ctx, cancel := context.WithCancel(f.Context())
	cancel()
	if _, err := f.tokens().Spend(ctx, "a", q); err == nil {
		f.Errorf("Spend ignored its context")
	}
	if err := f.tokens().Issue(ctx, []idem.Token{{ID: "b", Key: q.Key, TTL: time.Hour}}); err == nil {
		f.Errorf("Issue ignored its context")
	}
	if err := f.tokens().Restore(ctx, idem.Claim{Request: q, Attempt: 1}, result()); err == nil {
		f.Errorf("Restore ignored its context")
	}
	f.absent(q)
	f.spends(f.tokens(), idem.Unknown, "b", q)
	f.spends(f.tokens(), idem.Won, "a", q)
}
