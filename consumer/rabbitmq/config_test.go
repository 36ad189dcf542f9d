package rabbitmq

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	good := func() Config { return Config{URL: "amqp://guest:guest@127.0.0.1/shop", Queue: "points"} }
	if _, err := New(good()); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Config)
		says   string
	}{
		"no URL":                         {func(c *Config) { c.URL = "" }, "URL"},
		"URL of something else":          {func(c *Config) { c.URL = "http://guest:secret@broker/" }, "URL"},
		"no queue":                       {func(c *Config) { c.Queue = "" }, "Queue"},
		"long queue":                     {func(c *Config) { c.Queue = strings.Repeat("q", 251) }, "bytes"},
		"concurrency":                    {func(c *Config) { c.Concurrency = -1 }, "Concurrency"},
		"prefetch below concurrency":     {func(c *Config) { c.Concurrency, c.Prefetch = 4, 3 }, "Prefetch"},
		"prefetch beyond AMQP":           {func(c *Config) { c.Prefetch = 65536 }, "Prefetch"},
		"reconnection that shrinks":      {func(c *Config) { c.FirstReconnect, c.MaxReconnect = 2, 1 }, "reconnection"},
		"negative reconnection":          {func(c *Config) { c.FirstReconnect = -1 }, "reconnection"},
		"negative confirmation time-out": {func(c *Config) { c.ConfirmTimeout = -1 }, "ConfirmTimeout"},
		"heartbeat below a second":       {func(c *Config) { c.Heartbeat = time.Millisecond }, "Heartbeat"},
		"negative grace":                 {func(c *Config) { c.Grace = -1 }, "Grace"},
		"binding to nothing":             {func(c *Config) { c.Bindings = []Binding{{Key: "a"}} }, "Exchange"},
		"dead letters into the work":     {func(c *Config) { c.Dead = "points" }, "dead letters"},
		"levels that shrink":             {func(c *Config) { c.Retry = []Level{{Delay: 2 * time.Second}, {Delay: time.Second}} }, "grow"},
		"level of nothing":               {func(c *Config) { c.Retry = []Level{{}} }, "whole milliseconds"},
		"level below a millisecond":      {func(c *Config) { c.Retry = []Level{{Delay: time.Microsecond}} }, "whole milliseconds"},
		"level in the work queue":        {func(c *Config) { c.Retry = []Level{{Delay: time.Second, Queue: "points"}} }, "twice"},
		"level in the dead letters":      {func(c *Config) { c.Retry = []Level{{Delay: time.Second, Queue: "points.dead"}} }, "twice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := good()
			c.change(&config)
			_, err := New(config)
			if !errors.Is(err, idem.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one that says %q", err, c.says)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("%v shows the password", err)
			}
		})
	}
}

func TestNewLeavesTheCallersLevels(t *testing.T) {
	t.Parallel()
	levels := []Level{{Delay: time.Minute}}
	if _, err := New(Config{URL: "amqp://broker/", Queue: "points", Retry: levels}); err != nil {
		t.Fatal(err)
	}
	if levels[0].Queue != "" {
		t.Errorf("the caller's slice was written to: %v", levels)
	}
}

func TestLevels(t *testing.T) {
	t.Parallel()
	config := Config{URL: "amqp://broker/", Queue: "points"}.withDefaults()
	var names []string
	for _, level := range config.Retry {
		names = append(names, level.Queue)
	}
	want := []string{"points.retry.1s", "points.retry.4s", "points.retry.16s", "points.retry.1m", "points.retry.5m"}
	if !slices.Equal(names, want) || config.Dead != "points.dead" {
		t.Errorf("queues %v and %s, want %v", names, config.Dead, want)
	}
	for delay, queue := range map[time.Duration]string{
		0:                       "points.retry.1s",
		time.Millisecond:        "points.retry.1s",
		time.Second:             "points.retry.1s",
		time.Second + 1:         "points.retry.4s",
		16 * time.Second:        "points.retry.16s",
		17 * time.Second:        "points.retry.1m",
		5 * time.Minute:         "points.retry.5m",
		24 * time.Hour:          "points.retry.5m",
		59*time.Second + 999000: "points.retry.1m",
	} {
		if got := config.level(delay).Queue; got != queue {
			t.Errorf("%v rests in %s, want %s", delay, got, queue)
		}
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		50 * time.Millisecond: "50ms", time.Second: "1s", 90 * time.Second: "1m30s", time.Minute: "1m", 10 * time.Minute: "10m",
		time.Hour: "1h", 90 * time.Minute: "1h30m", 20 * time.Hour: "20h", time.Hour + time.Second: "1h0m1s",
	} {
		if got := short(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestRounded(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]time.Duration{
		-time.Second: time.Millisecond, 0: time.Millisecond, 1: time.Millisecond, time.Millisecond: time.Millisecond,
		time.Millisecond + 1: 2 * time.Millisecond, time.Second: time.Second,
	} {
		if got := rounded(d); got != want {
			t.Errorf("%v is %v, want %v", d, got, want)
		}
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	r := &run{Config: Config{FirstReconnect: 100 * time.Millisecond, MaxReconnect: time.Second}}
	for failures, whole := range map[int]time.Duration{
		0: 100 * time.Millisecond, 1: 200 * time.Millisecond, 3: 800 * time.Millisecond, 4: time.Second, 1_000_000_000: time.Second,
	} {
		for range 50 {
			if got := r.pause(failures); got < whole/2 || got > whole {
				t.Fatalf("after %d failures %v, want %v to %v", failures, got, whole/2, whole)
			}
		}
	}
}
