package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// program is the demo, built once for all tests. It is a package variable because a test binary has one TestMain and nothing else in common.
var program string

// atOnce is how many tests run at a time: they wait for leases, delays and servers much more than they compute.
const atOnce = "6"

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", atOnce)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "idem-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	program = filepath.Join(folder, "demo")
	if output, err := exec.Command("go", "build", "-o", program, "../demo").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the demo: %v\n%s", err, output)
		return 1
	}
	code := m.Run()
	if code == 0 {
		// The shared Postgres and its supervisor's pipe live as long as the test binary.
		if err := goleak.Find(goleak.IgnoreAnyFunction("internal/poll.runtime_pollWait")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}
