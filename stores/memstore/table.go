package memstore

// rebuildFrom is the size below which a table's buckets are not worth giving back.
const rebuildFrom = 1024

// table is a map that gives memory back: Go's maps keep their buckets for ever, so one that fell to a quarter of its peak is copied
// into a new one. A copy is paid for by the three times as many deletions before it.
type table[K comparable, V any] struct {
	rows map[K]V
	peak int
}

func newTable[K comparable, V any]() table[K, V] { return table[K, V]{rows: map[K]V{}} }

func (t *table[K, V]) put(k K, v V) {
	t.rows[k] = v
	t.peak = max(t.peak, len(t.rows))
}

func (t *table[K, V]) drop(k K) {
	delete(t.rows, k)
	if t.peak < rebuildFrom || len(t.rows) > t.peak/4 {
		return
	}
	rows := make(map[K]V, len(t.rows))
	for k, v := range t.rows {
		rows[k] = v
	}
	t.rows, t.peak = rows, len(rows)
}
