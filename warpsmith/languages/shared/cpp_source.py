"""C++ source as text: its normal form, lint findings, and comments and literals as blanks."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""(?P<comment>//(?:[^\\\n]|\\.)*|/\*.*?(?:\*/|\Z))
      | (?P<literal>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"
                  | (?:u8|[uUL])?"(?:[^"\\\n]|\\.)*"
                  | (?<![0-9a-fA-F])(?:u8|[uUL])?'(?:[^'\\\n]|\\.)*')
      | (?P<line>\n)
      | (?P<space>[^\S\n]+|\\\n)
      | (?P<other>\w+|<<|>>|\+\+|--|->|::|&&|\|\||[-+*/%&|^<>=!]=|.)""",
    re.DOTALL | re.VERBOSE,
)

_PROCESS = r"fork|vfork|clone|exec[lv]p?e?|execvpe|system|popen|posix_spawnp?|dlopen|dlsym"
_CLOCK = (
    r"clock|clock_gettime|gettimeofday|__rdtscp?|__builtin_ia32_rdtscp?|timespec_get"
    r"|time(?=\s*\(\s*(?:0|NULL|nullptr|&))"
)
_FILE = r"fopen|freopen|open|openat|creat|mmap|shm_open|memfd_create"
_SIGNAL = r"signal|sigaction|raise|kill|setitimer|alarm"
_PERSISTENT = r"(?:std::)?(?:unordered_)?(?:multi)?(?:map|set)\s*<|[^;={}()]*\*\s*\w+\s*(?:\[[^\]]*\]\s*)?[;={,]"
_ADDRESS_KEYED = (
    r"(?:std::)?(?:unordered_)?(?:map|set)\s*<\s*(?:(?:const\s+)?\w+(?:\s+const)?\s*\*|(?:std::)?u?intptr_t)"
)

_TRIPWIRES: tuple[tuple[str, str], ...] = (
    (rf"(?<![\w.>])(?:std::|::)?({_PROCESS})\s*\(", "starts a process or loads code"),
    (r"\b(pthread_\w+|std::j?thread|std::async|thrd_create)\b", "starts threads of its own, besides OpenMP's"),
    (rf"\b(?:static|thread_local)\s+(?!inline\b|constexpr\b)(?:const\s+)?({_PERSISTENT})",
     "keeps a container or a pointer from call to call"),
    (r"^((?:const\s+)?[A-Za-z_]\w*(?:\s+const)?\s*\*+\s*\w+)\s*(?:=[^;]*)?;",
     "is a pointer that outlives the call"),
    (rf"\b({_ADDRESS_KEYED})", "is keyed by an address"),
    (rf"(?<![\w.>])(?:std::|::)?({_CLOCK})\s*\(|\b(std::chrono|omp_get_wtime)\b", "reads a clock"),
    (rf"(?<![\w.>])(?:std::|::)?({_FILE})\s*\(|\b(std::[io]?fstream|std::filesystem)\b", "reaches for files"),
    (rf"(?<![\w.>])(?:std::|::)?({_SIGNAL})\s*\(", "handles or sends signals"),
    (r"\b(asm|__asm__|__asm)\b", "holds assembly"),
)  # fmt: skip
_PROC = re.compile(r'"[^"\n]*(/proc|/sys|/dev/shm)\b')


def normalise_cpp(source: str) -> str:
    """Return the tokens of the source, one space apart; preprocessor lines stay lines of their own."""
    tokens: list[str] = []
    directive, fresh = False, True
    for match in _TOKEN.finditer(source):
        if match["line"]:
            if directive:
                tokens.append("\n")
            directive, fresh = False, True
        elif not (match["comment"] or match["space"]):
            if fresh and match.group() == "#":
                directive = True
                tokens.append("\n")
            tokens.append(match.group())
            fresh = False
    return " ".join(tokens)


def blank_tokens(source: str, *kinds: str) -> str:
    """Return the source with tokens of these kinds (`comment`, `literal`) as blanks: same length, same lines."""
    return _TOKEN.sub(lambda match: _blanks(match) if match.lastgroup in kinds else match.group(), source)


def _blanks(match: re.Match[str]) -> str:
    text = re.sub(r"[^\n]", " ", match.group())
    return f'"{text[2:]}"' if match.lastgroup == "literal" and "\n" not in text else text


def lint_cpp(source: str) -> list[str]:
    """List what a reviewer should look at, one short sentence each with its line."""
    code = blank_tokens(source, "comment", "literal")
    findings = [
        (_line(code, match.start()), _matched_name(match), reason)
        for pattern, reason in _TRIPWIRES
        for match in re.finditer(pattern, code, re.MULTILINE)
    ]
    text = blank_tokens(source, "comment")
    findings += [(_line(text, m.start()), m.group(1), "reads the machine's state") for m in _PROC.finditer(text)]
    return [f"line {line}: `{name}` {reason}" for line, name, reason in sorted(set(findings))]


def _matched_name(match: re.Match[str]) -> str:
    return " ".join(next(group for group in match.groups() if group).split()).rstrip(" ;={,<")[:40]


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
