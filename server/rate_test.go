package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// asking is one call of the token service.
type asking struct {
	subject, remote string
	n               int
	refused         bool
}

func TestTokenRate(t *testing.T) {
	t.Parallel()
	rate := Rate{Tokens: 5, Per: time.Minute}
	burst := func(calls int, one asking) []asking {
		var all []asking
		for range calls {
			all = append(all, one)
		}
		return all
	}
	for name, c := range map[string]struct {
		rate Rate
		asks []asking
	}{
		"five, then none": {rate, append(burst(5, asking{"a", "192.0.2.1:1", 1, false}), asking{"a", "192.0.2.1:1", 1, true})},
		"the count is what counts": {rate, []asking{
			{"a", "192.0.2.1:1", 4, false}, {"a", "192.0.2.1:1", 2, true}, {"a", "192.0.2.1:1", 1, false}, {"a", "192.0.2.1:1", 1, true},
		}},
		"more at once than ever": {rate, []asking{{"a", "192.0.2.1:1", 6, true}}},
		"subjects apart":         {rate, []asking{{"a", "192.0.2.1:1", 5, false}, {"b", "192.0.2.1:1", 5, false}, {"a", "192.0.2.1:1", 1, true}}},
		"an address has ten times as many": {rate, append(burst(10, asking{"", "192.0.2.1:1", 5, false}),
			asking{"", "192.0.2.1:2", 1, true}, asking{"c", "192.0.2.1:1", 1, true}, asking{"d", "192.0.2.2:1", 1, false})},
		"a refused subject costs its address nothing": {rate, append(append([]asking{{"a", "192.0.2.1:1", 5, false}}, burst(60, asking{"a", "192.0.2.1:1", 1, true})...),
			asking{"b", "192.0.2.1:1", 5, false})},
		"an IPv6 client has a whole /64": {rate, append(burst(10, asking{"", "[2001:db8::1]:1", 5, false}),
			asking{"", "[2001:db8::2]:1", 1, true}, asking{"", "[2001:db8:0:1::1]:1", 1, false})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				limit := c.rate.limit()
				for i, ask := range c.asks {
					r := httptest.NewRequest(http.MethodPost, "/idem/token", nil)
					r.RemoteAddr = ask.remote
					if wait := limit(r, ask.subject, ask.n); (wait > 0) != ask.refused || wait < 0 || wait > c.rate.Per {
						t.Errorf("call %d %+v: wait %v", i+1, ask, wait)
					}
				}
			})
		})
	}
}

func TestTokenRateComesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limit := Rate{Tokens: 5, Per: time.Minute}.limit()
		r := httptest.NewRequest(http.MethodPost, "/idem/token", nil)
		if limit(r, "a", 5) != 0 {
			t.Fatal("the first five are refused")
		}
		wait := limit(r, "a", 5)
		if wait <= 0 {
			t.Fatal("ten are given")
		}
		<-time.After(2 * wait) // by the clock of synctest
		if limit(r, "a", 5) != 0 {
			t.Error("refused after the time")
		}
	})
}

func TestTokenRateOff(t *testing.T) {
	t.Parallel()
	if (Rate{}).limit() != nil {
		t.Error("off limits something")
	}
}

func TestRateText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"600/1m": "600/1m", "1/1s": "1/1s", "5/m": "5/1m", "5/h": "5/1h", "5/90s": "5/1m30s", "100000000/24h": "100000000/24h", "off": "off",
		"": "-", "0/1m": "-", "-1/1m": "-", "1/0s": "-", "1/25h": "-", "1/": "-", "/1m": "-", "1m/1": "-", "OFF": "off", "Off": "off", "1/1m/1m": "-", "100000001/1m": "-", "1/mm": "-",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			got := "-"
			var rate Rate
			if rate.UnmarshalText([]byte(text)) == nil {
				marshalled, err := rate.MarshalText()
				if got = string(marshalled); err != nil || got != fmt.Sprint(rate) {
					t.Errorf("%s, %v", got, err)
				}
			}
			if got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
