//go:build race && !million

package pgstore_test

// rowsPurged is smaller under the race detector, which has nothing to say about the server's part of the work.
const rowsPurged = 20_000
