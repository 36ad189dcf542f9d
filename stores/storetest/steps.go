package storetest

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/idemkit/idem"
)

func (h *history) claim(t *rapid.T) {
	h.ask(t, h.request(t))
}

// claimAgain repeats a command that was answered before, with nothing changed or by another owner.
func (h *history) claimAgain(t *rapid.T) {
	q := h.held(t).Request
	if rapid.Bool().Draw(t, "by another") {
		q.Owner = "another"
	}
	h.ask(t, q)
}

func (h *history) ask(t *rapid.T, q idem.Request) {
	got, err := h.through(t).Claim(h.f.Context(), q)
	want, modelErr := h.model.Claim(h.f.Context(), q)
	h.answer(got, want, err, modelErr)
	h.observe(q.Key)
}

func (h *history) extend(t *rapid.T) {
	var claims []idem.Claim
	for range rapid.IntRange(1, 4).Draw(t, "claims") {
		claims = append(claims, h.held(t))
	}
	got, err := h.through(t).Extend(h.f.Context(), claims)
	want, modelErr := h.model.Extend(h.f.Context(), claims)
	h.sameError(err, modelErr)
	if !slices.Equal(got, want) {
		h.Fatalf("lost %v, want %v, of %+v", got, want, claims)
	}
	for _, c := range claims {
		h.rewritten(c.Key)
	}
}

func (h *history) result(t *rapid.T) idem.Result {
	return rapid.SampledFrom([]idem.Result{
		result(), {Status: 303, Header: [][2]string{{"Location", "/orders/1"}}, Kept: true}, {Status: 200, Body: []byte("large")}, {},
	}).Draw(t, "result")
}

func (h *history) complete(t *rapid.T) {
	c, r := h.held(t), h.result(t)
	err := h.through(t).Complete(h.f.Context(), c, r)
	modelErr := h.model.Complete(h.f.Context(), c, r)
	h.sameError(err, modelErr)
	h.rewritten(c.Key)
}

func (h *history) release(t *rapid.T) {
	c := h.held(t)
	as := rapid.SampledFrom([]idem.State{idem.Failed, idem.Failed, idem.Processing, idem.Cancelled, idem.Succeeded}).Draw(t, "as")
	reason := rapid.SampledFrom([]string{"", "broke", "a\x00b"}).Draw(t, "reason")
	err := h.through(t).Release(h.f.Context(), c, as, reason)
	modelErr := h.model.Release(h.f.Context(), c, as, reason)
	h.sameError(err, modelErr)
	h.observe(c.Key)
}

func (h *history) lapse(t *rapid.T) {
	key := h.key(t)
	if h.seen[key].State != idem.Processing {
		t.Skip("nothing runs")
	}
	h.f.Lapse(h.f.T, key)
	h.model.Lapse(key)
	h.observe(key)
}

func (h *history) lookup(t *rapid.T) {
	q := h.request(t)
	q.Key.ID = rapid.SampledFrom([]string{q.Key.ID, "never"}).Draw(t, "id")
	if _, ok := h.store.(idem.Ledger); !ok {
		q.RequestID = ""
	}
	got, err := h.through(t).Lookup(h.f.Context(), q)
	want, modelErr := h.model.Lookup(h.f.Context(), q)
	h.sameError(err, modelErr)
	h.sameRecord(got, want)
}

func (h *history) issue(t *rapid.T) {
	token := idem.Token{ID: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "token"), Key: h.key(t), TTL: time.Hour, Retention: longRetention}
	tokens := []idem.Token{token}
	err := h.through(t).(idem.TokenStore).Issue(h.f.Context(), tokens)
	h.sameError(err, h.model.Issue(h.f.Context(), tokens))
	h.observe(token.Key)
}

func (h *history) spend(t *rapid.T) {
	q, id := h.request(t), rapid.SampledFrom([]string{"a", "b", "never"}).Draw(t, "token")
	got, err := h.through(t).(idem.TokenStore).Spend(h.f.Context(), id, q)
	want, modelErr := h.model.Spend(h.f.Context(), id, q)
	h.answer(got, want, err, modelErr)
	h.observe(q.Key)
}

func (h *history) restore(t *rapid.T) {
	c := idem.Claim{Request: h.request(t), Attempt: rapid.IntRange(1, 5).Draw(t, "attempt")}
	if len(c.Fingerprint) == 0 {
		c.Fingerprint = []byte("x")
	}
	r := h.result(t)
	err := h.through(t).(idem.TokenStore).Restore(h.f.Context(), c, r)
	h.sameError(err, h.model.Restore(h.f.Context(), c, r))
	h.compare(c.Key)
}

// claimTx ends its transaction before the history goes on: two at once are for the checks of transactions.
func (h *history) claimTx(t *rapid.T) {
	q, r, commit := h.request(t), h.result(t), rapid.Bool().Draw(t, "commit")
	got, ctx, tx, err := h.store.(idem.Ledger).ClaimTx(h.f.Context(), q, time.Minute)
	want, modelCtx, modelTx, modelErr := h.model.ClaimTx(h.f.Context(), q, time.Minute)
	h.answer(got, want, err, modelErr)
	switch {
	case want.Outcome != idem.Won:
	case commit:
		h.sameError(tx.Complete(ctx, r), modelTx.Complete(modelCtx, r))
		h.passedThrough(q.Key)
	default:
		h.sameError(tx.Rollback(ctx), modelTx.Rollback(modelCtx))
	}
	h.observe(q.Key)
}

// passedThrough notes that a committed transaction went through processing unseen.
func (h *history) passedThrough(key idem.Key) {
	before := h.seen[key]
	before.State = idem.Processing
	h.seen[key] = before
}

func (h *history) open(t *rapid.T) {
	c, r := h.held(t), h.result(t)
	ctx, tx := h.store.(idem.Ledger).Open(h.f.Context(), c, time.Minute)
	modelCtx, modelTx := h.model.Open(h.f.Context(), c, time.Minute)
	if rapid.Bool().Draw(t, "commit") {
		h.sameError(tx.Complete(ctx, r), modelTx.Complete(modelCtx, r))
	} else {
		h.sameError(tx.Rollback(ctx), modelTx.Rollback(modelCtx))
	}
	h.rewritten(c.Key)
}

func (h *history) forget(*rapid.T) {
	h.f.Forget(h.f.T)
	h.model.Forget()
	clear(h.seen)
}
