package idem_test

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/memstore"
)

// A key that has come and gone leaves nothing in the engine. fiber#3263: the map of locks grew for ever. The store alone shows it with a million
// keys; here each takes some fifty microseconds, so that there are fewer: an entry for each in a map of keys would be at least twice the slack.
func TestKeysLeaveNothing(t *testing.T) {
	const keys, slack = 30_000, 2 << 20
	h := newHeapRig(t)
	h.seen(0, 3000) // what the runtime and the tables of the stores need once
	h.expire()
	before := liveHeap()
	h.seen(3000, keys)
	full := liveHeap()
	h.expire()
	after := liveHeap()
	t.Logf("heap: %d KiB before, %d KiB full, %d KiB after; %d runs", before>>10, full>>10, after>>10, h.work.runs.Load())
	if full < before+keys {
		t.Errorf("%d bytes for %d keys: nothing was kept, so that nothing is shown", full-before, keys)
	}
	if after > before+slack {
		t.Errorf("%d bytes are still held", after-before)
	}
	if flying := idem.Flying(h.engine); flying != 0 {
		t.Errorf("%d keys are still waited for", flying)
	}
	runtime.KeepAlive(h)
}

// heapRig is an engine on stores whose clock moves with the keys: a tenth of the keys live at any time.
type heapRig struct {
	*testing.T
	engine *idem.Engine
	stores []*memstore.Store
	work   *counted
	ahead  atomic.Int64
}

func newHeapRig(t *testing.T) *heapRig {
	t.Helper()
	h := &heapRig{T: t, work: succeed("receipt")}
	begun := time.Now()
	clock := func() time.Time { return begun.Add(time.Duration(h.ahead.Load())) }
	entrance, ledger := memstore.New(memstore.Options{Now: clock, Forgetful: true}), memstore.New(memstore.Options{Now: clock})
	engine, err := idem.NewEngine(idem.EngineConfig{Store: entrance, Ledger: ledger})
	if err != nil {
		t.Fatal(err)
	}
	h.engine, h.stores = engine, []*memstore.Store{entrance, ledger}
	return h
}

// seen sends every key twice at about the same time, by two pairs of callers; every eighth fails at first.
func (h *heapRig) seen(from, to int) {
	h.Helper()
	const living = 3000
	var all sync.WaitGroup
	for caller := range 4 {
		all.Go(func() {
			for i := from + caller/2; i < to; i += 2 {
				if _, err := h.engine.Do(context.Background(), expiring(strconv.Itoa(i)), h.sometimes(i)); err != nil {
					h.Error(err)
					return
				}
				h.ahead.Add(int64(time.Hour) / living / 2)
			}
		})
	}
	all.Wait()
	drain(h, h.engine)
}

func (h *heapRig) sometimes(i int) idem.Work {
	return func(ctx context.Context) idem.Ending {
		ending := h.work.work(ctx)
		if i%8 == 0 && idem.FromContext(ctx).Attempt == 1 {
			return idem.Ending{State: idem.Failed}
		}
		return ending
	}
}

// expire lets everything end and the stores drop it.
func (h *heapRig) expire() {
	h.Helper()
	h.ahead.Add(int64(2 * time.Hour))
	for _, store := range h.stores {
		if _, err := store.Purge(h.Context(), nil, 1<<20); err != nil {
			h.Fatal(err)
		}
	}
}

// expiring has a lease that a caller which the scheduler forgets for a thousand keys still holds.
func expiring(id string) idem.Call {
	key := idem.Key{Type: "order.create", Scope: "anna", ID: id}
	return idem.Call{
		Request: idem.Request{Key: key, Subject: "anna", RequestID: id, Lease: time.Hour, Retention: time.Hour},
		TokenID: "jti", Entrance: key, Wait: time.Minute, Limit: time.Minute,
	}
}

func liveHeap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
