package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestArguments(t *testing.T) {
	t.Parallel()
	const usage = "usage: demo\n"
	for name, c := range map[string]struct {
		argument    string
		code        int
		out, errors string // beginnings; empty: nothing
	}{
		"help":           {"-h", 0, usage, ""},
		"help, spelled":  {"--help", 0, usage, ""},
		"help, one dash": {"-help", 0, usage, ""},
		"a word":         {"now", 2, "", `demo: "now" is one word too many` + "\n" + usage},
		"a flag":         {"-addr=:80", 2, "", `demo: "-addr=:80" is one word too many` + "\n" + usage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], c.argument)
			cmd.Env = append(os.Environ(), asProgram+"=1")
			var out, complaints bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &complaints
			_ = cmd.Run() // its exit code is looked at
			if got := cmd.ProcessState.ExitCode(); got != c.code {
				t.Errorf("exit code %d", got)
			}
			for _, stream := range []struct{ got, want string }{{out.String(), c.out}, {complaints.String(), c.errors}} {
				if !strings.HasPrefix(stream.got, stream.want) || (stream.want == "") != (stream.got == "") {
					t.Errorf("%q, want %q", stream.got, stream.want)
				}
			}
			if c.code == 0 && !strings.Contains(out.String(), "IDEM_LEASE: 1ms to 1h") {
				t.Errorf("no settings in %s", out.String())
			}
		})
	}
}
