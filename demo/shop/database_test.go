package shop_test

// number is what one statement yields in the shop's database.
func (s *site) number(statement string, arguments ...any) int {
	s.Helper()
	var n int
	must(s.T, s.parts.open(s.T).QueryRowContext(s.Context(), statement, arguments...).Scan(&n))
	return n
}

// fence is the highest number that was shown for a thing.
func (s *site) fence(sku string) int {
	s.Helper()
	return s.number(`SELECT fence FROM shop_stock WHERE sku = $1`, sku)
}
