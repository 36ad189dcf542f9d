//go:build million

package pgstore_test

// rowsPurged are as many as a busy month leaves: make million.
const rowsPurged = 1_000_000
