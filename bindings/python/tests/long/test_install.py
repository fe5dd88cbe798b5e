"""The package as its users install it: the wheel with each Python that is here, and from source."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import standpipe
from conftest import BUILT, ROOT
from test_docs import blocks

PACKAGE = ROOT / "bindings" / "python"
OLDEST = (3, 9)
# What the page shows before it needs an SDK or a provider.
EXAMPLES = [code for _, code in blocks("bindings/python/README.md") if "anthropic" not in code]


def interpreters():
    """Every Python that a version manager keeps beside this one, and this one."""
    beside = Path(sys.base_prefix).parent.glob("3.*/bin/python3")
    found = {Path(sys.base_prefix) / "bin" / "python3", *beside}
    versions = {path: tuple(map(int, path.parts[-3].split(".")[:2])) for path in found
                if path.parts[-3][:2] == "3."}
    return [path for path, version in sorted(versions.items(), key=lambda it: it[1])
            if version >= OLDEST] or [Path(sys.executable)]


def call(*words, **options):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def installed(interpreter, folder, *words, **options):
    """Makes an environment, installs into it, and returns its Python."""
    call(interpreter, "-m", "venv", folder)
    python = folder / "bin" / "python"
    call(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words, **options)
    return python


def works(python, folder):
    """Runs the examples of the page and the command line far from the checkout."""
    folder.mkdir()
    environment = {**os.environ, "PYTHONPATH": "", "PYTHONWARNINGS": "error"}
    for code in EXAMPLES:
        call(python, "-c", code, cwd=folder, env=environment)
    assert "standpipe" in call(python, "-m", "standpipe", "--version", cwd=folder)
    assert "standpipe" in call(python.parent / "standpipe", "--version", cwd=folder)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel that is under test here, packed again from what is installed."""
    library = Path(standpipe.__file__).with_name("_native.abi3.so")
    tool, folder = PACKAGE / "tools" / "pack_wheel.py", tmp_path_factory.mktemp("wheel")
    return call(sys.executable, tool, library, folder).strip()


@pytest.mark.parametrize("interpreter", interpreters(), ids=lambda path: path.parts[-3])
def test_the_wheel_works_in_a_clean_environment(interpreter, wheel, tmp_path):
    python = installed(interpreter, tmp_path / "env", "--no-index", wheel)
    assert len(EXAMPLES) == 2
    works(python, tmp_path / "far")


def test_the_source_distribution_builds_without_the_checkout(tmp_path):
    """The archive has every crate that the package needs, and nothing around it is used."""
    maturin = Path(sys.executable).with_name("maturin")
    call(maturin, "sdist", "--out", tmp_path, cwd=PACKAGE)
    (archive,) = tmp_path.glob("standpipe-*.tar.gz")
    with tarfile.open(archive) as files:
        files.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    # The build itself gets maturin from here, because tests have no network.
    environment = {**os.environ, "PATH": f"{maturin.parent}:{os.environ['PATH']}"}
    call(sys.executable, "-m", "venv", tmp_path / "env")
    python = tmp_path / "env" / "bin" / "python"
    site = call(sys.executable, "-c", "import maturin; print(maturin.__path__[0])").strip()
    environment["PYTHONPATH"] = str(Path(site).parent)
    # Crates of others are taken from the build of the tests; ours have another path, so they are
    # compiled from the archive.
    environment["CARGO_TARGET_DIR"] = str(BUILT.parent)
    environment["MATURIN_PEP517_ARGS"] = "--profile dev"
    call(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index",
         "--no-deps", "--no-build-isolation", source, cwd=tmp_path, env=environment)
    works(python, tmp_path / "far")
