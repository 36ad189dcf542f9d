// Package e2e holds the tests of the whole: the demo shop as real processes on real Redis and real Postgres, through what goes wrong in life - double
// clicks, lost answers, kill -9, servers that forget or are away - by HTTP clients and by a real browser. Besides
// them it has the form of the README.
package e2e
