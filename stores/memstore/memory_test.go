package memstore_test

import (
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
)

// slack is what the runtime itself may have grown by between two measurements.
const slack = 2 << 20

// TestMillionKeys is not parallel: it measures the heap of the whole process. A quarter of the keys live at any time; the last quarter
// ends at once, as after an idle night.
func TestMillionKeys(t *testing.T) {
	b := newBench(t, memstore.Options{})
	before := heap()
	const living = keysSeen / 4
	for i := range keysSeen {
		b.seen(strconv.Itoa(i), i%4 == 0)
		b.clock.Advance(time.Hour / living)
	}
	full := heap()
	b.clock.Advance(time.Hour)
	for range living/32 + 1 {
		b.touch()
	}
	after := heap()
	t.Logf("heap: %d KiB before, %d KiB full, %d KiB after", before>>10, full>>10, after>>10)
	if full < before+living<<8 || full > before+living<<10 {
		t.Errorf("%d bytes for %d living keys", full-before, living)
	}
	if after > before+slack {
		t.Errorf("%d bytes are still held after everything expired; %d before", after, before)
	}
	runtime.KeepAlive(b.Store)
}

// seen issues a token, spends it and finishes the record; the record, and the token of a tab that is never sent, end by themselves.
func (b bench) seen(id string, tab bool) {
	b.Helper()
	q := idem.Request{Key: idem.K("order.create", id), Subject: "alice", RequestID: id, Owner: id, Lease: time.Minute, Retention: time.Hour}
	tokens := []idem.Token{{ID: "a", Key: q.Key, TTL: time.Minute}}
	if tab {
		tokens = append(tokens, idem.Token{ID: "b", Key: q.Key, TTL: time.Minute})
	}
	if err := b.Issue(b.Context(), tokens); err != nil {
		b.Fatal(err)
	}
	answer, err := b.Spend(b.Context(), "a", q)
	if err != nil || answer.Outcome != idem.Won {
		b.Fatalf("Spend: %v, %v", answer.Outcome, err)
	}
	if err := b.Complete(b.Context(), answer.Claim, idem.Result{Status: 201, Body: []byte("{}"), Kept: true}); err != nil {
		b.Fatal(err)
	}
}

// touch is a call that finds nothing: the sweep needs no writes.
func (b bench) touch() {
	b.Helper()
	if b.kept(request("never")) {
		b.Fatal("a record out of nothing")
	}
}

func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestStringsAreCut keeps the key of a large body, and only that.
func TestStringsAreCut(t *testing.T) {
	b := newBench(t, memstore.Options{})
	before := heap()
	for i := range 64 {
		body := strings.Repeat("x", 1<<20) + strconv.Itoa(i)
		id := body[1<<20:]
		q := request(id)
		q.Key.Tenant, q.Key.Scope, q.Subject, q.RequestID = id, id, id, id
		if err := b.Issue(t.Context(), []idem.Token{{ID: id, Key: q.Key, TTL: time.Minute}}); err != nil {
			t.Fatal(err)
		}
		b.complete(q, idem.Result{Header: [][2]string{{id, id}}, Body: []byte(id), Kept: true})
	}
	if after := heap(); after > before+slack {
		t.Errorf("%d bytes are held by 64 short keys", after-before)
	}
	runtime.KeepAlive(b.Store)
}

// TestKeptBytesGo measures that a body is freed with its time, long before its record.
func TestKeptBytesGo(t *testing.T) {
	b := newBench(t, memstore.Options{})
	before := heap()
	for i := range 64 {
		b.complete(request(strconv.Itoa(i)), idem.Result{Body: make([]byte, 1<<20), Kept: true, Keep: time.Minute})
	}
	if full := heap(); full < before+60<<20 {
		t.Fatalf("bodies are not kept: %d bytes", full-before)
	}
	b.clock.Advance(time.Minute)
	if err := b.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		b.outcome(idem.Done, again(request("1")))
	}
	if after := heap(); after > before+slack {
		t.Errorf("%d bytes are still held", after-before)
	}
	runtime.KeepAlive(b.Store)
}
