package storetest

import (
	"fmt"
	"time"

	"github.com/idemkit/idem"
)

// abandonedChecks are about processing records whose lease ran out. A store whose records end by themselves has nothing to purge there.
func abandonedChecks() []check {
	return []check{
		{"purge/abandoned: lapsed and past their retention, of these types", purgeAbandoned},
		{"purge/abandoned: age counts from the last renewal", purgeRenewed},
		{"purge/abandoned: and after a takeover", purgeTakenOver},
		{"purge/abandoned: up to the limit, finished ones included", purgeAbandonedLimit},
	}
}

// stuck is a claim whose claimer died, and whose lease and retention end soon.
func (f fixture) stuck(id, businessType string) idem.Claim {
	f.Helper()
	q := ofKind(id, businessType)
	q.Lease, q.Retention = brief, brief
	return f.won(q, 1)
}

func (f fixture) ends() bool {
	_, ends := f.Store.(idem.TokenStore)
	return ends
}

func purgeAbandoned(f fixture) {
	running, unknown := ofKind("running", kind), ofKind("unknown", kind)
	f.won(running, 1)
	f.release(f.won(unknown, 1), idem.Processing)
	f.lapsed(ofKind("lapsed", kind))
	spared := f.stuck("spared", "another").Request
	ended := ofKind("ended", kind)
	ended.Lease, ended.Retention = brief, brief
	f.release(f.won(ended, 1), idem.Processing)
	dead := f.stuck("dead", kind).Request
	f.eventually("the dead ones are purged", func() bool {
		f.purge(100, "unheard of", kind)
		return f.gone(dead) && f.gone(ended)
	})
	f.stands(running, idem.Processing, 1)
	f.stands(unknown, idem.Processing, 1)
	f.stands(ofKind("lapsed", kind), idem.Processing, 1)
	if !f.ends() {
		f.purge(100)
		f.stands(spared, idem.Processing, 1)
	}
	f.won(corrected(dead), 1)
}

func purgeRenewed(f fixture) {
	if f.ends() {
		return
	}
	kept := f.stuck("kept", kind)
	control := f.stuck("control", "control")
	f.eventually("the control is purged", func() bool { f.purge(100, "control"); return f.gone(control.Request) })
	renewed := time.Now()
	if lost, err := f.Store.Extend(f.Context(), []idem.Claim{kept}); err != nil || len(lost) != 0 {
		f.Fatalf("Extend: lost %v, %v", lost, err)
	}
	f.Lapse(f.T, kept.Key)
	if n := f.purge(100, kind); n != 0 && time.Since(renewed) < brief {
		f.Fatalf("purged %v after its renewal, of %v", time.Since(renewed), brief)
	}
	f.eventually("it is purged", func() bool { f.purge(100, kind); return f.gone(kept.Request) })
}

func purgeTakenOver(f fixture) {
	first := f.stuck("1", kind)
	f.Lapse(f.T, first.Key)
	next := again(first.Request)
	f.won(next, 2)
	f.eventually("it is purged", func() bool { f.purge(100, kind); return f.gone(next) })
	f.lostUnlessForgetful(first)
}

// lostUnlessForgetful: to a store that forgets, the claim may still be.
func (f fixture) lostUnlessForgetful(c idem.Claim) {
	f.Helper()
	if f.Forget == nil {
		f.lost(c)
	}
}

func purgeAbandonedLimit(f fixture) {
	if f.ends() {
		return
	}
	const each = 3
	var asked []idem.Request
	for i := range each {
		asked = append(asked, f.aged(fmt.Sprint("finished ", i), idem.Failed), f.stuck(fmt.Sprint("stuck ", i), kind).Request)
	}
	f.passedBeside(asked[len(asked)-1].Retention)
	purged := 0
	for _, want := range []int{2, 2, 2, 0} {
		if n := f.purge(2, kind); n != want {
			f.Errorf("purged %d after %d, want %d", n, purged, want)
		}
		purged += want
	}
	for _, q := range asked {
		f.absent(q)
	}
}

// passedBeside returns when a record of another type, made now and as long kept, is purged.
func (f fixture) passedBeside(retention time.Duration) {
	f.Helper()
	q := ofKind("beside", "beside")
	q.Lease, q.Retention = retention, retention
	f.won(q, 1)
	// A clock that stands beside the store's: it must not purge what the test is about.
	f.eventually("it lapsed", func() bool {
		record := f.lookup(q)
		return record.LeaseLeft <= 0
	})
}
