package server

import (
	"net"
	"strings"
	"testing"
	"time"
)

// part marks a secret that was put where it does not belong.
const part = "S3CR3T"

// FuzzLoad: whatever the settings are, Load does not panic, an error is lines that name a variable and shows nothing of a value, and what is taken can be opened.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		"redis://u:p@h:1,h:2/0?pool_size=3", "redis+sentinel://:p@[::1]:1,s2/shop/1?sentinel_password=x", "rediss://a,rediss://b", "redis://@@/,/?",
		"postgres://u:p@h1,h2:5/d?sslmode=disable", "postgresql:///d?host=/tmp&pool_max_conns=-1", "sqlite:a b%20?.db", "host:0", "[::1]:65536",
		"k:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "600/1m", "1/s", "off", "10s", "-1h", "https://u@h/?#", "HTTPS://H:443/",
	} {
		f.Add(seed, seed)
	}
	variables := Variables()
	f.Fuzz(func(t *testing.T, before, after string) {
		value := before + part + after
		for _, v := range variables {
			for _, text := range []string{value, before} {
				c, err := Load(map[string]string{v.Name: text})
				if err == nil {
					opens(t, c)
					continue
				}
				if strings.Contains(err.Error(), part) {
					t.Errorf("%s=%q shows itself: %v", v.Name, text, err)
				}
				for line := range strings.Lines(err.Error()) {
					if !strings.HasPrefix(line, "IDEM_") {
						t.Errorf("%s=%q: no variable in %q", v.Name, text, line)
					}
				}
			}
		}
	})
}

// opens checks what Open relies on, without opening anything.
func opens(t *testing.T, c Config) {
	t.Helper()
	entrance, err := parseRedis(c.RedisURL.Reveal())
	if err != nil || (c.RedisURL != "") != (len(entrance.addrs) > 0) {
		t.Errorf("Redis: %v, %v", entrance.addrs, err)
	}
	for _, addr := range entrance.addrs {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			t.Errorf("Redis: %v", err)
		}
	}
	database, err := parseDatabase(c.DatabaseURL.Reveal())
	if err != nil || (database.sqlite == "") == (database.postgres == nil) {
		t.Errorf("database: %+v, %v", database, err)
	}
	if c.TokenTTL <= 0 || c.Lease <= 0 || c.Wait < 0 || c.Retention < c.TokenTTL || c.Retention < c.Lease || c.ResultRetention <= 0 {
		t.Errorf("durations: %+v", c)
	}
	if (c.TokenRate.limit() == nil) != (c.TokenRate == Rate{}) || c.TokenRate.Tokens*addressShare < 0 || c.TokenRate.Per > 24*time.Hour {
		t.Errorf("rate: %v", c.TokenRate)
	}
	if (c.PublicURL != "") != (c.origin() != "") {
		t.Errorf("public URL %q, origin %q", c.PublicURL, c.origin())
	}
}
