package main

import (
	"context"
	"errors"
	"testing"
)

func TestBeside(t *testing.T) {
	t.Parallel()
	errWork, errServe := errors.New("work"), errors.New("serve")
	untilEnd := func(ctx context.Context) error { <-ctx.Done(); return nil }
	atOnce := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
	for name, c := range map[string]struct {
		work, serve func(context.Context) error
		told        bool // the context ends
		want        []error
	}{
		"told to stop":         {untilEnd, untilEnd, true, nil},
		"the work fails":       {atOnce(errWork), untilEnd, false, []error{errWork}},
		"the work ends":        {atOnce(nil), untilEnd, false, nil},
		"serving fails":        {untilEnd, atOnce(errServe), false, []error{errServe}},
		"both fail, told also": {atOnce(errWork), atOnce(errServe), true, []error{errWork, errServe}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.told {
				cancel()
			}
			err := beside(ctx, c.work, c.serve)
			for _, want := range c.want {
				if !errors.Is(err, want) {
					t.Errorf("%v lacks %v", err, want)
				}
			}
			if len(c.want) == 0 && err != nil {
				t.Error(err)
			}
		})
	}
}

// The work outlives the serving: the last request's event is published, too.
func TestBesideEndsTheWorkLast(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var order []string
	served := make(chan struct{})
	err := beside(ctx, func(ctx context.Context) error {
		<-ctx.Done()
		<-served
		order = append(order, "worked")
		return nil
	}, func(context.Context) error {
		order = append(order, "served")
		close(served)
		return nil
	})
	if err != nil || len(order) != 2 || order[0] != "served" {
		t.Errorf("%v, %v", order, err)
	}
}
