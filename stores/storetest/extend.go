package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/idemkit/idem"
)

func extendChecks() []check {
	return []check{
		{"extend/many at once, some of them lost", extendMany},
		{"extend/none", extendNone},
		{"extend/a lapsed claim that nobody took", extendLapsed},
		{"extend/to the full length from now", extendLength},
		{"extend/after success the claim is lost", extendDone},
	}
}

func extendMany(f fixture) {
	var claims []idem.Claim
	var want []int
	for i := range 60 {
		q := request(fmt.Sprint(i))
		claim := f.won(q, 1)
		if f.spoil(claim, i%6) {
			want = append(want, i)
		}
		claims = append(claims, claim)
	}
	lost, err := f.Store.Extend(f.Context(), claims)
	if err != nil || !slices.Equal(lost, want) {
		f.Fatalf("lost %v, %v; want %v", lost, err, want)
	}
	for i, c := range claims {
		if !slices.Contains(want, i) && !f.stands(c.Request, idem.Processing, 1).Live() {
			f.Errorf("claim %d has no lease after its renewal", i)
		}
	}
}

// spoil does one of several things to a claim and reports whether they lose it.
func (f fixture) spoil(c idem.Claim, way int) bool {
	f.Helper()
	switch way {
	case 1:
		f.Lapse(f.T, c.Key)
		f.won(again(c.Request), 2)
	case 2:
		f.release(c, idem.Failed)
	case 3:
		f.Lapse(f.T, c.Key)
		return false
	case 4:
		f.complete(c, result())
	case 5:
		f.release(c, idem.Processing)
	default:
		return false
	}
	return true
}

func extendNone(f fixture) {
	for _, none := range [][]idem.Claim{nil, {}} {
		if lost, err := f.Store.Extend(f.Context(), none); err != nil || len(lost) != 0 {
			f.Errorf("Extend: lost %v, %v", lost, err)
		}
	}
}

func extendLapsed(f fixture) {
	q := request("1")
	claim := f.lapsed(q)
	for range 2 {
		if lost, err := f.Store.Extend(f.Context(), []idem.Claim{claim}); err != nil || len(lost) != 0 {
			f.Fatalf("Extend: lost %v, %v", lost, err)
		}
	}
	f.outcome(idem.Busy, again(q))
	f.complete(claim, result())
}

func extendLength(f fixture) {
	q := request("1")
	claim := f.won(q, 1)
	claim.Lease = 3 * longLease
	if lost, err := f.Store.Extend(f.Context(), []idem.Claim{claim}); err != nil || len(lost) != 0 {
		f.Fatalf("Extend: lost %v, %v", lost, err)
	}
	record := f.stands(q, idem.Processing, 1)
	if left := record.LeaseLeft; left > claim.Lease || left < claim.Lease-10*time.Minute {
		f.Errorf("lease left %v of %v", left, claim.Lease)
	}
	if record.Owner != q.Owner || string(record.Fingerprint) != string(q.Fingerprint) {
		f.Errorf("record %+v", record)
	}
}

func extendDone(f fixture) {
	q := request("1")
	claim := f.won(q, 1)
	f.complete(claim, result())
	if lost, err := f.Store.Extend(f.Context(), []idem.Claim{claim}); err != nil || !slices.Equal(lost, []int{0}) {
		f.Fatalf("Extend: lost %v, %v; want [0]", lost, err)
	}
	f.replays(again(q), result())
}
