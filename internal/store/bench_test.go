package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/cputime"
	"github.com/tapedeck-dev/tapedeck/internal/store"
	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
	"github.com/tapedeck-dev/tapedeck/internal/store/seglog/logload"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// benchTurn is a turn of about 270 bytes, as an agent's tool call makes them.
func benchTurn(text string) runtrace.Turn {
	tool := "shell"
	return runtrace.Turn{Tool: &tool, Prompt: &text,
		Parameters: json.RawMessage(`{"command":"go test ./internal/store/...","timeout_ms":30000}`),
		Output:     json.RawMessage(`{"exit_code":0,"stdout":"ok  \tgithub.com/tapedeck-dev/tapedeck/internal/store\t0.412s\n"}`)}
}

// A load is what a number of sessions did.
type load struct {
	perSecond float64
	p99       time.Duration
	block     float64       // entries a block
	sync      time.Duration // of a block
	cpu       time.Duration // of a turn, with what drives it
	entry     int           // bytes
}

// drive has sessions append turns, one at a time each, and measures.
func drive(b testing.TB, s *store.Disk, sessions, turns int) load {
	ids := make([]runtrace.ID, sessions)
	var group sync.WaitGroup
	for i := range ids {
		ids[i] = runtrace.ID{Agent: fmt.Sprint("agent", i%50), Run: fmt.Sprintf("run-%s-%d", time.Now().Format("150405.000000"), i)}
		group.Go(func() {
			if _, err := s.Start(context.Background(), &runtrace.Started{RunID: ids[i].Run, AgentID: ids[i].Agent, Intent: "bench"}); err != nil {
				b.Error(err)
			}
		})
	}
	group.Wait()
	before := s.Stats().Log
	each := min(max(turns/sessions, 1), runtrace.MaxTurns)
	waits := make([][]time.Duration, sessions)
	begin, spent := time.Now(), cputime.Spent()
	for i, id := range ids {
		group.Go(func() {
			waits[i] = make([]time.Duration, 0, each)
			turn := []runtrace.Turn{benchTurn("build the thing and say what is wrong with it")}
			for range each {
				at := time.Now()
				if _, err := s.Append(context.Background(), id, turn); err != nil {
					b.Error(err)
					return
				}
				waits[i] = append(waits[i], time.Since(at))
			}
		})
	}
	group.Wait()
	took := time.Since(begin)
	spent = cputime.Spent() - spent
	after := s.Stats().Log
	all := slices.Concat(waits...)
	slices.Sort(all)
	records := after.Records - before.Records
	return load{
		perSecond: float64(len(all)) / took.Seconds(),
		cpu:       spent / time.Duration(len(all)),
		p99:       all[len(all)*99/100],
		sync:      time.Duration((after.SyncSeconds - before.SyncSeconds) * 1e9 / float64(after.Blocks-before.Blocks)),
		block:     float64(records) / float64(after.Blocks-before.Blocks),
		entry:     int((after.Bytes - before.Bytes) / max(records, 1)),
	}
}

// daemons are the options of a daemon's store: with fewer descriptors than there are runs each turn opens its file anew, and of larger
// segments the log prepares hundreds of MB that nobody comes to, on the same processors.
var daemons = &store.Options{Descriptors: 4096}

// BenchmarkAppend measures acknowledged turns, and in the same process the log alone with entries of the same size and as many
// who append, and a file a session with an fsync of its own.
func BenchmarkAppend(b *testing.B) {
	for _, sessions := range []int{1, 100, 2000} {
		b.Run(fmt.Sprintf("sessions=%d", sessions), func(b *testing.B) {
			s := openDisk(b, b.TempDir(), daemons)
			b.ReportAllocs()
			b.ResetTimer()
			ours := drive(b, s, sessions, b.N)
			b.StopTimer()
			log := logload.Load{Appenders: sessions, Size: ours.entry, Records: max(min(b.N, sessions*runtrace.MaxTurns), sessions),
				Log: &seglog.Options{Prepare: true}}
			alone, err := logload.Run(b.Context(), b.TempDir(), log)
			if err != nil {
				b.Fatal(err)
			}
			// As many as give blocks of the same size: half of them are being written while the other half comes.
			log.Appenders = max(1, min(sessions, int(2*ours.block)))
			same, err := logload.Run(b.Context(), b.TempDir(), log)
			if err != nil {
				b.Fatal(err)
			}
			log.Appenders = sessions
			log.Records = max(min(log.Records, 10_000), sessions)
			files, err := logload.Sessions(b.TempDir(), log)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(ours.perSecond, "turns/s")
			b.ReportMetric(float64(ours.p99.Microseconds()), "p99-µs")
			b.ReportMetric(float64(ours.cpu)/1e3, "cpu-µs/turn")
			b.ReportMetric(ours.block, "turns/block")
			b.ReportMetric(float64(ours.sync.Microseconds()), "sync-µs/block")
			b.ReportMetric(float64(ours.entry), "B/entry")
			b.ReportMetric(ours.perSecond/alone.PerSecond(), "of-log-alone")
			b.ReportMetric(float64(ours.p99)/float64(alone.P99), "p99-of-log-alone")
			b.ReportMetric(ours.perSecond/same.PerSecond(), "of-log-with-such-blocks")
			b.ReportMetric(float64(same.Records)/float64(len(same.Blocks)), "its-records/block")
			b.ReportMetric(float64(ours.p99)/float64(same.P99), "p99-of-log-with-such-blocks")
			b.ReportMetric(ours.perSecond/files.PerSecond(), "x-file-a-session")
		})
	}
}

// BenchmarkOpenRun measures what a run that is open keeps in memory.
func BenchmarkOpenRun(b *testing.B) {
	const runs = 5000
	for b.Loop() {
		s := openDisk(b, b.TempDir(), nil)
		drive(b, s, 10, 10)
		before := heap()
		drive(b, s, runs, runs)
		b.ReportMetric(float64(heap()-before)/runs, "B/run")
		runtime.KeepAlive(s)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
