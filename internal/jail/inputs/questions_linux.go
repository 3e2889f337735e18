package inputs

import (
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/jail/changes"
	"github.com/tapedeck-dev/tapedeck/internal/jail/filter"
	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"golang.org/x/sys/unix"
)

// A question is a call by which processes ask for what no two runs get alike: when it is notified, and what answers it.
type question struct {
	nr     int
	when   [][]filter.Condition // nil for always
	shifts bool                 // it is asked only where clocks lie behind the kernel's
	answer func(*Answerer, *notify.Call, *process.Asker)
}

// questions are asked of a process's Source. That of the clock comes first: nearly every program asks it, and often.
var questions = []question{
	{unix.SYS_CLOCK_GETTIME, is(0, slices.Concat(ownClocks, tickClocks)...), false, (*Answerer).clock},
	{unix.SYS_GETTIMEOFDAY, nil, false, (*Answerer).timeOfDay},
	{filter.SysTime, nil, false, (*Answerer).time},
	{unix.SYS_GETRANDOM, nil, false, (*Answerer).random},

	{unix.SYS_FUTEX, [][]filter.Condition{
		{filter.Bits(1, futexRealtime)},
		{filter.Masked(1, futexCommand, futexLockPI)},
		{filter.Masked(1, futexCommand, futexWaitBitset), filter.NotNull(3)},
	}, true, (*Answerer).waitFor},
	{unix.SYS_CLOCK_NANOSLEEP, has(1, unix.TIMER_ABSTIME), false, (*Answerer).sleep},
	{unix.SYS_TIMERFD_SETTIME, has(1, unix.TFD_TIMER_ABSTIME), true, (*Answerer).waitFor},
	{unix.SYS_TIMER_SETTIME, has(1, unix.TIMER_ABSTIME), true, (*Answerer).waitFor},
	{unix.SYS_MQ_TIMEDSEND, [][]filter.Condition{{filter.NotNull(4)}}, true, (*Answerer).waitFor},
	{unix.SYS_MQ_TIMEDRECEIVE, [][]filter.Condition{{filter.NotNull(4)}}, true, (*Answerer).waitFor},

	// What only the kernel knows of this machine and this moment, and few programs ask: what a file system holds, how busy the machine is,
	// and (looks) which inode and device a file is, and when it was made and changed, which nobody can set.
	{unix.SYS_STATFS, nil, false, (*Answerer).statfs},
	{unix.SYS_FSTATFS, nil, false, (*Answerer).fstatfs},
	{unix.SYS_SYSINFO, nil, false, (*Answerer).sysinfo},
	{unix.SYS_TIMES, nil, false, (*Answerer).times},
	{unix.SYS_GETRUSAGE, is(0, unix.RUSAGE_SELF, rusageChildren), false, (*Answerer).usage},
}

func is(arg int, values ...uint32) [][]filter.Condition {
	return [][]filter.Condition{{filter.Equal(arg, values...)}}
}

func has(arg int, bits uint32) [][]filter.Condition {
	return [][]filter.Condition{{filter.Bits(arg, bits)}}
}

// answers are those of the questions, by their numbers.
var answers = make(map[int32]func(*Answerer, *notify.Call, *process.Asker))

func init() {
	for _, q := range questions {
		if q.nr >= 0 {
			answers[int32(q.nr)] = q.answer
		}
	}
}

// Rules notify the calls that an Answerer answers. ticks says that programs can be made to ask for the monotonic clock (Hides), shifted that
// clocks lie behind the kernel's.
func Rules(ticks, shifted bool) []filter.Rule {
	clocks := is(0, ownClocks...)
	if ticks {
		clocks = questions[0].when
	}
	rules := []filter.Rule{{Nr: unix.SYS_CLOCK_GETTIME, When: clocks, Then: filter.Notify, Else: filter.Allow}}
	rules = append(rules, opens()...)
	rules = append(rules, looks()...)
	for _, q := range questions[1:] {
		if q.nr >= 0 && (shifted || !q.shifts) {
			rules = append(rules, filter.Rule{Nr: uint32(q.nr), When: q.when, Then: filter.Notify, Else: filter.Allow})
		}
	}
	rules = append(rules, libraries())
	rules = append(rules, filter.Each(filter.Notify, unix.SYS_BIND, unix.SYS_EXIT_GROUP, unix.SYS_SET_ROBUST_LIST)...)
	rules = append(rules, filter.Rule{Nr: unix.SYS_CLOSE, When: is(0, 0), Then: filter.Notify, Else: filter.Allow})
	rules = append(rules, filter.Rule{Nr: unix.SYS_SENDTO, When: [][]filter.Condition{{filter.Equal(2, 1), filter.Equal(4, 0)}}, Then: filter.Notify, Else: filter.Allow}) // a byte, to nobody by name
	rules = append(rules, threads()...)
	return append(rules, names()...)
}

// opens notify an open for reading by a path that starts at the root or in the working directory: a random device, or a file of /proc, may be
// meant. What walks trees opens from directory to directory, and pays nothing.
func opens() []filter.Rule {
	rules := []filter.Rule{{Nr: unix.SYS_OPENAT, When: [][]filter.Condition{{filter.Equal(0, atCwd), filter.NoBits(2, notReading)}}, Then: filter.Notify}}
	if nr := filter.SysOpen; nr >= 0 {
		rules = append(rules, filter.Rule{Nr: uint32(nr), When: [][]filter.Condition{{filter.NoBits(1, notReading)}}, Then: filter.Notify})
	}
	return rules
}

// looks notify a call that asks for a file by its path. Of one that is open already nobody asks when it was written, and every program asks
// the rest.
//
// A signal may end a call that is notified before anybody has heard of it (EINTR), and no program expects that of this one: a shell whose child
// ends then takes a program for one that is not there. So of the calls that follow links, by which shells look for programs, those alone are
// notified whose path lies where Python has its strings, and not in the heap behind the program, where shells have theirs.
func looks() []filter.Rule {
	return []filter.Rule{
		{Nr: unix.SYS_STATX, When: [][]filter.Condition{{filter.NoBits(2, unix.AT_EMPTY_PATH)}}, Then: filter.Notify, Else: filter.Allow},
		{Nr: unix.SYS_NEWFSTATAT, When: [][]filter.Condition{
			{filter.Bits(3, unix.AT_SYMLINK_NOFOLLOW), filter.NoBits(3, unix.AT_EMPTY_PATH)},
			{filter.NoBits(3, unix.AT_EMPTY_PATH), filter.Mapped(1)},
		}, Then: filter.Notify, Else: filter.Allow},
	}
}

// looked returns the directory and the path of a call that looks notify.
func looked(c *notify.Call) (dirfd int32, path uint64, ok bool) {
	ok = c.Nr == unix.SYS_NEWFSTATAT || c.Nr == unix.SYS_STATX
	return int32(c.Args[0]), c.Args[1], ok
}

const (
	rusageChildren = 0xffffffff // RUSAGE_CHILDREN as 32 bits

	notReading = changes.WriteFlags | unix.O_PATH | unix.O_DIRECTORY
	atCwd      = 0xffffff9c // AT_FDCWD as 32 bits
)

// opened returns the path and the flags of an open that opens notify.
func opened(c *notify.Call) (path uint64, flags uint32, ok bool) {
	switch {
	case c.Nr == unix.SYS_OPENAT && uint32(c.Args[0]) == atCwd:
		path, flags, ok = c.Args[1], uint32(c.Args[2]), true
	case c.Nr == filter.SysOpen:
		path, flags, ok = c.Args[0], uint32(c.Args[1]), true
	}
	return path, flags, ok && flags&notReading == 0
}
