"""The suite without RecBole: for parts of a loop of one's own."""

import subprocess
import sys


def test_parts_are_checked_where_recbole_ray_and_pandas_cannot_be_imported(tmp_path):
    script = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(('recbole', 'ray', 'pandas')))\n"
        "import recbole_hns as hns\n"
        "from recbole_hns.testing import check_loss, check_method, check_pool, check_rule\n"
        "check_pool(hns.pools.Popularity)\n"
        "check_rule(hns.rules.SoftmaxV)\n"
        "check_loss(hns.losses.BPR)\n"
        "check_method(hns.Method(N=20))\n"
        "print('kept')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("kept\n", 0), done.stderr
