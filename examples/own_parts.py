"""All five parts, trained on the bundled ml-100k: python own_parts.py"""

import own_loss
import own_method  # noqa: F401  (registers a method)
import own_pool
import own_rule
from own_scorer import Biased

import recbole_hns as hns

BRIEF = {"epochs": 3, "learning_rate": 0.01, "show_progress": False, "state": "ERROR"}

if __name__ == "__main__":
    parts = hns.Method(own_pool.LongTail(), own_rule.Temperate(heat=0.5), own_loss.SquaredHinge(), N=50)
    for name, artifact in {
        "Temperate": hns.train("MF", "ml-100k", "temperate", heat=0.5, **BRIEF),
        "LongTail": hns.train("MF", "ml-100k", "dns", pool="long_tail", **BRIEF),
        "SquaredHinge": hns.train("MF", "ml-100k", "dns", pair_loss="squared_hinge", gap=0.5, **BRIEF),
        "long_tail_dns": hns.train("MF", "ml-100k", "long_tail_dns", **BRIEF),
        "all three as objects": hns.train("MF", "ml-100k", method=parts, **BRIEF),
        "Biased": hns.train(Biased, "ml-100k", "softmax_v", rank=32, **BRIEF),
    }.items():
        print(f"{name:<22} ndcg@10 {artifact.test['ndcg@10']:.4f}")
