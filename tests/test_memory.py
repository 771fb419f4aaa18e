"""What is left of memory is what the tightest limit leaves."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from recbole_hns import memory

GB = 10**9


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A machine with 50 GB left, and a kernel whose files a test writes: ``kernel(path, text)``."""
    monkeypatch.setattr(memory.psutil, "virtual_memory", lambda: SimpleNamespace(available=50 * GB))
    monkeypatch.setattr(memory, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "OWN_CGROUP", tmp_path / "own")
    monkeypatch.setattr(memory, "_left_of_addresses", lambda: iter(()))

    def write(path, text):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")

    return write


def test_without_limits_it_is_what_the_machine_has_left(kernel):
    assert memory.available() == 50 * GB


def test_a_cgroup_of_version_2_leaves_its_limit_less_what_is_used_but_for_caches(kernel):
    kernel("own", "0::/jobs/one")
    kernel("cgroup/jobs/one/memory.max", 8 * GB)
    kernel("cgroup/jobs/one/memory.current", 5 * GB)
    kernel("cgroup/jobs/one/memory.stat", f"anon {3 * GB}\ninactive_file {2 * GB}\nactive_file 7")
    assert memory.available() == 8 * GB - 5 * GB + 2 * GB


def test_the_limit_of_a_group_around_it_counts_too(kernel):
    kernel("own", "0::/jobs/one")
    kernel("cgroup/jobs/one/memory.max", "max")
    kernel("cgroup/jobs/one/memory.current", 3 * GB)
    kernel("cgroup/jobs/memory.max", 4 * GB)
    kernel("cgroup/jobs/memory.current", 3 * GB)
    assert memory.available() == 1 * GB


def test_in_a_container_the_root_is_its_own_group(kernel):
    kernel("own", "0::/a/name/that/only/the/host/knows")
    kernel("cgroup/memory.max", 2 * GB)
    kernel("cgroup/memory.current", 3 * GB)
    assert memory.available() == 0  # never less


def test_a_cgroup_of_version_1_has_files_of_other_names(kernel):
    kernel("own", "5:cpu,cpuacct:/x\n4:memory:/x")
    kernel("cgroup/memory/x/memory.limit_in_bytes", 9 * GB)
    kernel("cgroup/memory/x/memory.usage_in_bytes", 4 * GB)
    kernel("cgroup/memory/x/memory.stat", f"cache 3\ntotal_inactive_file {GB}")
    assert memory.available() == 6 * GB


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS is counted by Linux")
def test_a_limit_of_addresses_counts():
    """As ``ulimit -v`` sets it; what the process has taken is taken off."""
    code = (
        "import resource\nfrom recbole_hns.memory import available\n"
        "resource.setrlimit(resource.RLIMIT_AS, (3 * 10**8, resource.RLIM_INFINITY))\n"
        "print(available())"
    )
    root = Path(memory.__file__).parents[1]
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root)
    assert 0 < int(out.stdout) < 3 * 10**8, out.stderr
