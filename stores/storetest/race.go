package storetest

import (
	"fmt"
	"sync"

	"github.com/idemkit/idem"
)

// racers is enough for every interleaving of two statements to be met now and then.
const racers = 200

func raceChecks() []check {
	return []check{
		{"race/many for a new key: one wins", func(f fixture) {
			f.oneWins(f.race(f.Store.Claim, f.other.Claim, request("1")), 1)
		}},
		{"race/many for a lapsed key: one wins", func(f fixture) {
			q := request("1")
			first := f.lapsed(q)
			f.oneWins(f.race(f.Store.Claim, f.other.Claim, q), 2)
			f.lost(first)
		}},
		{"race/many for a failed key: one wins", func(f fixture) {
			q := request("1")
			f.release(f.won(q, 1), idem.Failed)
			f.oneWins(f.race(f.Store.Claim, f.other.Claim, q), 2)
		}},
		{"race/the first finishes while it is taken over", raceToFinish},
	}
}

type contest struct {
	answer idem.Answer
	err    error
}

// race lets many owners ask for the same at once, by turns through both handles.
func (f fixture) race(one, two asking, q idem.Request) []contest {
	f.Helper()
	contests := make([]contest, racers)
	start := make(chan struct{})
	var running sync.WaitGroup
	for i := range contests {
		ask := one
		if i%2 == 1 {
			ask = two
		}
		running.Go(func() {
			<-start
			contests[i].answer, contests[i].err = ask(f.Context(), again(q))
		})
	}
	close(start)
	running.Wait()
	return contests
}

func (f fixture) oneWins(contests []contest, attempt int) {
	f.Helper()
	var winners []idem.Claim
	for _, c := range contests {
		switch {
		case c.err != nil:
			f.Fatalf("error: %v", c.err)
		case c.answer.Outcome == idem.Won:
			winners = append(winners, c.answer.Claim)
		case c.answer.Outcome != idem.Busy:
			f.Fatalf("outcome %v, want busy", c.answer.Outcome)
		}
	}
	if len(winners) != 1 || winners[0].Attempt != attempt {
		f.Fatalf("%d winners %+v, want one with attempt %d", len(winners), winners, attempt)
	}
	f.complete(winners[0], result())
	f.replays(again(winners[0].Request), result())
}

// raceToFinish lets a late claimer complete while another takes its lapsed claim: whoever is told so, the other is not.
func raceToFinish(f fixture) {
	for i := range 20 {
		q := request(fmt.Sprint(i))
		first := f.lapsed(q)
		var finish error
		var running sync.WaitGroup
		running.Go(func() { finish = f.other.Complete(f.Context(), first, result()) })
		answer := f.ask(f.Store, again(q))
		running.Wait()
		switch {
		case finish == nil && answer.Outcome == idem.Done:
			f.replays(again(q), result())
		case finish != nil && answer.Outcome == idem.Won:
			f.lost(first)
		default:
			f.Fatalf("the first: %v; the second: %v", finish, answer.Outcome)
		}
	}
}
