"""Packs a wheel from a library that cargo has built, for the tests.

`maturin build` lays out the same files, but compiles everything with other features than the tests
of the workspace. Usage: python pack_wheel.py LIBRARY DIRECTORY
"""

import base64
import hashlib
import sys
import zipfile
from pathlib import Path

from pip._vendor import tomli

HERE = Path(__file__).resolve().parents[1]
TAG = "cp39-abi3-linux_x86_64"


def pack(library: Path, directory: Path) -> Path:
    """Writes the wheel and returns its path."""
    project = tomli.loads((HERE / "pyproject.toml").read_text())["project"]
    workspace = tomli.loads((HERE.parents[1] / "Cargo.toml").read_text())
    version = workspace["workspace"]["package"]["version"]
    info = f"standpipe-{version}.dist-info"
    package = HERE / "python" / "standpipe"
    files = {f"standpipe/{path.name}": path.read_bytes() for path in sorted(package.glob("*.py*"))}
    files["standpipe/py.typed"] = b""
    files["standpipe/_native.abi3.so"] = library.read_bytes()
    entry_points = {"console_scripts": project["scripts"], **project["entry-points"]}
    files[f"{info}/entry_points.txt"] = "".join(
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in points.items())
        for group, points in entry_points.items()
    ).encode()
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: standpipe\nVersion: {version}\n"
        f"Requires-Python: {project['requires-python']}\n"
    ).encode()
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: pack_wheel\nRoot-Is-Purelib: false\nTag: {TAG}\n"
    ).encode()
    record = "".join(f"{name},{digest(data)},{len(data)}\n" for name, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    directory.mkdir(parents=True, exist_ok=True)
    wheel = directory / f"standpipe-{version}-{TAG}.whl"
    # Not compressed: it is installed once, on this machine.
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_STORED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return wheel


def digest(data: bytes) -> str:
    hashed = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return f"sha256={hashed.decode()}"


if __name__ == "__main__":
    print(pack(Path(sys.argv[1]), Path(sys.argv[2])))
