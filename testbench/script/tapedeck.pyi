# The names that a script of tapedeck has beside those of Python, for editors. Written by go generate ./testbench/script.
from typing import Any, Callable, Mapping, NoReturn, Sequence, TypedDict

# Of Starlark's own those that Python lacks.
def fail(*values: Any, sep: str = " ") -> NoReturn: ...
def load(module: str, /, *names: str, **renamed: str) -> None: ...

class ToolCall(TypedDict):
    id: str
    name: str
    arguments: dict[str, Any]

class Usage(TypedDict):
    input_tokens: int
    output_tokens: int

class Completion(TypedDict):
    text: str
    tool_calls: list[ToolCall]
    usage: Usage
    stop_reason: str | None

class ProcessResult(TypedDict):
    stdout: str
    stderr: str
    exit_code: int
    duration_ms: int

class HTTPResponse(TypedDict):
    status: int
    headers: dict[str, str]
    body: str

class _clock:
    def now_ms(self) -> int:
        """Reads the wall clock. Gives Unix time in ms, an int."""
    def monotonic_ms(self) -> int:
        """Reads the time that has passed since the run began. Gives ms, an int."""
    def sleep(self, ms: int) -> None:
        """Sleeps. On a clock that stands still this takes no time but the run's. Gives None."""
    def advance(self, ms: int) -> None:
        """Lets time pass as clock.sleep does, but leaves nothing on the tape: what a test does, not its subject. Gives None."""

clock: _clock

class _llm:
    def complete(self, messages: Sequence[Mapping[str, Any]], system: str | list[Any] | None = None, tools: Sequence[Mapping[str, Any]] | None = None, tool_choice: str | dict[str, Any] | None = None, thinking: dict[str, Any] | None = None, model: str | None = None) -> Completion:
        """Calls a model. messages are dicts with role and content. An answer that is an error (a status 529, say) fails the call. Gives a dict: text; tool_calls, a list of dicts with id, name and arguments; usage, a dict with input_tokens and output_tokens; stop_reason, a string or None."""

llm: _llm

class _fs:
    def read(self, path: str) -> Any:
        """Reads a file whole. Gives a string, or bytes where the file is not UTF-8."""
    def write(self, path: str, data: str | bytes) -> None:
        """Writes a file whole, and makes the directories above it. What the run sees changes; the directory below it does not. Gives None."""
    def delete(self, path: str) -> None:
        """Deletes a file, or a directory that is empty. Gives None."""
    def list(self, path: str) -> list[str]:
        """Lists a directory. Gives its names, sorted, a list of strings."""
    def exists(self, path: str) -> bool:
        """Says whether a file or a directory stands at path. Gives a bool."""
    def diff(self) -> str:
        """Says what the run has changed in its files so far. Gives a unified diff that git apply takes, a string; empty where nothing changed."""

fs: _fs

class _process:
    def run(self, program: str, args: Sequence[str], cwd: str | None = None, stdin: str | bytes | None = None) -> ProcessResult:
        """Runs a command to its end. A status other than 0 is no error. Gives a dict: stdout and stderr, strings (bytes where they are not UTF-8); exit_code and duration_ms, ints."""

process: _process

class _mcp:
    def call(self, server: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Calls a tool of an MCP server. Gives the result of tools/call, a dict: content, and what else the server gave."""

mcp: _mcp

class _http:
    def get(self, url: str, headers: Mapping[str, str] | None = None) -> HTTPResponse:
        """Sends a GET request, and follows redirects. Gives a dict: status, an int; headers, a dict of lower-case names; body, a string (bytes where it is not UTF-8)."""
    def post(self, url: str, body: str | bytes, headers: Mapping[str, str] | None = None) -> HTTPResponse:
        """Sends a POST request. Gives as of http.get."""

http: _http

class _random:
    def int(self, low: int, high: int) -> int:
        """Draws a number from low to high, both of them possible. Gives an int."""
    def bytes(self, n: int) -> bytes:
        """Draws n random bytes. Gives bytes."""

random: _random

class _env:
    def get(self, name: str, default: str | None = None) -> Any:
        """Reads a variable of the run's environment, which holds what --env and Config.Env give and nothing else. Gives a string, or default where it is not set."""

env: _env

def parallel(functions: Sequence[Callable[[], Any]]) -> list[Any]:
    """Calls functions that take nothing side by side, and waits for all. Of branches that can go on, the one of the earliest time goes, then the first of the list: what they ask for stands on the tape in the same order in every run. Where one fails, the others are ended at what they wait for, and the error of the first of the list that failed by itself is the whole's. Gives what the functions returned, in the order of the list."""

def log(*values: Any) -> None:
    """Prints values for people, on standard error. Nothing of it is on the tape. print does the same. Gives None."""

def assert_eq(got: Any, want: Any, message: str | None = None) -> None:
    """Ends the script with status 2 where two values are not equal, and shows both, or where they differ. Gives None."""

def assert_true(value: Any, message: str | None = None) -> None:
    """Ends the script with status 2 where a value is not true: False, None, 0 or empty. Gives None."""

def assert_in(item: Any, container: str | Sequence[Any] | Mapping[Any, Any] | set[Any], message: str | None = None) -> None:
    """Ends the script with status 2 where a container does not have an item, or a string not a part. Gives None."""

def on_finish(fn: Callable[[], Any]) -> None:
    """Has a function that takes nothing called after main, in the order in which they were given, also where main failed. What it asks for stands on the tape in phase runtime_finalize. Gives None."""

class _json:
    def encode(self, x: Any) -> str:
        """Writes a value as JSON. Members keep their order. Gives a string."""
    def decode(self, x: str, default: Any = None) -> Any:
        """Reads JSON. Text that is none fails, or gives default where one is given. Gives the value: dicts, lists, strings, ints, floats, bools and None."""

json: _json

def struct(**fields: Any) -> Any:
    """Makes a value with fields. Gives the value; as JSON a dict."""
