package results

// PaperTable is one of the paper's tables with its parts, such as values and changes.
type PaperTable struct {
	Name   string // t1, t2, t3, t3b, t4 to t9
	Tables []*Table
}

// PaperTables makes all tables of the paper. One without evidence says so.
func PaperTables(e *Evidence) ([]PaperTable, error) {
	return nil, nil
}

// WriteTables writes a folder with each table in every format, and tables.md
// with all of them.
func WriteTables(dir string, ts []PaperTable) error {
	return nil
}
