"""C++ source as text: comments and literals, what deserves a look, the expected signature, a starting file."""

from __future__ import annotations

import re

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec
from warpsmith.languages.shared.signature import described

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
_SCALARS = {"float": "double", "int": "int64_t", "bool": "bool"}

_PROCESS = r"fork|vfork|clone|exec[lv]p?e?|execvpe|system|popen|posix_spawnp?|dlopen|dlsym"
_CLOCK = (
    r"clock|clock_gettime|gettimeofday|__rdtscp?|__builtin_ia32_rdtscp?|timespec_get"
    r"|time(?=\s*\(\s*(?:0|NULL|nullptr|&))"
)
_FILE = r"fopen|freopen|open|openat|creat|mmap|shm_open|memfd_create"
_SIGNAL = r"signal|sigaction|raise|kill|setitimer|alarm"
_KEPT = r"(?:std::)?(?:unordered_)?(?:multi)?(?:map|set)\s*<|[^;={}()]*\*\s*\w+\s*(?:\[[^\]]*\]\s*)?[;={,]"
_KEYED = r"(?:std::)?(?:unordered_)?(?:map|set)\s*<\s*(?:(?:const\s+)?\w+(?:\s+const)?\s*\*|(?:std::)?u?intptr_t)"

_TRIPWIRES: tuple[tuple[str, str], ...] = (
    (rf"(?<![\w.>])(?:std::|::)?({_PROCESS})\s*\(", "starts a process or loads code"),
    (r"\b(pthread_\w+|std::j?thread|std::async|thrd_create)\b", "starts threads of its own, beside OpenMP"),
    (rf"\b(?:static|thread_local)\s+(?!inline\b|constexpr\b)(?:const\s+)?({_KEPT})",
     "keeps a container or a pointer from call to call"),
    (r"^((?:const\s+)?[A-Za-z_]\w*(?:\s+const)?\s*\*+\s*\w+)\s*(?:=[^;]*)?;",
     "is a pointer that outlives the call"),
    (rf"\b({_KEYED})", "is keyed by an address"),
    (rf"(?<![\w.>])(?:std::|::)?({_CLOCK})\s*\(|\b(std::chrono|omp_get_wtime)\b", "reads a clock"),
    (rf"(?<![\w.>])(?:std::|::)?({_FILE})\s*\(|\b(std::[io]?fstream|std::filesystem)\b", "reaches for files"),
    (rf"(?<![\w.>])(?:std::|::)?({_SIGNAL})\s*\(", "handles or sends signals"),
    (r"\b(asm|__asm__|__asm)\b", "holds assembly"),
)  # fmt: skip
_PROC = re.compile(r'"[^"\n]*(/proc|/sys|/dev/shm)\b')


def normalise(source: str) -> str:
    """The tokens of the source, one space apart; preprocessor lines stay lines."""
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


def findings(source: str) -> list[str]:
    """What deserves a look, a short sentence with its line each."""
    bare = blank(source, "comment", "literal")
    found = [
        (_line(bare, match.start()), _named(match), what)
        for pattern, what in _TRIPWIRES
        for match in re.finditer(pattern, bare, re.MULTILINE)
    ]
    told = blank(source, "comment")
    found += [(_line(told, m.start()), m.group(1), "reads the machine's state") for m in _PROC.finditer(told)]
    return [f"line {line}: `{name}` {what}" for line, name, what in sorted(set(found))]


def declaration(definition: Definition) -> str:
    """The prototype of `run`: inputs in order, outputs after them."""
    inputs = [f"{_type(spec)} {name}" for name, spec in definition.inputs.items()]
    outputs = [f"Tensor& {name}" for name in definition.outputs]
    return f'extern "C" void run({", ".join(inputs + outputs)})'


def template(definition: Definition) -> str:
    """A starting file: it says what to write, and does not compile before that is done."""
    names = ", ".join(definition.outputs)
    first = next(iter(definition.outputs))
    return "\n".join(
        [
            f"// {definition.name}: {definition.description}",
            *(f"//   {line}" for line in described(definition)),
            "#include <warpsmith.hpp>",
            "",
            f"{declaration(definition)} {{",
            f"  const int64_t count = {first}.ndim ? {first}.size(0) : 1;",
            "#pragma omp parallel for schedule(static)",
            "  for (int64_t i = 0; i < count; ++i) {",
            f'#error "Write the kernel: fill {names} here, then remove this line"',
            "  }",
            "}",
            "",
        ]
    )


def _type(spec: TensorSpec | ScalarSpec) -> str:
    return _SCALARS[spec.type] if isinstance(spec, ScalarSpec) else "const Tensor&"


def blank(source: str, *kinds: str) -> str:
    """The source with tokens of these kinds as blanks: same length, same lines."""
    return _TOKEN.sub(lambda match: _blanks(match) if match.lastgroup in kinds else match.group(), source)


def _blanks(match: re.Match[str]) -> str:
    text = re.sub(r"[^\n]", " ", match.group())
    return f'"{text[2:]}"' if match.lastgroup == "literal" and "\n" not in text else text


def _named(match: re.Match[str]) -> str:
    return " ".join(next(group for group in match.groups() if group).split()).rstrip(" ;={,<")[:40]


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
