package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
)

// ledger is the row that the replicas add to, and who has added when.
type ledger struct {
	conn  *pgx.Conn
	table string
}

func openLedger(ctx context.Context, dsn string) (*ledger, error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	l := &ledger{conn, fmt.Sprintf("replicas_%d", time.Now().UnixNano())}
	_, err = conn.Exec(ctx, "create table "+l.table+" (n int); insert into "+l.table+" values (0); "+
		"create table "+l.table+"_allowed (n int); insert into "+l.table+"_allowed values (0); "+
		"create table "+l.table+"_turns (n int, replica text, began timestamptz, ended timestamptz)")
	return l, err
}

func (l *ledger) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, _ = l.conn.Exec(ctx, "drop table "+l.table+", "+l.table+"_allowed, "+l.table+"_turns")
	_ = l.conn.Close(ctx)
}

func (l *ledger) sum(ctx context.Context) (n int, err error) {
	err = l.conn.QueryRow(ctx, "select n from "+l.table).Scan(&n)
	return n, err
}

// allow lets the replicas make turns until there are n.
func (l *ledger) allow(ctx context.Context, n int) error {
	_, err := l.conn.Exec(ctx, "update "+l.table+"_allowed set n = $1", n)
	return err
}

// clock returns the server's time, by which all turns are told.
func (l *ledger) clock(ctx context.Context) (at time.Time, err error) {
	err = l.conn.QueryRow(ctx, "select clock_timestamp()").Scan(&at)
	return at, err
}

// stretch is turns of one replica with none of another's between them.
type stretch struct {
	Replica      string
	First, Last  int
	Began, Ended time.Time
}

func (l *ledger) stretches(ctx context.Context) ([]stretch, error) {
	rows, err := l.conn.Query(ctx, `
		with marked as (
			select *, row_number() over (order by began) - row_number() over (partition by replica order by began) as run
			from `+l.table+`_turns where n is not null)
		select replica, min(n)::int, max(n)::int, min(began), max(ended) from marked group by replica, run order by min(began)`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[stretch])
}

// report prints who held the key when. It fails if the sum is wrong, or if turns
// met each other more often than a kill can explain.
func (l *ledger) report(ctx context.Context, out io.Writer, turns int, killed killing) error {
	all, err := l.stretches(ctx)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "from ms\tto ms\treplica\tturns\t")
	told := false
	for _, s := range all {
		if !told && s.Began.After(killed.at) {
			told = true
			fmt.Fprintf(w, "%.1f\t\t%s\tkilled\t\n", ms(killed.at.Sub(all[0].Began)), killed.name)
		}
		fmt.Fprintf(w, "%.1f\t%.1f\t%s\t%d..%d\t\n", ms(s.Began.Sub(all[0].Began)), ms(s.Ended.Sub(all[0].Began)), s.Replica, s.First, s.Last)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	var sum, made, overtaken int
	err = l.conn.QueryRow(ctx, "select (select n from "+l.table+"), count(n), count(*) - count(n) from "+l.table+"_turns").
		Scan(&sum, &made, &overtaken)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nThe sum is %d after %d turns, of %d that were wanted. %d more were overtaken by another.\n", sum, made, turns, overtaken)
	if sum != turns || made != turns || overtaken > 1 {
		return fmt.Errorf("replicas: the key was not held by one at a time")
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
