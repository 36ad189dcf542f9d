// Command idem is the kit without an application: the token service as a server of its own, the ledger's migration, and keys.
//
//	idem serve              the token service at /idem and /api/idempotent, with /healthz, /readyz and /metrics
//	idem migrate            brings the ledger's table up to date
//	idem keys [ed25519]     a fresh entry for IDEM_KEYS
//
// Settings come from the environment; "idem serve -h" lists them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/idemkit/idem/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second signal ends the process at once
	}()
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	server.LogRedis(logger)
	server.WarnUnknown(ctx, os.Environ(), logger)
	p := program{out: os.Stdout, err: os.Stderr, logger: logger, getenv: os.Getenv}
	os.Exit(p.run(ctx, os.Args[1:]))
}

// Exit codes.
const (
	done   = 0
	failed = 1
	misuse = 2
)

// program is the command with the world that it writes to and reads from.
type program struct {
	out, err io.Writer
	logger   *slog.Logger
	getenv   func(string) string
}

// command is one of the words after the program's name.
type command struct {
	name, line string // line says what it does
	run        func(ctx context.Context, arguments []string) error
}

func (p program) commands() []command {
	return []command{
		{"serve", "the token service at /idem and /api/idempotent, with /healthz, /readyz and /metrics", p.serve},
		{"migrate", "bring the ledger's table in IDEM_DATABASE_URL up to date", p.migrate},
		{"keys", "print a fresh entry for IDEM_KEYS", p.keys},
	}
}

// errMisuse says that the line was not understood; what is wrong was printed.
var errMisuse = errors.New("misuse")

func (p program) run(ctx context.Context, arguments []string) int {
	if len(arguments) == 0 {
		p.usage(p.err)
		return misuse
	}
	for _, c := range p.commands() {
		if c.name != arguments[0] {
			continue
		}
		switch err := c.run(ctx, arguments[1:]); {
		case err == nil, errors.Is(err, flag.ErrHelp):
			return done
		case errors.Is(err, errMisuse):
			return misuse
		default:
			p.complain("%v\n", err)
			return failed
		}
	}
	switch arguments[0] {
	case "-h", "-help", "--help", "help":
		p.usage(p.out)
		return done
	}
	p.complain("idem: there is no command %q\n", arguments[0])
	p.usage(p.err)
	return misuse
}

func (p program) usage(w io.Writer) {
	text := "usage: idem COMMAND [-h]\n\n"
	for _, c := range p.commands() {
		text += fmt.Sprintf("  %-8s %s\n", c.name, c.line)
	}
	_, _ = io.WriteString(w, text) // there is nobody else to tell
}

// complain writes to standard error; where that cannot be written to, there is nobody else to tell.
func (p program) complain(format string, v ...any) { _, _ = fmt.Fprintf(p.err, format, v...) }

// flags parses what stands behind a command's name. Help goes to standard output and is flag.ErrHelp; more words than allowed are errMisuse.
func (p program) flags(name, usage string, arguments []string, most int, define func(*flag.FlagSet)) ([]string, error) {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	define(set)
	help := func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "usage: idem %s\n", usage)
		set.SetOutput(w)
		set.PrintDefaults()
	}
	switch err := set.Parse(arguments); {
	case errors.Is(err, flag.ErrHelp):
		help(p.out)
		return nil, err
	case err != nil:
		p.complain("idem %s: %v\n", name, err)
		help(p.err)
		return nil, errMisuse
	case set.NArg() > most:
		p.complain("idem %s: %q is one word too many\n", name, set.Arg(most))
		help(p.err)
		return nil, errMisuse
	}
	return set.Args(), nil
}
