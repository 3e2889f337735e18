//go:build commands

package commands

// A row is one command.
type row struct {
	name    string
	tools   []string  // what it needs beside the shell and coreutils
	program *compiled // the command, where the test makes it
	command string
	short   bool   // in the short form too
	red     string // why it may differ; empty for what must be the same
}

const (
	someFiles = `mkdir d && echo one >d/a && echo two >d/b && `
	commit    = `git -c init.defaultBranch=main init -q && git config user.name A && git config user.email a@example.test && echo one >f && git add f && git commit -qm one && `
)

var rows = []row{
	{name: "date", command: `date`, short: true},
	{name: "date +%s%N", command: `date +%s%N; date -u +%FT%T.%NZ`},
	{name: "tar, md5sum", command: someFiles + `tar cf t.tar d && md5sum t.tar`, short: true},
	{name: "tar czf | sha256sum", command: someFiles + `tar czf - d | sha256sum`},
	{name: "zip -r", tools: []string{"zip"}, command: someFiles + `zip -qr t.zip d && sha256sum t.zip`, red: "when a directory was read last: zip has just read it"},
	{name: "zip -rX", tools: []string{"zip"}, command: someFiles + `zip -qrX t.zip d && sha256sum t.zip`},
	{name: "node --test", tools: []string{"node"}, command: `echo 'require("node:test")("adds", () => {})' >a.test.js && node --test`, red: "durations that Node measures"},
	{name: "$RANDOM", command: `echo $RANDOM $RANDOM $SRANDOM`},
	{name: "shuf", command: `shuf -i 1-100000 -n 5`},
	{name: "sort -R", command: `seq 50 | sort -R | head -5`},
	{name: "openssl rand", tools: []string{"openssl"}, command: `openssl rand -hex 16`},
	{name: "openssl genrsa", tools: []string{"openssl"}, command: `openssl genrsa 2048 2>/dev/null | md5sum`},
	{name: "ssh-keygen", tools: []string{"ssh-keygen"}, command: `ssh-keygen -q -t ed25519 -N '' -C c -f key && cat key.pub && ssh-keygen -lf key`},
	{name: "sqlite3 random()", tools: []string{"python3"}, command: `python3 -c 'import sqlite3; print(sqlite3.connect("t.db").execute("select random(), hex(randomblob(8)), datetime()").fetchall())'`},
	{name: "Python: sets, id, hash, uuid, tempfile", tools: []string{"python3"}, command: `python3 -c '
import os, random, tempfile, time, uuid
print({"a", "b", "c"}, id(object()), hash("x"), uuid.uuid1(), uuid.uuid4(), random.random(), time.time(), os.getpid(), object())
print(tempfile.mkdtemp(), tempfile.NamedTemporaryFile().name)'`, short: true},
	{name: "Go: maps, rand, time", program: inGo},
	{name: "Rust: HashMap, time", program: inRust},
	{name: "C: addresses, rand, clock", program: inC},
	{name: "C: rdtsc, rdrand", program: ofProcessor, red: "what the processor gives without a call"},
	{name: "awk srand", tools: []string{"awk"}, command: `awk 'BEGIN { srand(); print rand(), srand() }'`},
	{name: "perl", tools: []string{"perl"}, command: `perl -e 'print rand(), " ", time, " $$ ", {}, " ", join(",", keys %{{a=>1,b=>2,c=>3}}), "\n"'`},
	{name: "PIDs", command: `echo $$ $BASHPID $PPID; sh -c 'echo $$'; sleep 0 & echo $!; wait`},
	{name: "xargs -P4", command: `seq 8 | xargs -P4 -I{} sh -c 'sleep 0.0{}; echo {}'`, red: "the order of what runs side by side"},
	{name: "df", command: `df`, short: true},
	{name: "df -i", command: `df -i`},
	{name: "df -h .", command: `df -h .`, red: "which mount a file lies in: a replay's directories are layers"},
	{name: "stat -f", command: `stat -f .`},
	{name: "stat of a found file", command: `stat agent.py`, short: true},
	{name: "stat of a new file", command: `echo one >f; stat f`},
	{name: "ls -la", command: someFiles + `ls -la . d`},
	{name: "ls -la --time-style=full-iso", command: someFiles + `ls -la --time-style=full-iso . d`, short: true},
	{name: "ls -i", command: someFiles + `ls -i . d`},
	{name: "ps aux", command: `ps aux`, short: true},
	{name: "ps -o lstart,etime", command: `ps -e -o pid,ppid,lstart,etime,args`},
	{name: "free", command: `free`, short: true},
	{name: "uptime", command: `uptime; uptime -s`, short: true},
	{name: "/proc/loadavg", command: `cat /proc/loadavg`},
	{name: "/proc/uptime", command: `cat /proc/uptime`},
	{name: "/proc/meminfo", command: `cat /proc/meminfo`},
	{name: "/proc/self/stat", command: `cat /proc/self/stat; grep -v ctxt_switches /proc/self/status`},
	{name: "vmstat", tools: []string{"vmstat"}, command: `vmstat 1 1`},
	{name: "top -bn1", tools: []string{"top"}, command: `top -bn1`},
	{name: "who, w", command: `who; w -h`},
	{name: "uname, hostname, nproc, id", command: `uname -a; hostname; nproc; id`},
	{name: "mktemp", command: `mktemp; mktemp -u; mktemp ./x.XXXXXX`, short: true},
	{name: "mktemp -d", command: `mktemp -d`},
	{name: "time sleep", command: `time sleep 0.1`},
	{name: "git commit, log", tools: []string{"git"}, command: commit + `echo two >f && git commit -qam two && git log --stat`, short: true},
	{name: "git stash", tools: []string{"git"}, command: commit + `echo two >f && git stash && git stash list --date=iso && git rev-parse stash@{0} && git status --porcelain`},
	{name: "python -m unittest", tools: []string{"python3"}, command: `printf 'import unittest\nclass T(unittest.TestCase):\n  def test_it(self): pass\n' >test_it.py; python3 -m unittest -v`},
	{name: "npm --version", tools: []string{"npm"}, command: `npm --version`},
	{name: "curl -w", tools: []string{"curl"}, command: `curl -s -o /dev/null -w '%{http_code} %{time_connect} %{time_total}\n' https://api.openai.com/v1/models`, red: "how often it looks at the clock while it waits"},
	{name: "ping", tools: []string{"ping"}, command: `ping -c1 -W1 127.0.0.1`},
	{name: "du", command: someFiles + `du -a . && du -sh /usr/share/perl5`},
	{name: "find -newer, -printf", command: someFiles + `touch d/b; find . -newer agent.py -printf '%p %T@ %s\n' | sort`},
	{name: "uuidgen", tools: []string{"uuidgen"}, command: `uuidgen; uuidgen -t`},
	{name: "/proc/sys/kernel/random/uuid", command: `cat /proc/sys/kernel/random/uuid`},
	{name: "netstat", tools: []string{"netstat"}, command: `netstat -tan`},
	{name: "ss", tools: []string{"ss"}, command: `ss -tan`, red: "what is asked over netlink, and in an order that the kernel draws"},
	{name: "lsof", tools: []string{"lsof"}, command: `lsof -p $$ 2>&1`, red: "inodes of pipes, devices"},
	{name: "env", command: `env`},
	{name: "base64 /dev/urandom", command: `head -c 30 /dev/urandom | base64; base64 /dev/urandom | head -1`},
	{name: "dd", command: `dd if=/dev/zero of=z bs=1M count=8`},
	{name: "background jobs, wait", command: `for i in 1 2 3; do (sleep 0.$i; echo $i) & done; wait; seq 3`},
	{name: "nohup", command: `nohup sh -c 'date +%N; echo $$' >out 2>&1 & wait; cat out`},
	{name: "make", tools: []string{"make", "gcc"}, command: `printf 'a: a.c\n\tgcc -g -o a a.c\n' >Makefile; echo 'int main(void){return __TIME__[0]==0;}' >a.c; make && make && md5sum a`},
}
