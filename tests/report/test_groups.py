"""What reports call a method comes from the registry: its title, its own loss, and what was known before."""

from pathlib import Path

import pytest
from report_runs import record, write_run

from recbole_hns.errors import Error
from recbole_hns.losses import Hinge
from recbole_hns.report import figures
from recbole_hns.report.comparison import baseline_of
from recbole_hns.report.groups import make_groups
from recbole_hns.report.make import make_report
from recbole_hns.report.records import as_record
from recbole_hns.sampling import Method, Named, rules
from recbole_hns.settings.registry import table


@pytest.fixture
def registered():
    """A method of one's own: hinge is its loss, and with M = 2 it is an older one."""
    own = Named("own", Method(rule=rules.DNS(), loss=Hinge()), "", "Own({M})", original=(("M", 2),))
    table("method")["own"] = own
    yield own
    del table("method")["own"]


def group_of(sampler, **settings):
    (group,) = make_groups([as_record(record(sampler, 0, {"ndcg@10": 0.3}, **settings), "a test")])
    return group


@pytest.mark.parametrize(
    ("sampler", "settings", "label", "short"),
    [
        ("uniform", {"pair_loss": "bpr"}, "BPR", "BPR"),
        ("uniform", {}, "BPR", "BPR"),
        ("uniform", {"pair_loss": "bce"}, "Uniform, bce", "Uniform, bce"),
        ("popularity", {"pair_loss": "hinge"}, "Popularity, hinge", "Popularity, hinge"),
        ("warp", {"pair_loss": "hinge"}, "WARP", "WARP"),
        ("dns", {"M": 5, "N": 200, "pair_loss": "bpr"}, "DNS(5, 200)", "DNS"),
        ("dns", {"M": 1, "N": 200}, "DNS(1, 200)", "DNS, M = 1"),
        ("dns", {"pair_loss": "bce"}, "DNS, bce", "DNS, bce"),
        ("softmax", {"tau": 0.5, "pair_loss": "hinge"}, "Softmax, hinge", "Softmax, hinge"),
        ("nobodys", {"pair_loss": "bpr"}, "nobodys", "nobodys"),
        ("nobodys", {"pair_loss": "own"}, "nobodys, own", "nobodys, own"),
        ("own", {"M": 2, "pair_loss": "hinge"}, "Own(2)", "Own, M = 2"),
        ("own", {"M": 3, "pair_loss": "bpr"}, "Own(3), bpr", "Own, bpr"),
    ],
)
def test_labels(registered, sampler, settings, label, short):
    group = group_of(sampler, **settings)
    assert (group.label, group.short_label) == (label, short)


def test_an_original_is_a_baseline_of_its_own_method(registered):
    assert group_of("dns", M=1).family != group_of("dns", M=2).family
    assert group_of("own", M=2).family != group_of("own", M=3).family
    assert group_of("uniform", M=1).family == group_of("uniform", M=2).family


def test_of_what_is_ours_the_original_alone_is_a_baseline(registered):
    runs = [record("own", 0, {"ndcg@10": M / 10}, M=M, pair_loss="hinge") for M in (2, 4)]
    before, after = groups = make_groups(as_record(run, "a test") for run in runs)
    assert baseline_of(after, groups, "ndcg@10", ours=["own"]) is before
    assert baseline_of(before, groups, "ndcg@10", ours=["own"]) is None


def test_what_cannot_be_drawn_leaves_the_report_as_it_was(monkeypatch):
    """Figures and tables are there whole, or as they were."""
    for M in (1, 2, 3):
        write_run("runs", "dns", 0, {"ndcg@10": M / 10}, M=M, N=200)
    (figure,) = [f for f in make_report([Path("runs")], Path("out")) if f.name.startswith("effect")]
    before = figure.read_bytes()
    assert before.startswith(b"\x89PNG")

    class Full:
        """A figure whose disk is full half-way."""

        def savefig(self, stream, **options):
            stream.write(b"half")
            raise OSError(28, "No space left on device")

    with pytest.raises(Error, match="No space left on device"):
        figures.save(Full(), figure)
    assert figure.read_bytes() == before
    assert not [file for file in Path("out").iterdir() if file.name.startswith(".")]
