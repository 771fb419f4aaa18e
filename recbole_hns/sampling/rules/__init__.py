"""Rules: how candidates' scores become the weights p_cij of the loss."""

from recbole_hns.sampling.rules.base import Rule
from recbole_hns.sampling.rules.dns import DNS
from recbole_hns.sampling.rules.irgan import IRGAN
from recbole_hns.sampling.rules.softmax import Softmax
from recbole_hns.sampling.rules.softmax_v import SoftmaxV
from recbole_hns.sampling.rules.uniform import Uniform
from recbole_hns.sampling.rules.warp import WARP

__all__ = ["DNS", "IRGAN", "WARP", "Rule", "Softmax", "SoftmaxV", "Uniform"]
