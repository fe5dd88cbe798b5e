"""The types of the package, and of code that uses it, by two checkers in their strict modes."""

import os
import subprocess
import sys

import standpipe
from conftest import ROOT

USER = '''
import asyncio
import standpipe

tap = standpipe.open("memory", limits={"my/api": {"parallel": 5}})
with tap.reserve("my/api", agent="blog", priority="background", timeout=30, tokens=5) as lease:
    lease.commit(tokens=3)

@standpipe.limited("my/api", tap=tap, cost={"tokens": 5})
def ask(text: str) -> int:
    return len(text)

number: int = ask("hello")

async def main() -> str:
    async with tap.areserve("my/api") as held:
        return held.agent

name: str = asyncio.run(main())
served: int = standpipe.with_retry("my/api", lambda lease: 5, tap=tap)
'''
WRONG = '''
import standpipe

tap = standpipe.open()
tap.reserve("my/api", priority="urgent")
tap.reserve(5)
with tap.reserve("my/api") as lease:
    lease.commit(tokens="many")
'''


def check(program, *words):
    # pyright finds the packages by the first `python` of the PATH.
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, "-m", program, *words], env={**os.environ, "PATH": path},
        capture_output=True, text=True)


def test_mypy_accepts_the_package_its_users_and_the_examples(tmp_path):
    (tmp_path / "user.py").write_text(USER)
    package = ROOT / "bindings" / "python" / "python" / "standpipe"
    # What these import takes mypy a minute to read; pyright checks them below.
    heavy = {"langchain", "litellm", "workers"}
    modules = [f"standpipe.{path.stem}" for path in package.glob("*.py")]
    modules += [path.stem for path in (ROOT / "examples" / "python").glob("*.py")]
    words = [word for name in sorted(modules) for word in ("-m", name.replace(".__init__", ""))
             if name.split(".")[-1] not in heavy]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache",
         "-m", "user", *words],
        env={**os.environ, "MYPYPATH": f"{tmp_path}:{ROOT / 'examples' / 'python'}"},
        cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_types_of_the_package_are_complete():
    done = check("pyright", "--verifytypes", "standpipe", "--ignoreexternal")
    ours = [line for line in done.stdout.splitlines() if "error:" in line and "litellm" not in line]
    unknown = [line for line in ours if "metaclass" not in line and "base class" not in line]
    assert unknown == [] and "Symbols exported" in done.stdout, done.stdout


def test_pyright_accepts_right_use_and_rejects_wrong_use(tmp_path):
    for name, text in (("user", USER), ("wrong", WRONG)):
        (tmp_path / f"{name}.py").write_text(text)
    examples = sorted(map(str, (ROOT / "examples" / "python").glob("*.py")))
    done = check("pyright", str(tmp_path / "user.py"), *examples)
    assert done.returncode == 0, done.stdout
    done = check("pyright", str(tmp_path / "wrong.py"))
    assert "3 errors" in done.stdout, done.stdout


def test_the_stubs_have_everything_that_the_extension_module_has():
    from standpipe import _native

    stubs = (ROOT / "bindings" / "python" / "python" / "standpipe" / "_native.pyi").read_text()
    for name in dir(_native):
        thing = getattr(_native, name)
        if name.startswith("_") or not isinstance(thing, type):
            continue
        assert f"class {name}" in stubs
        for method in dir(thing):
            if method not in dir(object) and not method.startswith("__"):
                assert f"def {method}(" in stubs, f"{name}.{method}"
    assert standpipe.__doc__ and all(hasattr(standpipe, name) for name in standpipe.__all__)
