"""The same faults in the C library, where Python's own code and that of other languages ends up."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
COMPILER = shutil.which("cc") or shutil.which("gcc")

pytestmark = pytest.mark.skipif(
    COMPILER is None or not sys.platform.startswith("linux"), reason="needs a C compiler and LD_PRELOAD"
)


@pytest.mark.slow
@pytest.mark.parametrize("step", [3])
def test_commands_survive_faults_below_python(tmp_path, step):
    library = tmp_path / "failing_disk.so"
    source = [str(HERE / "failing_disk.c"), "-ldl"]
    subprocess.run([COMPILER, "-shared", "-fPIC", "-O1", "-o", str(library), *source], check=True)
    own = {"LD_PRELOAD": str(library), "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    own["PYTHONPATH"] = os.pathsep.join([str(HERE), str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(HERE / "below_python.py"), str(tmp_path), str(step)]
    ended = subprocess.run(
        command, env={**os.environ, **own}, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    done = json.loads(ended.stdout.splitlines()[-1])
    print(done)
    assert min(done.values()) >= 5
    assert sum(done.values()) >= 100
