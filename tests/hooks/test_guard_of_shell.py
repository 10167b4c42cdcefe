"""Slips in a shell that would spoil a campaign are refused; honest commands run, in every kind of folder."""

from __future__ import annotations

import subprocess

import pytest

RECORD = "devlog/scale/CAMPAIGN/rounds/001/record.json"

SLIPS = [
    "rm RECORD",
    "cd devlog && rm -r scale",
    "(cd devlog/scale/CAMPAIGN/rounds/001 && echo > record.json)",
    "cd devlog/scale; cd CAMPAIGN; rm manifest.yaml",
    "X=1 sed -i s/a/b/ RECORD",
    "WARPSMITH_HOOKS=off sed -i s/a/b/ RECORD",
    "env A=1 sed -i s/a/b/ RECORD",
    "sudo -u root rm RECORD",
    "nice -n 10 rm RECORD",
    "timeout 5 rm RECORD",
    "timeout -k 5 10s rm RECORD",
    "nohup rm RECORD &",
    "! rm RECORD",
    "true || rm RECORD",
    "{ rm RECORD; }",
    "if true; then rm RECORD; fi",
    "case x in x) rm RECORD;; esac",
    "for f in devlog/scale/*/rounds/*/record.json; do rm $f; done",
    'for f in $(find . -name record.json); do rm "$f"; done',
    "while read f; do rm $f; done < <(find devlog -type f)",
    "find devlog -type f | while read f; do rm $f; done",
    "D=devlog; rm -rf $D",
    "rm $(dirname RECORD)/record.json",
    "rm -rf .",
    "rm -rf ./*",
    "rm -rf {devlog,kernels}",
    "mv kernels /tmp/k",
    "mv kernels/scale/toy/v1.toy kernels/scale/toy/v9.toy",
    "truncate -s0 RECORD",
    "cp /dev/null RECORD",
    "cp /tmp/record.json devlog/scale/CAMPAIGN/rounds/001/",
    "rsync -a --delete /tmp/x/ ./",
    "tar xf /tmp/a.tar -C devlog",
    "curl -o RECORD http://localhost/",
    "echo x > RECORD",
    "tee RECORD < /tmp/x",
    "echo x | tee -a docs/knowledge/index.md >/dev/null",
    "cat > docs/knowledge/x.md <<'EOF'\nit's\nEOF",
    "echo > .warpsmith/verdicts/x.json",
    "rm -rf .warpsmith",
    "ls RECORD | xargs rm",
    "find . -name record.json | xargs -n1 rm -f",
    "find . -type f -print0 | xargs -0 sed -i s/a/b/",
    "find devlog -delete",
    "find devlog -name '*.json' -delete",
    "find . -name '*.json' -delete",
    "find . -name '*.json' -exec rm {} +",
    "find . -name '*.json' -exec sh -c 'rm $1' _ {} ';'",
    "git checkout -- RECORD",
    "git checkout RECORD",
    "git checkout .",
    "git checkout HEAD~1 -- devlog",
    "git restore RECORD",
    "git restore .",
    "git stash",
    "git stash push -m x",
    "git clean -fdx",
    "git -C . reset --hard",
    "git mv kernels/scale/definition.py x",
    'bash -c "rm RECORD"',
    "sh -ec 'cd devlog; rm scale/CAMPAIGN/manifest.yaml'",
    "bash <<EOF\nrm RECORD\nEOF",
    "eval rm RECORD",
    "python -c \"open('RECORD', 'w').write('x')\"",
    "python3 -c \"import json, pathlib; p = pathlib.Path('RECORD'); p.write_text(json.dumps(1))\"",
    "python - <<'EOF'\nimport os\nos.remove('RECORD')\nEOF",
    "python3 <<EOF\nimport glob\nfor p in glob.glob('devlog/**/record.json', recursive=True): open(p, 'w')\nEOF",
    "python -c \"import subprocess; subprocess.run(['rm', 'RECORD'])\"",
    "python -c \"import os; os.system('rm RECORD')\"",
    "perl -e 'unlink \"RECORD\"'",
    "perl -pi -e s/a/b/ RECORD",
    "echo 'unbalanced > RECORD",
    "cat <<'EOF' > RECORD\n{}\nEOF",
    'F="RECORD /tmp/x"; rm $F',
    'C="rm RECORD"; $C',
    'f() { rm -rf "$1"; }; f devlog',
    'function f { rm "$@"; }; f /tmp/x RECORD',
    "f() { echo a; } > RECORD; f",
    "cd /tmp && cd - && rm RECORD",
    "pushd /tmp && make; popd; rm RECORD",
    "bash wipe.sh",
    "bash -ex ./wipe.sh now",
    "./wipe.sh",
    "source wipe.sh",
    "uv run rm RECORD",
    "uv run --with torch python -c \"open('RECORD', 'w')\"",
    "conda run -n torch rm RECORD",
    "taskset -c 0-3 rm RECORD",
    "srun -n 1 rm RECORD",
    "flock /tmp/lock rm RECORD",
    "sudo --user root rm RECORD",
    "timeout --kill-after 5 10 rm RECORD",
    "perl -0pi -e s/a/b/ RECORD",
    "yq -i .a=1 devlog/scale/CAMPAIGN/manifest.yaml",
    "clang-format -i kernels/scale/toy/v1.toy",
    "ruff format kernels",
    "black kernels/scale/definition.py",
    "gzip RECORD",
    "xz -9 RECORD",
    "tar -C devlog -xf /tmp/a.tar",
    "unzip -od devlog /tmp/a.zip",
    "rsync -a /tmp/devlog .",
    "ncu --set full -o devlog/profile ./bench",
    "nvcc -O3 -o kernels/scale/toy/v1.toy a.cu",
    "git restore :/",
    "git checkout -- :/devlog",
    "git grep -l ROLLBACK | xargs sed -i s/a/b/",
    "rg -l ROLLBACK | xargs sed -i s/a/b/",
    "ls devlog | xargs -I{} rm -r devlog/{}",
    "find . -name '*.py' -not -path './devlog/*' | xargs sed -i s/a/b/",
    "find . -not -name '*.md' -delete",
    "find . -name __pycache__ -prune -o -type f -print | xargs rm",
    "python3 -c \"from shutil import rmtree; rmtree('devlog')\"",
    "python3 -c \"import shutil; shutil.rmtree('kernels')\"",
    "python3 -c \"import os; os.rename('kernels/scale', 'kernels/old')\"",
    "python3 -c \"from os import remove as delete; delete('RECORD')\"",
    "python3 -c \"from subprocess import run; run(['rm', 'RECORD'])\"",
    "python3 - RECORD <<'EOF'\nimport sys\nopen(sys.argv[1], 'w')\nEOF",
    'node -e \'require("fs").rmSync("RECORD")\'',
    "perl -e 'open(F, \">RECORD\")'",
]

HONEST = [
    "warpsmith next",
    "warpsmith judge kernels/scale/toy/v3.toy --campaign CAMPAIGN",
    "timeout 500 warpsmith judge kernels/scale/toy/v3.toy 2>&1 | tail -5",
    "X=1 warpsmith status",
    "cat RECORD",
    "head -5 RECORD | tee /tmp/out.txt",
    "sed -n 1,20p RECORD",
    "sed s/1/2/ kernels/scale/definition.py",
    "jq .verdict RECORD > /tmp/v.json",
    "cp RECORD /tmp/",
    "cp kernels/scale/toy/v1.toy kernels/scale/toy/v3.toy",
    "cat > kernels/scale/toy/v3.toy <<'EOF'\n// it's rm -rf devlog\nEOF",
    "grep -rn rm devlog",
    "grep -r 'a > b' devlog",
    "awk '{print $1}' RECORD",
    "diff <(cat RECORD) /tmp/x",
    "stat RECORD && sha256sum -c devlog/scale/CAMPAIGN/rounds/001/record.sha256",
    "test -f RECORD && echo yes || echo no",
    "ls -la devlog | head",
    "cd devlog && ls && git status",
    "find devlog -name record.json",
    "find devlog -name '*.json' -exec cat {} +",
    "find devlog -type f | xargs wc -l",
    "find . -name '*.pyc' -delete",
    "find . -name __pycache__ -type d -exec rm -rf {} +",
    "for f in devlog/*/*/rounds/*/record.json; do echo $f; jq .round $f; done",
    "git status",
    "git diff devlog",
    "git add -A",
    "git add devlog kernels",
    "git commit -m 'rm devlog > x'",
    "git log --oneline -- devlog",
    "git show HEAD:RECORD",
    "git checkout -b topic",
    "git stash list",
    "git stash push -- build",
    "git clean -n",
    "git rm --cached RECORD",
    "git restore --staged devlog",
    "wc -l $(git ls-files)",
    "rm -rf build",
    "rm -f /tmp/x.log",
    "mv /tmp/a /tmp/b",
    "mkdir -p .warpsmith/scratch && echo hi > .warpsmith/scratch/a.txt",
    "rsync -a devlog/ /tmp/backup/",
    "tar czf /tmp/a.tgz devlog",
    "ln -s $PWD/devlog /tmp/link",
    "du -sh devlog; df -h > /tmp/df",
    "tmp=$(mktemp); warpsmith status > $tmp; cat devlog/README.md $tmp; rm $tmp",
    "python train.py > log.txt",
    "python -c \"import json; print(json.load(open('RECORD'))['round'])\"",
    "python3 -c \"print(open('RECORD').read().replace('a', 'b'))\"",
    "python -c \"import json; json.dump(json.load(open('RECORD')), open('/tmp/x.json', 'w'))\"",
    "echo 'it is unbalanced",
    "echo 'cat devlog/README.md",
    "tmp=$(mktemp); find devlog -type f > $tmp; wc -l $tmp; rm $tmp",
    "ls devlog | xargs -I{} cp -r devlog/{} /tmp/",
    "find . -name '*.py' -not -path './kernels/*' | xargs sed -i s/a/b/",
    "find . -path ./kernels -prune -o -name '*.py' -print | xargs sed -i s/a/b/",
    "find . -type f ! -path './kernels/*' ! -path './devlog/*' ! -path './docs/*' ! -path './.warpsmith/*'"
    " -exec sed -i s/a/b/ {} +",
    'f() { jq .round "$1"; }; f RECORD',
    "f() { rm -rf devlog; }",
    "bash bench.sh",
    "bash missing.sh RECORD",
    "uv run pytest -q",
    "uv run python bench.py RECORD",
    "taskset -c 0-3 python bench.py",
    "watch -n 1 nvidia-smi",
    "cat <<'EOF' > kernels/scale/toy/v3.toy\n// rm -rf devlog\nEOF",
    "ncu --set full -o /tmp/profile ./bench && ncu --import /tmp/profile.ncu-rep > /tmp/p.txt",
    "nvcc -O3 -lcublas -o build/bench kernels/scale/toy/v1.toy",
    "gcc -lfoo kernels/scale/toy/v1.toy -o build/bench",
    "clang-format kernels/scale/toy/v1.toy",
    "clang-format -i kernels/scale/toy/v3.toy",
    "ruff check . && ruff format --check .",
    "ruff format .",
    "ruff check --fix src",
    "gzip -k RECORD && gzip -c RECORD > /tmp/r.gz && gzip /tmp/x",
    "tar -C devlog -cf /tmp/x.tar .",
    "tar -xzf cutlass.tgz -C third_party",
    "rsync -a devlog /tmp/backup",
    "scp RECORD host:/tmp/",
    "git grep -l foo src | xargs sed -i s/foo/bar/",
    "rg -l foo src | xargs sed -i s/foo/bar/",
    "git restore --staged :/",
    "python3 -c \"import shutil; shutil.rmtree('build'); shutil.move('/tmp/a', 'b')\"",
    "python3 -c \"import shutil; shutil.copytree('devlog', '/tmp/copy')\"",
    "perl -p -e s/a/b/ RECORD",
    "node -p 'require(\"./RECORD\").round'",
]


@pytest.fixture
def judgements(at_work, project):
    """A verdict outside of campaigns, and a folder that is nobody's."""
    (project.root / ".warpsmith" / "verdicts").mkdir(parents=True)
    (project.root / ".warpsmith" / "verdicts" / "scale-toy-v1-1.json").write_text("{}")
    (project.root / "build").mkdir()
    (project.root / "build" / "a.pyc").write_text("")
    (project.root / "wipe.sh").write_text("#!/bin/sh\nset -e\ncd devlog\nrm -r scale\n")
    (project.root / "bench.sh").write_text(
        "ls devlog\nrm -rf $OUT\ncat devlog/README.md > /tmp/log\nbash bench.sh\n"
    )
    return at_work


@pytest.fixture(params=["marker", "nothing", "git"])
def folder(request, judgements, project):
    """The project in each kind of folder; its root."""
    if request.param != "marker":
        (project.root / "warpsmith.toml").unlink()
    if request.param == "git":
        subprocess.run(["git", "init", "-q", "--template="], cwd=project.root, check=True)
    return project.root


@pytest.fixture
def refused(ask, judgements):
    """Ask if a command of a session in a folder is refused."""

    def ask_guard(command, cwd, **event):
        text = command.replace("RECORD", RECORD).replace("CAMPAIGN", judgements.name)
        answer = ask("guard", cwd=str(cwd), tool_name="Bash", tool_input={"command": text}, **event)
        return answer.get("hookSpecificOutput", {}).get("permissionDecision") == "deny"

    return ask_guard


def test_slips_are_refused(folder, refused):
    assert [command for command in SLIPS if not refused(command, folder)] == []


def test_honest_commands_run(folder, refused):
    assert [command for command in HONEST if refused(command, folder)] == []


def test_from_a_folder_inside_and_from_one_above(folder, refused):
    assert refused("rm manifest.yaml", next(folder.glob("devlog/scale/*")))
    assert refused("rm ../devlog/README.md", folder / "kernels")
    assert refused("rm project/RECORD", folder.parent)
    assert refused("cd project && rm RECORD", folder.parent)
    assert not refused("rm project/notes.md", folder.parent)


@pytest.mark.parametrize("tool", ["Write", "Edit"])
def test_a_file_tool_in_each_kind_of_folder(folder, ask, judgements, tool):
    for place in (
        RECORD.replace("CAMPAIGN", judgements.name),
        "kernels/scale/definition.py",
        "docs/knowledge/x.md",
    ):
        answer = ask("guard", cwd="/", tool_name=tool, tool_input={"file_path": str(folder / place)})
        assert answer["hookSpecificOutput"]["permissionDecision"] == "deny", place


def test_what_a_removal_would_take_is_named(refused, ask, project, judgements):
    answer = ask("guard", tool_name="Bash", tool_input={"command": "git stash"})
    reason = answer["hookSpecificOutput"]["permissionDecisionReason"]
    assert "would write or remove devlog/" in reason


def test_without_the_parser_a_writing_word_and_a_protected_path_are_refused(refused, project, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tree_sitter_bash", None)
    assert refused("rm RECORD", project.root)
    assert refused("cat x > RECORD", project.root)
    assert not refused("cat RECORD", project.root)
    assert not refused("rm build/a.pyc", project.root)


def test_records_of_a_repositorys_campaign(ask, project):
    folder = project.devlog / "repo" / "rms"
    (folder / "rounds" / "001").mkdir(parents=True)
    (folder / "campaign.json").write_text("{}")
    for place, decision in (("rounds/001/record.json", "deny"), ("src/ops/rms.py", None)):
        answer = ask("guard", tool_name="Write", tool_input={"file_path": str(folder / place)})
        assert answer.get("hookSpecificOutput", {}).get("permissionDecision") == decision


def test_folders_that_links_lead_to(ask, project, judgements, tmp_path):
    for folder in (project.devlog, project.kernels):
        folder.rename(tmp_path / f"disk-{folder.name}")
        folder.symlink_to(tmp_path / f"disk-{folder.name}")
    for place in (RECORD.replace("CAMPAIGN", judgements.name), "kernels/scale/definition.py"):
        answer = ask("guard", tool_name="Write", tool_input={"file_path": str(project.root / place)})
        assert answer["hookSpecificOutput"]["permissionDecision"] == "deny", place


def test_a_text_that_cannot_be_a_path_hides_no_other(refused, project):
    for text in ("long " * 2000, 300 * "a" + "/b", "a\\0b"):
        code = f"T = '{text}'\nP = 'RECORD'\ndef save(path): open(path, 'w').write(T)\nsave(P)"
        assert refused(f"python3 - <<'EOF'\n{code}\nEOF", project.root)
        assert refused(f"rm '{text}' RECORD", project.root)
        assert not refused(f"rm '{text}'", project.root)


@pytest.mark.parametrize(
    "command", ["rsync '' x", "rm ''", "xargs", "sudo", "timeout", "uv run", "find", "git -C"]
)
def test_commands_without_their_arguments(refused, project, command):
    assert not refused(command, project.root)
